/** A request as a command line: run in a shell, it does again what the client did. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { curlOf, powershellRequestOf } from '../../src/inspector/curl.js'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { encodeValue } from '../../src/mcp/protocol/headers.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { BOTH, initialize, LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call, headersFor, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { stringsIn } from '../support/powershell.js'
import { eventsIn } from '../support/sights.js'

const TOKEN = 'a-token-of-the-bridge'
const authorization = `Bearer ${TOKEN}`
/** What a shell and a header must not change. */
const TEXT = `it's "quoted" $HOME \`id\` \\ — 日本\n`

/** Servers, by what the bridge does with messages of which client. */
const SERVERS: Readonly<Record<string, (t: Test) => Promise<object>>> = {
  'a legacy program': async (t) => legacyStdio(t).server,
  'a legacy server on HTTP': async (t) => ({ url: (await LegacyHttp.start(t, { sessions: true })).url }),
  'a modern server on HTTP': async (t) => ({ url: (await ModernHttp.start(t)).url }),
}

/** Requests by the era of the client. */
const REQUESTS = {
  modern: [
    ['tools/call', { name: 'echo', arguments: { text: TEXT } }],
    ['tools/call', { name: 'no tool: “日本”', arguments: {} }],
    ['resources/read', { uri: 'memo://no/such' }],
    ['tools/list', {}],
  ],
  legacy: [
    ['tools/call', { name: 'echo', arguments: { text: TEXT } }],
    ['tools/list', {}],
  ],
} as const

for (const [server, start] of Object.entries(SERVERS))
  for (const era of ['modern', 'legacy'] as const)
    for (const tokens of [undefined, { alice: TOKEN }])
      t.test(`a ${era} client and ${server}, ${tokens ? 'with' : 'without'} a token`, async (t) => {
        const ring = new Ring({ payloads: 'all' })
        const recorder = new EventRecorder(ring.record)
        const { url } = await startBridge(t, await start(t), tokens ? { auth: { tokens } } : {}, { recorder })
        const headers = tokens ? { authorization } : {}
        const legacy = era === 'legacy' ? await LegacyClient.open(url, { headers }) : undefined
        for (const [method, params] of REQUESTS[era]) {
          const { message } = legacy
            ? await legacy.request(method, params)
            : await call(url, method, params, {
                headers: { ...headersFor(method, params), ...nameOf(params), ...headers },
              })
          await until(() => callsIn(ring).at(-1)?.status !== 'open', 'the call has ended')
          const curl = curlOf(callsIn(ring).findLast((one) => one.method === method) as CallView)
          t.same(
            curl?.variables,
            ['$MCP_BRIDGE_URL', ...(legacy ? ['$MCP_SESSION_ID'] : []), ...(tokens ? ['$TOKEN'] : [])],
            'it says what it needs',
          )
          const env = { MCP_BRIDGE_URL: url, MCP_SESSION_ID: legacy?.session ?? '', TOKEN }
          t.same(await answerOf(curl?.command ?? '', env), message, `${method} is answered as before`)
        }
      })

t.test('the command for initialize needs no session', async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const { url } = await startBridge(t, legacyStdio(t).server, {}, { recorder: new EventRecorder(ring.record) })
  await post(url, initialize('2025-11-25'), BOTH)
  const curl = curlOf(callsIn(ring).find(({ method }) => method === 'initialize') as CallView)
  t.same(curl?.variables, ['$MCP_BRIDGE_URL'])
  t.match(await answerOf(curl?.command ?? '', { MCP_BRIDGE_URL: url }), { result: { protocolVersion: '2025-11-25' } })
})

const REQUEST = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const asked = { v: 1, seq: 1, at: 1, kind: 'message', hop: 'client', dir: 'in', form: 'request', bytes: 1 } as const
const whole = { ...asked, payload: { text: REQUEST, cut: 0, hidden: 0 } }
const WITHOUT: readonly [why: string, transport: 'http' | 'sse' | 'stdio' | undefined, seen: RecordedEvent][] = [
  ['a client on stdio', 'stdio', whole],
  ['a client on HTTP+SSE, whose answers come elsewhere', 'sse', whole],
  ['a client of whom it is not known', undefined, whole],
  ['a request of the server', 'http', { ...whole, dir: 'out' }],
  ['no text', 'http', asked],
  ['a text that is cut off', 'http', { ...asked, payload: { text: REQUEST, cut: 1, hidden: 0 } }],
  ['a text with a hidden value', 'http', { ...asked, payload: { text: REQUEST, cut: 0, hidden: 1 } }],
  ['a text that is no object', 'http', { ...asked, payload: { text: `[${REQUEST}]`, cut: 0, hidden: 0 } }],
]
t.test('offers no command where none can work', async (t) => {
  for (const [why, transport, seen] of WITHOUT)
    t.equal(curlOf({ client: { era: 'legacy', transport }, events: [seen] }), undefined, why)
  t.ok(curlOf({ client: { era: 'legacy', transport: 'http' }, events: [whole] }))
})

