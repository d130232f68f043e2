/** `mcp-bridge tail`: what it prints of a running bridge, which bridge it finds, and what a hostile name can do. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import t from 'tap'
import { pipeName } from '../../src/app/user-socket.js'
import { DECEPTIVE } from '../../src/base/texts/printable.js'
import { tail } from '../../src/command/tail.js'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import { run as runProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { bridgeOf, startInspector, TOKEN } from '../support/inspector.js'
import { ToolScope } from '../support/scope.js'
import { eventsIn, tellCall, tellQuestion, tickingRing } from '../support/sights.js'
import { run } from '../support/tail.js'

t.test('a line is printed for each call that ends', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring)
  tellCall(ring.record, { id: 1, name: 'echo' })
  const { said } = run({ target: `${base}/inspect#${TOKEN}` })
  tellQuestion(ring.record, { id: 2, answer: 3 })
  tellCall(ring.record, { id: 4, outcome: 'fault', why: 'connection refused', status: 502 })
  ring.record({ kind: 'refused', status: 403, why: 'foreignHost', said: 'Host "x"', path: '/mcp', from: '192.0.2.7' })
  ring.record({ kind: 'config', text: 'servers: added billing' })
  ring.record({ kind: 'trust', server: 'billing', text: 'quarantined: nobody vouches for it' })
  tellCall(ring.record, { id: 5, outcome: 'cancelled', more: { cancelled: 'notification' } })
  await until(() => said.out.split('\n').length === 9)
  t.match(
    said.out,
    /^\d\d:\d\d:\d\d\.\d {2}✓ ok {2}tools\/call echo {2}orders {2}M 07-28 http → L 11-25 stdio {2}7\.0 ms {2}c1\n/,
  )
  t.match(
    said.out,
    /\? asks its client .*c2\n.*✓ ok, asked once .*c2\n.*✕ fault .* {2}HTTP 502 {2}connection refused {2}blame: upstream {2}c4\n.*refused 403 {2}foreignHost: Host "x" {2}\/mcp {2}from 192\.0\.2\.7\n.*configuration changed {2}servers: added billing\n.*trust changed {2}billing {2}quarantined: nobody vouches for it\n.*– cancelled by the client {2}.*c5\n$/,
  )
  t.equal(said.err, '')
})

t.test('reports missing events, by kind or by number', async (t) => {
  const ring = tickingRing({ bounds: { calls: 1, messages: 100, bytes: 1024 * 1024 } })
  const base = await startInspector(t, ring)
  tellCall(ring.record, { id: 1 })
  const { said } = run({ target: `${base}/inspect#${TOKEN}` })
  await until(() => said.out.includes('c1'))
  ring.record({ kind: 'lost', what: 'calls', text: 'Calls were not recorded', count: 1_200 })
  await until(() => said.out.includes('recorded'))
  t.match(said.out, /\n\d\d:\d\d:\d\d\.\d {2}missing {2}Calls were not recorded: 1,200\n$/)
  t.equal(said.err, '')
  for (let id = 2; id < 6; id++) tellCall(ring.record, { id })
  await until(() => said.err !== '')
  t.match(said.err, /^mcp-bridge tail: \d+ events are missing here\n/)
})

t.test('calls are printed in a form that repeats them, without a character that a terminal acts on', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const base = await startInspector(t, ring)
  const params = { name: 'book', arguments: { text: '\u009b2J\u202e\u2028${process.exit(7)}' } }
  const request = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params }).padEnd(280)
  const result = JSON.stringify({ jsonrpc: '2.0', id: 7, result: { content: [] } }).padEnd(280)
  tellCall(ring.record, { id: 1, texts: { request, result } })
  tellCall(ring.record, { id: 2, outcome: 'cancelled', more: { cancelled: 'notification' } })
  const FORMS = {
    curl: /^curl "\$MCP_BRIDGE_URL" /,
    powershell: /^\(Invoke-WebRequest /,
    'sdk-v1': /^\/\/ tools\/call book, [\s\S]*from '@modelcontextprotocol\/sdk\/client/,
    'sdk-v2': /^\/\/ tools\/call book, [\s\S]*from '@modelcontextprotocol\/client'/,
    recording: /^\{\n {2}"recording": 1,/,
  } as const
  for (const [as, form] of Object.entries(FORMS)) {
    const { said } = run({ target: `${base}/inspect#${TOKEN}`, as: as as keyof typeof FORMS })
    await until(() => said.err !== '')
    t.match(said.out, form)
    t.notMatch(said.out.replaceAll('\n', ''), DECEPTIVE, as)
    t.match(said.out, /\$\{process\.exit\(7\)\}/)
    t.equal(said.err, 'mcp-bridge tail: c2 cannot be printed in this form, or its texts are not kept\n')
  }
  t.match(await runProgram(t, ['tail', '--as', 'sdk-v9']), {
    code: 2,
    stderr: /--as needs one of curl, powershell, sdk-v1, sdk-v2, recording/,
  })
})

t.test('tail filters, shows both sides, and prints events as JSON', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const base = await startInspector(t, ring)
  tellCall(ring.record, { id: 1, name: 'echo', texts: { request: '{"password":"CANARY"}', result: '{}' } })
  tellCall(ring.record, { id: 2, name: 'book' })
  const target = `${base}/inspect#${TOKEN}`
  const filtered = run({ target, filter: 'tool:book', both: true })
  await until(() => filtered.said.out.split('\n').length === 8)
  t.match(
    filtered.said.out,
    /tools\/call book[^\n]*\n {4}→ tools\/call id 7 +│ → tools\/call id 31\n {6}− .*protocolVersion {2}envelope: Envelope: .* https:\S+translation\.md#envelope\n {6}\+ .*progressToken {2}progress\n/,
  )
  t.notMatch(filtered.said.out, /echo/)
  tellCall(ring.record, { id: 3, outcome: 'fault', why: 'Connection refused' })
  const failed = run({ target, filter: 'status:fault', both: true })
  await until(() => failed.said.out.includes('\n    →'))
  t.match(failed.said.out, /Nothing was executed\. What to do: Check whether the server is running/)
  const json = run({ target, json: true, filter: 'tool:echo' })
  await until(() => json.said.out.split('\n').length === 9)
  const events = json.said.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedEvent)
  t.same(
    events.map(({ call }) => call),
    Array.from({ length: 8 }, () => 'c1'),
  )
  t.match(json.said.out, /‹hidden›/)
  t.notMatch(json.said.out, /CANARY/)
  for (const filter of ['status:fault', 'ms>=7 tool:book -status:ok']) {
    const { said } = run({ target, json: true, filter })
    await until(() => said.out.split('\n').length === 9, filter)
    const found = said.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as RecordedEvent)
    t.same(
      found,
      eventsIn(ring).filter(({ call }) => call === 'c3'),
      `all events of the call: ${filter}`,
    )
  }
  await t.rejects(run({ target, filter: 'ms>x' }).ended, /the filter is wrong/)
  await t.rejects(run({ target, filter: '-text:x' }).ended, /text: works only on the page/)
})

t.test('colours lines only on terminals that accept colours, and escapes control characters in names', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring)
  const evil = '\u001b]0;title\u0007\u001b[2J\u202e\r\nforged line\u009b31m'
  tellCall(ring.record, { id: 1, name: evil, server: evil, outcome: 'fault', why: evil, more: { method: evil } })
  const target = `${base}/inspect#${TOKEN}`
  const plain = run({ target, both: true })
  await until(() => plain.said.out.split('\n').length === 9)
  t.notMatch(plain.said.out.replaceAll('\n', ''), /[\p{Cc}\u202e]/u)
  const coloured = run({ target }, { isTTY: true })
  await until(() => coloured.said.out.includes('✕'))
  t.ok(coloured.said.out.includes('\u001b[31m✕'))
  const own = [1, 2, 22, 31, 39].map((code) => `\u001b[${code}m`)
  const rest = own.reduce((text, code) => text.replaceAll(code, ''), coloured.said.out)
  t.notMatch(rest.replaceAll('\n', ''), /[\p{Cc}\u202e]/u)
  const unwanted = run({ target }, { isTTY: true, env: { NO_COLOR: '1' } })
  await until(() => unwanted.said.out.includes('✕'))
  t.notOk(unwanted.said.out.includes('\u001b'))
})

t.test('escapes control and deceptive characters in events as JSON', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const base = await startInspector(t, ring)
  const evil = 'a\u001b\u007f\u009b31m\u202e\u2066\u2028\u200b\ufeff\ud800z 😀'
  tellCall(ring.record, { id: 1, name: evil, texts: { request: JSON.stringify({ evil }), result: evil } })
  const { said } = run({ target: `${base}/inspect#${TOKEN}`, json: true })
  await until(() => said.out.split('\n').length === 9)
  t.notMatch(said.out.replaceAll('\n', ''), DECEPTIVE)
  const [begun, request] = said.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { name?: string; payload?: { text: string } })
  t.equal(begun?.name, evil, 'and stand for the same value')
  t.match(request?.payload?.text, /a\\u001b\u007f\u009b31m\u202e/)
})

t.test('prints both sides of a question as they arrive, and explains each rule once', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring)
  const { said } = run({ target: `${base}/inspect#${TOKEN}`, both: true })
  tellQuestion(ring.record, { id: 1, answer: 2 })
  tellCall(ring.record, { id: 3, name: 'last' })
  await until(() => said.out.split('│').length === 10)
  t.equal(said.out.split('→ tools/call id 7 ').length - 1, 3, 'a message is written once')
  t.equal(said.out.split('Envelope: ').length - 1, 1)
  t.equal(said.out.split(/ {2}envelope\b/).length - 1, 3)
})

t.test('with both sides, prints the message of an error if its text is stored', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const base = await startInspector(t, ring)
  const texts = { request: '{}', result: '{"error":{"code":-32603,"message":"No table\\nfor \\u001b[2J two"}}' }
  tellCall(ring.record, { id: 1, outcome: 'error', texts })
  tellCall(ring.record, { id: 2, outcome: 'error' })
  const { said } = run({ target: `${base}/inspect#${TOKEN}`, both: true })
  await until(() => said.out.split('│').length === 7)
  t.match(said.out, /What to do: [^\n]*\n {4}Error message: No table ↵ for \?\[2J two\n {4}→/)
  t.equal(said.out.split('Error message').length, 2)
})

t.test('names the followed bridge on a terminal, and hints at filter words that are searched as text', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring)
  const target = `${base}/inspect#${TOKEN}`
  const { said } = run({ target, filter: 'tol:book' }, { isTTY: true })
  await until(() => said.out.includes('Following'))
  t.match(said.err, /tol: is no field, so "tol:book" is searched as text; fields are tool, .*, trace, text, ms\n/)
  t.match(said.out, `Following ${base}: a line for each call`)
  t.notMatch(said.out, TOKEN)
  const json = run({ target, json: true }, { isTTY: true })
  const plain = run({ target, filter: 'file:///notes' })
  tellCall(ring.record, { id: 1, name: 'file:///notes' })
  await until(() => plain.said.out.includes('file:///notes') && json.said.out.includes('file:///notes'))
  t.notMatch(plain.said.out, /Following/)
  t.notMatch(json.said.out, /Following/)
  t.equal(plain.said.err, '')
})

t.test('explains a wrong token, and an address without an inspector', async (t) => {
  const base = await startInspector(t, tickingRing())
  const wrong = run({ target: `${base}/inspect#wrong` })
  t.equal(await wrong.ended, false)
  t.match(wrong.said.err, /the bridge does not know this token: it may have been started again/)
  const malformed = run({ target: `${base}/inspect#%` })
  t.equal(await malformed.ended, false)
  t.match(malformed.said.err, /the bridge does not know this token/)
  const missing = run({ target: `${base}/inspect` })
  t.equal(await missing.ended, false)
  t.match(missing.said.err, /the bridge requires its token: give the whole address/)
  const token = 'ABC.def_123~+/=-'
  const ring = tickingRing()
  const other = await startInspector(t, ring, { token })
  const right = run({ target: `${other}/inspect#${token}` })
  tellCall(ring.record, { id: 1 })
  await until(() => right.said.out.includes('c1'))
})

t.test('without an address, finds the bridge of this user by its socket', async (t) => {
  const sockets = temporaryFolder(t)
  await t.rejects(run({ sockets }).ended, /no bridge on stdio with --inspect runs as this user/)
  await t.rejects(run({ sockets: join(sockets, 'none') }).ended, /no bridge/)
  const ring = tickingRing()
  await startInspector(t, ring, { token: undefined }, { path: join(sockets, '4711.sock') })
  chmodSync(join(sockets, '4711.sock'), 0o600)
  writeFileSync(join(sockets, 'other.txt'), '')
  tellCall(ring.record, { id: 1, name: 'echo' })
  const one = run({ sockets })
  await until(() => one.said.out.includes('echo'))
  const bridge = bridgeOf([{ name: 'notes', state: 'ready', calls: 0, parked: 0 }])
  await startInspector(t, ring, { token: undefined, bridge }, { path: join(sockets, '4712.sock') })
  chmodSync(join(sockets, '4712.sock'), 0o600)
  await t.rejects(run({ sockets }).ended, {
    message: 'several bridges run: choose one of 4711 (orders), 4712 (notes, orders), as in mcp-bridge tail 4711',
  })
  const chosen = run({ sockets, target: '4712' })
  await until(() => chosen.said.out.includes('echo'))
  await t.rejects(run({ sockets, target: '1' }).ended, /no bridge with --inspect has the process id 1/)
})

t.test('follows another bridge although a socket does not answer', async (t) => {
  const sockets = temporaryFolder(t)
  const deaf = createServer(() => {})
  const silent = join(sockets, '4711.sock')
  await new Promise<void>((resolve) => deaf.listen(silent, resolve))
  chmodSync(silent, 0o600)
  t.teardown(() => deaf.close())
  const ring = tickingRing()
  await startInspector(t, ring, { token: undefined }, { path: join(sockets, '4712.sock') })
  chmodSync(join(sockets, '4712.sock'), 0o600)
  tellCall(ring.record, { id: 1, name: 'echo' })
  const chosen = run({ sockets, target: '4712' })
  await until(() => chosen.said.out.includes('echo'), 'it is not asked')
  const found = run({ sockets })
  await until(() => found.said.out.includes('echo'), 'it is left after a while')
  await t.rejects(run({ sockets, target: '4711' }).ended, /no bridge with --inspect has the process id 4711/)
  t.ok(existsSync(silent), 'its process may be busy')
})

t.test('finds a named pipe through the file in the folder', async (t) => {
  const sockets = temporaryFolder(t)
  const pipe = join(temporaryFolder(t), 'pipe')
  const ring = tickingRing()
  await startInspector(t, ring, { token: undefined }, { path: pipe })
  const [file, left] = [join(sockets, '4711.sock'), join(sockets, '4712.sock')]
  writeFileSync(file, pipe)
  writeFileSync(left, `${pipe}-of-a-process-that-was-killed`)
  tellCall(ring.record, { id: 1, name: 'echo' })
  const found = run({ sockets })
  await until(() => found.said.out.includes('echo'))
  t.ok(existsSync(file))
  t.notOk(existsSync(left), 'the file of a pipe that is gone is removed')
})

t.test('names of pipes contain the process id, and cannot be guessed', async (t) => {
  const names = new Set(Array.from({ length: 100 }, () => pipeName(4711)))
  t.equal(names.size, 100)
  for (const name of names) t.match(name, /^\\\\\.\\pipe\\mcp-bridge-4711-[0-9a-f]{32}$/)
})

t.test('reports the end of the bridge', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1 })
  const bridge = new ToolScope()
  const base = await startInspector(bridge, ring)
  const { said, ended } = run({ target: `${base}/inspect#${TOKEN}` })
  await until(() => said.out.includes('c1'))
  await bridge.end()
  t.equal(await ended, true)
  t.equal(said.err, 'mcp-bridge tail: the bridge has ended the connection\n')
})

t.test('does not report an error while printing as the end of the bridge', async (t) => {
  const ring = tickingRing()
  const target = `${await startInspector(t, ring)}/inspect#${TOKEN}`
  tellCall(ring.record, { id: 1 })
  const stdout = new Writable()
  stdout.write = () => {
    throw new TypeError('a mistake in the code')
  }
  let said = ''
  const err = (text: string) => {
    said += text
  }
  const options = { target, filter: '', json: false, both: false, sockets: undefined }
  await t.rejects(tail(options, { stdout, err, env: {} }), /a mistake in the code/)
  t.equal(said, '')
})

t.test('explains an address without a bridge, and never prints its token', async (t) => {
  const cases: [target: string, says: RegExp][] = [
    [
      'http://127.0.0.1:1/inspect#SECRET',
      /cannot connect to http:\/\/127\.0\.0\.1:1: Connection refused\n {2}Check whether/,
    ],
    [
      'http://nobody.invalid/inspect#SECRET',
      /cannot connect to http:\/\/nobody\.invalid: The host name could not be resolved/,
    ],
  ]
  for (const [target, says] of cases) {
    const { said, ended } = run({ target })
    t.equal(await ended, false)
    t.match(said.err, says)
    t.notMatch(said.err, /SECRET| at /)
  }
  await t.rejects(run({ target: 'http://' }).ended, /http:\/\/ is not a valid address/)
})

t.test('prints nothing that another program sends instead of events', async (t) => {
  const good = { v: 1, at: 1, kind: 'call', what: 'ended', call: 'c1', principal: 'a', method: 'm', outcome: 'ok' }
  const client = { era: 'modern', revision: '2026-\u001b[31m', transport: 'http' }
  const events = [
    { ...good, seq: 1, client },
    { ...good, seq: 2, client: { era: '\u001b[31m' } },
    { ...good, seq: 3, client, outcome: '\u001b[31m' },
    { ...good, seq: 4, client, code: '\u001b[31m' },
    'no event',
  ]
  const server = createHttpServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const { said, ended } = run({ target: `http://127.0.0.1:${port}/inspect#${TOKEN}` })
  await ended
  t.match(said.out, /✓ ok {2}m/)
  t.notOk(said.out.includes('\u001b'), 'no escape')
  t.equal(said.err.match(/skipped/g)?.length, 4)
})

t.test(
  'sockets in a folder that others may write are not trusted',
  { skip: process.platform === 'win32' },
  async (t) => {
    const sockets = temporaryFolder(t)
    await startInspector(t, tickingRing(), { token: undefined }, { path: join(sockets, '4711.sock') })
    chmodSync(join(sockets, '4711.sock'), 0o600)
    chmodSync(sockets, 0o777)
    await t.rejects(run({ sockets }).ended, /may be somebody else's: others may write its folder/)
    chmodSync(sockets, 0o700)
    chmodSync(join(sockets, '4711.sock'), 0o666)
    await t.rejects(
      run({ sockets }).ended,
      /4711\.sock may be somebody else's: others may open it \(run chmod 600 on it\)/,
    )
  },
)
