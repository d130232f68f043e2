/** Copied calls: the code for each SDK and the recording, run for real, do what the client did, whatever the call contains. */
import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { COPY_FORMS } from '../../src/inspector/replay/copies.js'
import { readRecording } from '../../src/inspector/replay/recording.js'
import { sdkCodeOf } from '../../src/inspector/replay/sdk-code.js'
import { Ring } from '../../src/inspector/ring.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { startBridge } from '../support/bridge.js'
import { bridgeCommand, run } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { eventsIn } from '../support/sights.js'

const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
const everything = { command: execPath, args: [EVERYTHING, 'stdio'] }
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))
const TOKEN = 'a-token-of-the-bridge'

/** What a literal, a comment and a shell must not change. */
const HOSTILE = [
  `'); process.exit(7); ('`,
  '"); process.exit(7); ("',
  '`${process.exit(7)}`',
  '\\',
  '\\`\\${0}',
  'a\nprocess.exit(7)\r\n// ',
  '\u2028process.exit(7)\u2029process.exit(7)',
  '*/ process.exit(7) /*',
  '</script><!-- -->',
  '\u0000\u0007\u001b[2J\u009b\ufeff\u202e\ud800',
  '日本 \u{1f600}',
  '__proto__',
]
const ARGUMENTS = JSON.parse(
  JSON.stringify({
    message: HOSTILE.join('|'),
    list: HOSTILE,
    ...Object.fromEntries(HOSTILE.map((text) => [text, { [text]: text }])),
  }).replace('{"message"', '{"__proto__":{"polluted":true},"message"'),
)

const QUESTIONS = {
  'elicitation/create': async () => ({ action: 'accept' as const, content: { name: HOSTILE.join() } }),
  'sampling/createMessage': async () => ({
    role: 'assistant' as const,
    model: 'test',
    content: { type: 'text' as const, text: HOSTILE.join() },
  }),
}

type Made = (client: ModernClient) => Promise<Record<string, unknown>>
const CALLS: Record<string, Made> = {
  'a tool': (client) => client.callTool({ name: 'echo', arguments: ARGUMENTS }),
  'a tool that asks a person': (client) => client.callTool({ name: 'trigger-elicitation-request', arguments: {} }),
  'a tool that asks a model': (client) =>
    client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'x', maxTokens: 5 } }),
  'a tool with a hostile name': (client) => client.callTool({ name: HOSTILE[0] as string, arguments: {} }),
  'a list': (client) => client.listTools(),
  'a prompt': (client) => client.getPrompt({ name: 'args-prompt', arguments: { city: HOSTILE.join() } }),
  'a resource': (client) => client.readResource({ uri: 'demo://resource/static/document/features.md' }),
  'a completion': (client) =>
    client.complete({
      ref: { type: 'ref/prompt', name: 'completable-prompt' },
      argument: { name: 'department', value: 'S' },
    }),
}

/** A file in a folder from which the SDKs can be imported. */
function codeFile(t: Test, name: string, code: string): string {
  const folder = temporaryFolder(t)
  symlinkSync(modules, join(folder, 'node_modules'), 'junction')
  mkdirSync(join(folder, 'code'))
  const file = join(folder, 'code', name)
  writeFileSync(file, code)
  return file
}

/** Runs code, and gives what it prints. */
async function printed(
  t: Test,
  code: string,
  env: Record<string, string>,
  args: readonly string[] = [],
): Promise<unknown> {
  const file = codeFile(t, 'call.mjs', code)
  const { stdout } = await promisify(execFile)(execPath, [file, ...args], { env: { ...process.env, ...env } })
  return JSON.parse(stdout)
}

/** What both SDKs hand out of an answer: SDK v1 is never a modern client. */
function payload({
  _meta,
  resultType: _type,
  ttlMs: _ttl,
  cacheScope: _scope,
  ...rest
}: Record<string, unknown>): object {
  return rest
}

function namesIn({ tools }: Record<string, unknown>): object {
  return (tools as { name: string }[]).map(({ name }) => name)
}

function lastCall(ring: Ring): CallView | undefined {
  const views = new Views()
  for (const seen of eventsIn(ring)) views.add(withText(ring, seen))
  return [...views.calls.values()].at(-1)
}

function withText(ring: Ring, seen: RecordedEvent): RecordedEvent {
  const payload = ring.text(seen.seq)
  return payload && seen.kind === 'message' ? { ...seen, payload } : seen
}

