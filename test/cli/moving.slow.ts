/** Each row of docs/moving.md is run: what stands on the right serves a client, and does what the flag on the left did. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { request as forward } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type Program, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { call, envelope, headersFor, send } from '../support/modern.js'
import { type MovingRow, movingRows } from '../support/moving.js'
import { SseClient } from '../support/sse-client.js'
import { makeCa, serveTls } from '../support/tls.js'

const fixture = fileURLToPath(new URL('../fixtures/legacy-stdio.mjs', import.meta.url))
const ca = await makeCa()
const ENV = { TOKEN: 'token-of-this-test-0123456789', SECRET: 'secret-of-this-test' }
const BEARER = { authorization: `Bearer ${ENV.TOKEN}` }
const ORIGIN = 'https://app.example.com'
const names = ({ result }: { result?: { tools?: { name: string }[] } }) => result?.tools?.map(({ name }) => name) ?? []

/** What a row is run in front of. */
interface Place {
  folder: string
  legacy: LegacyHttp
  sse: LegacySse
  tls: string
}

async function place(t: Test): Promise<Place> {
  const folder = temporaryFolder(t)
  const legacy = await LegacyHttp.start(t, { sessions: true })
  const shown = await ca.serverOptions(['127.0.0.1', 'localhost'])
  const tls = await serveTls(t, shown, ({ method, headers, url }, response) => {
    const own = forward(new URL(url ?? '', legacy.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    })
    own.on('error', () => response.destroy())
    response.req.pipe(own)
  })
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write('headers', '# of the server\nX-Key: value\n')
  write('ca.pem', ca.cert)
  write('bridge.pem', shown.cert)
  write('bridge-key.pem', shown.key)
  mkdirSync(join(folder, 'folder'))
  const servers = { a: { url: legacy.url }, b: { command: execPath, args: [fixture] }, c: { url: legacy.url } }
  write('mcp.json', JSON.stringify({ mcpServers: servers }))
  return { folder, legacy, sse: await LegacySse.start(t), tls: `https://127.0.0.1:${tls.port}/mcp` }
}

const FILES = ['headers', 'mcp.json', 'ca.pem', 'bridge.pem', 'bridge-key.pem', 'folder']

/** The arguments with what there is in this test in place of the examples. */
function filled(args: readonly string[], { folder, legacy, sse }: Place): string[] {
  return args
    .map((word) => (FILES.includes(word) ? join(folder, word) : word))
    .map((word) => word.replace(/^sse\+https:\/\/example\.com\/sse$/, `sse+${sse.url}`))
    .map((word) => word.replace(/^https:\/\/example\.com\/mcp$/, legacy.url))
    .map((word) => word.replace(/^(https?:\/\/127\.0\.0\.1):80\d0\//, '$1:0/'))
    .map((word) => word.replace(/^server\.mjs$/, fixture).replace('node server.mjs', `'${execPath}' '${fixture}'`))
}

/** A row, and the program that runs it. */
interface Running {
  row: MovingRow
  place: Place
  program: Program
  /** The endpoint, if clients connect over HTTP. */
  url: string
}

/** What has to be seen of a flag besides a client that is served. */
const EFFECTS: Readonly<Record<string, (t: Test, running: Running) => unknown>> = {
  'mcp-remote --header': keyed,
  'mcp-remote --header-file': keyed,
  'supergateway --header': keyed,
  'mcp-remote --transport': (t, { row, place }) => row.args.length === 0 || t.ok(place.sse.received.length > 0),
  'supergateway --sse': (t, { place }) => t.ok(place.sse.received.length > 0),
  'mcp-remote --debug': (_, { program }) => says(program, /"level":20/),
  'mcp-proxy --debug': (_, { program }) => says(program, /"level":20/),
  'mcp-remote --silent': (t, { program }) => t.equal(program.stderr(), ''),
  'supergateway --logLevel': (t, { program }) => t.equal(program.stderr(), ''),
  'supergateway --oauth2Bearer': (t, { place }) =>
    t.ok(place.legacy.of('tools/list').every(({ headers }) => headers.authorization === BEARER.authorization)),
  'mcp-proxy --apiKey': async (t, { url }) => {
    t.equal((await call(url, 'tools/list')).status, 401)
    t.equal((await call(url, 'tools/list', {}, { headers: BEARER })).status, 200)
  },
  'mcp-proxy --corsAddAllowedHeader': allows,
  'supergateway --cors': allows,
  'mcp-proxy --endpoint': (t, { url }) => t.match(url, /\/tools$/),
  'mcp-proxy --streamEndpoint': (t, { url }) => t.match(url, /\/tools$/),
  'supergateway --streamableHttpPath': (t, { url }) => t.match(url, /\/tools$/),
  'mcp-proxy --sseEndpoint': overSse,
  'mcp-proxy --server': overSse,
  'supergateway --ssePath': overSse,
  'supergateway --messagePath': overSse,
  'supergateway --healthEndpoint': async (t, { url }) => {
    for (const path of ['/healthz', '/readyz'])
      t.equal((await send('GET', new URL(path, url).href, undefined, {})).status, 200, path)
  },
  'mcp-proxy --modern': async (t, { url }) => {
    t.equal((await call(url, 'tools/list')).status, 200)
    t.equal((await (await LegacyClient.open(url)).request('tools/list')).status, 200)
  },
  'mcporter serve --http': async (t, { url }) => {
    const found = names((await call(url, 'tools/list')).message as object)
    for (const prefix of ['a__', 'b__', 'c__'])
      t.ok(
        found.some((name) => name.startsWith(prefix)),
        prefix,
      )
    t.ok(names((await call(new URL('/a/mcp', url).href, 'tools/list')).message as object).includes('echo'))
  },
}

function keyed(t: Test, { place }: Running): void {
  t.ok(place.legacy.received.length > 0)
  for (const { headers } of place.legacy.received) t.equal(headers['x-key'], 'value')
}

async function allows(t: Test, { url }: Running): Promise<void> {
  const headers = { origin: ORIGIN, 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-key' }
  const answer = await send('OPTIONS', url, undefined, headers)
  t.equal(answer.headers['access-control-allow-origin'], ORIGIN)
}

async function overSse(t: Test, { url }: Running): Promise<void> {
  const client = await SseClient.connect(url)
  t.match(client.messagesUrl, /\/message\b/)
  client.stream.leave()
}

/** A legacy client on stdio lists the tools. */
async function listsOnStdio({ child, stdout }: Program): Promise<string[]> {
  const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const clientInfo = { name: 'mover', version: '1' }
  say({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } })
  await until(() => /"id":1\b/.test(stdout()), 'initialize')
  say({ method: 'notifications/initialized' })
  say({ id: 2, method: 'tools/list' })
  await until(() => /"id":2\b/.test(stdout()), 'the list')
  const line =
    stdout()
      .split('\n')
      .find((one) => /"id":2\b/.test(one)) ?? '{}'
  return names(JSON.parse(line) as object)
}

function overTls(url: string): Promise<number | undefined> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: envelope() } })
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', ca: ca.cert, headers: headersFor('tools/list') }
    request(url, options, (response) => resolve(response.resume().statusCode))
      .on('error', reject)
      .end(body)
  })
}