const HOSTILE = [
  "it's; $(id) `id` $HOME \\",
  '\u2018typographic\u2019 \u201a\u201b \u201cquotes\u201d',
  "'+(Remove-Item x)+'",
  '\u2019; Remove-Item x; \u2018',
  'a\nb\tc\u0003\u009b',
  '日本 \u{1f600}',
]

t.test('the command for PowerShell sends the same request, whatever it contains', async (t) => {
  for (const text of HOSTILE) {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: text, arguments: { text } } }
    const request = JSON.stringify(message, null, '\t').replaceAll('\n', '\r\n')
    const seen = { ...asked, payload: { text: request, cut: 0, hidden: 0 } }
    const call: Parameters<typeof curlOf>[0] = { client: { era: 'modern', transport: 'http' }, events: [seen] }
    const { command = '', variables } = powershellRequestOf(call) ?? {}
    t.match(command, /^[ -~\n]*$/, 'it is ASCII, which Windows PowerShell 5.1 sends as it is')
    const { strings, around } = stringsIn(command)
    t.same(JSON.parse(strings.at(-1)?.text ?? ''), message)
    t.equal(
      around.replace(/\n( {2}"" = ""\n)+/, '…'),
      '(Invoke-WebRequest -UseBasicParsing -Method Post -Uri $env:MCP_BRIDGE_URL -ContentType "" -Headers @{…} -Body "").Content',
      'nothing of it is run',
    )
    t.same(variables, ['$env:MCP_BRIDGE_URL'])
    const curl = curlOf(call)?.command ?? ''
    t.notMatch(curl, /[\t\r]/, 'no tab or line break of the text gets into a terminal')
    const { headers } = pairsIn(strings.map((one) => one.text))
    t.equal(headers['mcp-name'], encodeValue(text))
    t.match(headers, { accept: BOTH.accept, 'mcp-method': 'tools/call', 'mcp-protocol-version': '2026-07-28' })
  }
})

t.test('the command for PowerShell has variables instead of secrets, as the one for sh', async (t) => {
  const client = { era: 'legacy', transport: 'http' } as const
  const call: Parameters<typeof curlOf>[0] = { client, events: [whole], session: 's', principal: 'ada' }
  const { command = '', variables } = powershellRequestOf(call) ?? {}
  t.match(command, '  \'mcp-session-id\' = "$env:MCP_SESSION_ID"\n  \'authorization\' = "Bearer $env:TOKEN"\n')
  const names = ['MCP_BRIDGE_URL', 'MCP_SESSION_ID', 'TOKEN']
  t.same(
    variables,
    names.map((name) => `$env:${name}`),
  )
  t.same(
    curlOf(call)?.variables,
    names.map((name) => `$${name}`),
  )
  for (const [why, transport, seen] of WITHOUT)
    t.equal(powershellRequestOf({ client: { era: 'legacy', transport }, events: [seen] }), undefined, why)
})

/** The headers in the strings of a command: all but the content type before them and the body after them. */
function pairsIn(strings: readonly string[]) {
  const pairs = strings.slice(1, -1)
  const names = pairs.filter((_, i) => i % 2 === 0)
  return { headers: Object.fromEntries(names.map((name, i) => [name, pairs[2 * i + 1]])) }
}

function callsIn(ring: Ring): CallView[] {
  const views = new Views()
  for (const seen of eventsIn(ring)) views.add(seen)
  return [...views.calls.values()]
}

/** The last message that a command prints, from JSON or from events. */
async function answerOf(command: string, env: Record<string, string>): Promise<unknown> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { env: { ...process.env, ...env } })
  const [, data = stdout] = /^data: (.+)$(?![\s\S]*^data: .)/m.exec(stdout) ?? []
  return JSON.parse(data)
}

/** A name that is not ASCII has another form in its header. */
function nameOf(params: object): Record<string, string> {
  return 'name' in params ? { 'mcp-name': encodeValue(String(params.name)) } : {}
}
