/**
 * The audit log: the content of its lines, when they are written, and what happens if writing fails.
 *
 * Runs in its own process: it checks which packages are loaded.
 */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { whyNotAppendable } from '../../src/command/appendable.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { BOTH, LegacyClient } from '../support/legacy-client.js'
import { call, send } from '../support/modern.js'
import { startSdkV1 } from '../support/sdk-v1.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

const TOKENS = {
  alice: { token: 'alice-0123456789abcdef', scopes: ['write'] },
  bob: { token: 'bob-0123456789abcdef', scopes: [] },
}
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who].token}` } })

async function start(t: Test, audit: Json = {}, more: Json = {}) {
  const folder = temporaryFolder(t)
  const file = String(audit['file'] ?? join(folder, 'audit.jsonl'))
  let calls = 0
  const url = await startSdkV1(t, (server) => {
    server.registerTool('write', { description: 'Writes.' }, () => {
      calls++
      return { content: [{ type: 'text', text: 'SECRET of the answer' }] }
    })
    server.registerTool('fail', { description: 'Fails.' }, () => ({
      isError: true,
      content: [{ type: 'text', text: 'no' }],
    }))
  })
  const { url: at, log } = await startBridge(
    t,
    { url, scopes: { write: ['write'] } },
    { auth: { tokens: TOKENS }, audit: { file, ...audit }, ...more },
  )
  const lines = () =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json)
  return { at, file, folder, log, lines, calls: () => calls }
}

t.test('each call and each refusal has a line, which is written before the answer', async (t) => {
  const { at, lines, file } = await start(t, { arguments: ['path'] })
  const args = { path: '/tmp/a', text: 'SECRET of the caller' }
  await call(at, 'tools/call', { name: 'write', arguments: args }, as('alice'))
  t.match(lines(), [
    {
      principal: 'alice',
      server: 'test',
      method: 'tools/call',
      tool: 'write',
      outcome: 'ok',
      arguments: { path: '/tmp/a' },
    },
  ])
  t.match(lines()[0]?.['time'], /^\d{4}-\d\d-\d\dT/)
  t.type(lines()[0]?.['ms'], 'number')
  const reordered = { text: args.text, path: args.path }
  await call(at, 'tools/call', { name: 'write', arguments: reordered }, as('alice'))
  t.equal(lines()[1]?.['digest'], lines()[0]?.['digest'], 'equal arguments')
  await call(at, 'tools/call', { name: 'fail' }, as('alice'))
  t.match(lines()[2], { tool: 'fail', outcome: 'tool_error' })
  await call(at, 'tools/call', { name: 'write' }, as('bob'))
  t.match(lines()[3], { principal: 'bob', tool: 'write', outcome: 'refused', reason: 'insufficient_scope' })
  await call(at, 'tools/list', {}, as('bob'))
  t.equal(lines().length, 4, 'lists are no use of a server')
  await call(at, 'tools/call', { name: 'write' }, { headers: { authorization: 'Bearer wrong-0123456789' } })
  await until(() => lines().length === 5, 'the line of the refused request')
  t.match(lines()[4], { outcome: 'refused', reason: 'unauthorized', from: '127.0.0.1', path: '/mcp' })
  const legacy = await LegacyClient.open(at, as('alice'))
  await legacy.call('write', args)
  t.match(lines()[5], { principal: 'alice', tool: 'write', outcome: 'ok' })
  t.notMatch(readFileSync(file, 'utf8'), /SECRET|0123456789abcdef/, 'no texts, no tokens')
  t.equal(statSync(file).mode & 0o777, 0o600)
  const loaded = Object.keys(createRequire(import.meta.url).cache)
  t.notOk(
    loaded.some((path) => path.includes('opentelemetry')),
    'what sends lines to a collector is not loaded',
  )
})

t.test('a call through a group is one line, with the group', async (t) => {
  const { at, lines } = await start(t, {}, { groups: { team: { servers: ['test'], prefix: 'always' } } })
  const team = at.replace('/mcp', '/team/mcp')
  await call(team, 'tools/call', { name: 'test__write' }, as('alice'))
  t.match(lines(), [{ principal: 'alice', group: 'team', server: 'test', tool: 'write', outcome: 'ok' }])
  t.equal(lines().length, 1)
})

t.test('creates a file again that was moved away', async (t) => {
  const { at, file, lines } = await start(t)
  await call(at, 'tools/call', { name: 'write' }, as('alice'))
  renameSync(file, `${file}.1`)
  await until(async () => {
    await call(at, 'tools/call', { name: 'write' }, as('alice'))
    try {
      return lines().length > 0
    } catch {
      return false
    }
  }, 'the new file')
  t.match(lines()[0], { tool: 'write' })
})

for (const required of [false, true])
  t.test(
    `if lines cannot be written, calls ${required ? 'fail, and the server gets no more of them' : 'go on'}`,
    async (t) => {
      const { at, file, log, calls } = await start(t, { required })
      await until(() => existsSync(file), 'the file is opened at the start')
      rmSync(file)
      mkdirSync(file)
      let first = await call(at, 'tools/call', { name: 'write' }, as('alice'))
      // For a second, lines go to the file that is open.
      await until(async () => {
        if (log.some(({ event }) => event === 'audit_failed')) return true
        first = await call(at, 'tools/call', { name: 'write' }, as('alice'))
        return false
      }, 'a line that cannot be written')
      const before = calls()
      const second = await call(at, 'tools/call', { name: 'write' }, as('alice'))
      const failures = log.filter(({ event }) => event === 'audit_failed')
      t.match(failures, [{ file, err: { code: 'EISDIR' } }])
      t.equal(failures.length, 1)
      if (!required) {
        t.match([first.text, second.text].join(), /SECRET.*SECRET/s)
        return
      }
      t.match(first.message.error?.data, { reason: 'audit_unavailable', outcome: 'unknown' })
      t.match(second.message.error?.data, { reason: 'audit_unavailable', outcome: 'not_executed' })
      t.equal(second.status, 503)
      t.equal(calls(), before)
      renameSync(file, `${file}.1`)
      t.match((await call(at, 'tools/call', { name: 'write' }, as('alice'))).text, /SECRET/, 'and then they go on')
      t.equal(log.filter(({ event }) => event === 'audit_resumed').length, 1)
    },
  )

const UNWRITABLE: readonly [name: string, make: (folder: string) => string][] = [
  ['a folder', (folder) => folder],
  ['in a folder that is missing', (folder) => join(folder, 'missing', 'audit.jsonl')],
  ['below a file', (folder) => join(folder, 'file', 'audit.jsonl')],
  ['behind a link into a folder that is missing', (folder) => link(folder, join('missing', 'audit.jsonl'))],
  ['a device that is full', () => '/dev/full'],
]
function link(folder: string, target: string): string {
  const file = join(folder, 'link')
  symlinkSync(target, file)
  return file
}

for (const [name, make] of UNWRITABLE)
  t.test(`a file that cannot be opened at the start (${name}) is reported, and no call is sent`, async (t) => {
    const folder = temporaryFolder(t)
    writeFileSync(join(folder, 'file'), '')
    const file = make(folder)
    const before = readdirSync(folder)
    const { at, log, calls } = await start(t, { file, required: true })
    const refused = await Promise.all([1, 2].map(() => call(at, 'tools/call', { name: 'write' }, as('alice'))))
    for (const { status, message } of refused)
      t.match([status, message], [503, { error: { data: { reason: 'audit_unavailable', outcome: 'not_executed' } } }])
    const legacy = await LegacyClient.open(at, as('alice'))
    t.match((await legacy.call('write')).message, { error: { data: { outcome: 'not_executed' } } })
    t.equal(calls(), 0)
    t.match(
      log.filter(({ event }) => event === 'audit_failed'),
      [{ file }],
    )
    t.match(whyNotAppendable(file), /^E[A-Z]+$/, 'and a check says so')
    t.same(readdirSync(folder), before, 'nothing was created')
  })

t.test('a pipe that nobody reads is reported, and no call is sent until somebody does', async (t) => {
  const file = join(temporaryFolder(t), 'pipe')
  execFileSync('mkfifo', [file])
  const { at, calls } = await start(t, { file, required: true })
  const refused = await call(at, 'tools/call', { name: 'write' }, as('alice'))
  t.match(refused.message.error?.data, { reason: 'audit_unavailable', outcome: 'not_executed' })
  t.equal(calls(), 0)
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  t.teardown(() => closeSync(reader))
  t.match((await call(at, 'tools/call', { name: 'write' }, as('alice'))).text, /SECRET/)
  let text = ''
  await until(() => {
    text += readNow(reader)
    return text.split('\n').length > 2
  }, 'two lines')
  const lines = text.trim().split('\n')
  t.match(
    lines.map((line) => JSON.parse(line) as Json),
    [{ outcome: 'resumed' }, { tool: 'write', outcome: 'ok' }],
  )
})

/** What a pipe has now. */
function readNow(fd: number): string {
  const bytes = Buffer.alloc(64 * 1024)
  try {
    return bytes.toString('utf8', 0, readSync(fd, bytes))
  } catch {
    return ''
  }
}

t.test('a check of the file creates nothing, and does not wait for the reader of a pipe', async (t) => {
  const folder = temporaryFolder(t)
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const file of [join(folder, 'audit.jsonl'), pipe, '/dev/null']) t.equal(whyNotAppendable(file), undefined, file)
  t.same(readdirSync(folder), ['pipe'])
})

t.test('a line names the client as the client does, beside its id', async (t) => {
  const { at, lines } = await start(t)
  await call(at, 'tools/call', { name: 'write' }, as('alice'))
  t.match(lines().at(-1), { client_name: 'test' })
  const clientInfo = { name: 'Claude \u202eCode', version: '1' }
  const legacy = await LegacyClient.open(at, { ...as('alice'), clientInfo })
  await legacy.call('write')
  t.match(lines().at(-1), { client_name: 'Claude ?Code' })
})

t.test(
  'the use of a session of somebody else has a line, in every lane, and is answered as an unknown one',
  async (t) => {
    const { at, file, lines, log } = await start(t)
    const alice = await LegacyClient.open(at, as('alice'))
    const session = { 'mcp-session-id': alice.session }
    const bob = { ...BOTH, ...as('bob').headers, 'mcp-protocol-version': '2025-11-25' }
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    const stream = { accept: 'text/event-stream' }
    const sse = await SseClient.open(at, '2024-11-05', {}, as('alice').headers)
    const ways: [method: string, url: string, body: string | undefined, headers: Record<string, string>][] = [
      ['POST', at, ping, { ...bob, ...session }],
      ['GET', at, undefined, { ...as('bob').headers, ...stream, ...session }],
      ['DELETE', at, undefined, { ...as('bob').headers, ...session }],
      ['POST', sse.messagesUrl, ping, bob],
    ]
    for (const [i, [method, url, body, headers]] of ways.entries()) {
      const foreign = await send(method, url, body, headers)
      const changed = { ...headers, ...('mcp-session-id' in headers && { 'mcp-session-id': 'made-up' }) }
      const unknown = await send(method, url.replace(/sessionId=.*/, 'sessionId=made-up'), body, changed)
      t.same([foreign.status, foreign.text], [404, unknown.text], `${method} ${url}`)
      await until(() => readFileSync(file, 'utf8').split('\n').length > i + 1, 'the line')
      t.match(lines().at(-1), { principal: 'bob', outcome: 'refused', reason: 'foreignSession', from: '127.0.0.1' })
      t.equal(JSON.stringify(lines()).includes(alice.session), false, 'without the id')
    }
    t.ok(log.some(({ event, fault }) => event === 'request_refused' && fault === 'foreignSession'))
    t.equal((await alice.request('ping')).status, 200, 'its owner has noticed nothing')
  },
)