/** Whether clients connect over HTTP to what is in the place of this program. */
const isOfHttp = ({ program, args, flag }: MovingRow) =>
  args.some((word) => /^https?:\/\/127/.test(word)) ||
  (/^(?:mcp-proxy|supergateway)$/.test(program) && !args.includes('stdio') && !/^--(?:debug|logLevel)$/.test(flag))

for (const row of movingRows()) {
  const { program: from, flag, args, inFile, why } = row
  t.test(`${from} ${flag} → ${why ?? (inFile ? JSON.stringify(inFile) : args.join(' '))}`, async (t) => {
    const own = await place(t)
    if (args[0] === '--help' || args[0] === '--version') {
      const program = startProgram(t, args)
      t.equal(await program.ended, 0)
      return t.match(program.stdout(), /\S/)
    }
    const given = filled(args, own)
    const at = given.indexOf('--')
    const [flags, server] = at < 0 ? [given, []] : [given.slice(0, at), given.slice(at)]
    const isNamed =
      server.length > 0 ||
      flags.some((word) => word === '--config' || (/^(?:sse\+)?http.*\/(?:mcp|sse)$/.test(word) && !/:0\//.test(word)))
    if (inFile) {
      writeFileSync(
        join(own.folder, 'own.json'),
        JSON.stringify({ mcpServers: { a: { url: own.legacy.url } }, ...inFile }),
      )
      flags.push('--config', join(own.folder, 'own.json'))
    }
    const target = isNamed || inFile ? [] : [flags.includes('--ca') ? own.tls : own.legacy.url]
    const http = isOfHttp(row)
    const listen = flags.includes('--listen') ? [] : ['--listen', http ? 'http://127.0.0.1:0/mcp' : 'stdio']
    const json = flags.includes('--log-format') ? [] : ['--log-format', 'json']
    const line = [...flags, ...listen, ...json, ...target, ...server]
    const program = startProgram(t, line, ENV)
    const running = { row, place: own, program, url: '' }
    if (!http)
      t.ok(
        (await listsOnStdio(program)).some((name) => /echo$/.test(name)),
        line.join(' '),
      )
    else {
      const [, url = ''] = await says(program, /"url":"(https?:[^"]+)".*"listening"/)
      running.url = url
      if (url.startsWith('https:')) t.equal(await overTls(url), 200)
      else {
        const { message, status } = await call(url, 'tools/list', {}, { headers: BEARER })
        t.equal(status, 200, line.join(' '))
        t.ok(names(message as object).some((name) => /echo$/.test(name)))
      }
    }
    await EFFECTS[`${from} ${flag}`]?.(t, running)
    if (!http) {
      program.child.stdin.end()
      t.equal(await program.ended, 0, program.stderr())
    }
  })
}

t.test('each effect is of a row', async (t) => {
  const rows = movingRows().map(({ program, flag }) => `${program} ${flag}`)
  for (const name of Object.keys(EFFECTS)) t.ok(rows.includes(name), name)
})