for (const [revision, mode] of [
  ['2026-07-28', { pin: '2026-07-28' }],
  ['2025-11-25', 'legacy'],
] as const)
  for (const tokens of [undefined, { alice: TOKEN }])
    t.test(`calls of a client of ${revision}, ${tokens ? 'with' : 'without'} a token`, async (t) => {
      const ring = new Ring({ payloads: 'all' })
      const recorder = new EventRecorder(ring.record)
      const { url } = await startBridge(t, everything, tokens ? { auth: { tokens } } : {}, { recorder })
      const client = new ModernClient(
        { name: 'copied', version: '1' },
        { capabilities: { elicitation: { form: {} }, sampling: {} }, versionNegotiation: { mode } },
      )
      client.setRequestHandler('elicitation/create', QUESTIONS['elicitation/create'])
      client.setRequestHandler('sampling/createMessage', QUESTIONS['sampling/createMessage'])
      const headers = tokens ? { authorization: `Bearer ${TOKEN}` } : {}
      await client.connect(new ModernHttp(new URL(url), { requestInit: { headers } }))
      t.teardown(() => client.close())
      const env = { MCP_BRIDGE_URL: url, ...(tokens && { TOKEN }) }
      // The token is in the same place of all code. What a legacy client can do is not in its calls, and decides what it is listed.
      const calls = Object.entries(CALLS).filter(([what]) => mode !== 'legacy' || what !== 'a list')
      for (const [what, make] of calls.slice(0, tokens ? 1 : undefined))
        await t.test(what, async (t) => {
          const answer = await make(client)
          await until(() => !['open', 'asks'].includes(lastCall(ring)?.status ?? 'open'), 'the call has ended')
          const call = lastCall(ring) as CallView
          for (const sdk of ['sdk-v1', 'sdk-v2'] as const) {
            const { command = '', variables } = COPY_FORMS[sdk].of(call) ?? {}
            t.same(variables, Object.keys(env), 'it says what it needs')
            t.match(
              command,
              /^[\t\n -~\u00a0-\u200a\u2010-\u2027\u202f-\uffff]*$/,
              'no character of it acts on a terminal',
            )
            const again = (await printed(t, command, env)) as Record<string, unknown>
            // A legacy client is listed other members.
            const shown = sdk === 'sdk-v1' && what === 'a list' ? namesIn : payload
            t.same(shown(again), shown(answer), `${sdk} has the same answer`)
          }
          const { command = '' } = COPY_FORMS.recording.of(call) ?? {}
          const file = temporaryFile(t, 'calls.json', command)
          t.equal(readRecording(command).calls.length, 1)
          const { code, stdout } = await run(t, ['replay', file, '--', execPath, EVERYTHING, 'stdio'])
          t.equal(code, 0, stdout)
        })
    })

t.test('a client on stdio is repeated with the command of its server', async (t) => {
  const seen = { v: 1, at: 1, kind: 'message', hop: 'client', bytes: 1 } as const
  const text = (value: object) => ({
    payload: { text: JSON.stringify({ jsonrpc: '2.0', id: 1, ...value }), cut: 0, hidden: 0 },
  })
  const events: RecordedEvent[] = [
    {
      ...seen,
      seq: 1,
      dir: 'in',
      form: 'request',
      ...text({ method: 'tools/call', params: { name: 'echo', arguments: { message: 'hi' } } }),
    },
    {
      ...seen,
      seq: 2,
      dir: 'out',
      form: 'result',
      ...text({ result: { content: [{ type: 'text', text: 'Echo: hi' }] } }),
    },
  ]
  const view = {
    client: { era: 'legacy', revision: '2025-11-25', transport: 'stdio' },
    server: 'x',
    status: 'ok',
    events,
  } as const
  const call = view as unknown as CallView
  t.equal(COPY_FORMS.curl.of(call), undefined)
  for (const sdk of ['sdk-v1', 'sdk-v2'] as const) {
    const { command = '', variables } = COPY_FORMS[sdk].of(call) ?? {}
    t.same(variables, [])
    const bridge = bridgeCommand('--log-level', 'silent', '--listen', 'stdio', '--', execPath, EVERYTHING, 'stdio')
    t.match(await printed(t, command, {}, [bridge.command, ...bridge.args]), { content: [{ text: 'Echo: hi' }] })
  }

  const WITHOUT: [why: string, events: readonly object[], status?: string][] = [
    ['it runs', events, 'open'],
    ['it was cancelled', events, 'cancelled'],
    ['no text is kept', events.map((one) => ({ ...one, payload: undefined }))],
    [
      'a text is cut off',
      events.map((one) => ({ ...one, payload: { ...(one as { payload: object }).payload, cut: 1 } })),
    ],
    ['it has no answer', events.slice(0, 1)],
    ['it has no request', events.slice(1)],
  ]
  for (const [why, of, status = 'ok'] of WITHOUT)
    for (const form of Object.values(COPY_FORMS))
      t.equal(form.of({ ...view, events: of, status } as unknown as CallView), undefined, `${form.label}: ${why}`)
})

t.test('the code is TypeScript that the SDKs accept', async (t) => {
  const call = {
    name: HOSTILE.join(),
    server: 'x',
    capabilities: { roots: {} },
    method: 'tools/call',
    params: { name: 'echo', arguments: ARGUMENTS, _meta: { mine: 1 } },
    answers: [
      { method: 'elicitation/create', result: { action: 'accept', content: { name: HOSTILE[0] } } },
      { method: 'elicitation/create', result: { action: 'decline' } },
      { method: 'sampling/createMessage', result: await QUESTIONS['sampling/createMessage']() },
      { method: 'roots/list', result: { roots: [{ uri: 'file:///x' }] } },
    ],
    expect: { result: {} },
  }
  const folder = temporaryFolder(t)
  symlinkSync(modules, join(folder, 'node_modules'), 'junction')
  const files: string[] = []
  for (const sdk of ['v1', 'v2'] as const)
    for (const revision of ['2026-07-28', '2025-11-25'])
      for (const transport of ['http', 'stdio'] as const) {
        const code = sdkCodeOf({ ...call, revision }, { sdk, transport, needsToken: true })
        const file = join(folder, `${sdk}-${revision}-${transport}.ts`)
        writeFileSync(file, code ?? '')
        files.push(file)
      }
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const tsc = join(modules, 'typescript/bin/tsc')
  const flags = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--types',
    'node',
  ]
  const { stdout } = await promisify(execFile)(execPath, [tsc, ...flags, ...files], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  )
  t.equal(stdout, '')
})
