/**
 * `--record` and `mcp-bridge replay`, as people run them: real clients of both eras record calls of real servers of both eras, and
 * the calls are made again.
 */
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { Client as ModernClient } from '@modelcontextprotocol/client'
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { type RecordingCall, readRecording, writeRecording } from '../../src/inspector/replay/recording.js'
import { startModern } from '../interop/modern-servers.js'
import { bridgeCommand, run } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'

const resolve = createRequire(import.meta.url).resolve
const program = (name: string, ...args: string[]) => ['--', execPath, resolve(name), ...args]
const EVERYTHING = program('@modelcontextprotocol/server-everything/dist/index.js', 'stdio')
const MEMORY = program('@modelcontextprotocol/server-memory/dist/index.js')

const INFO = { name: 'recorded', version: '1' }
const CAPABILITIES = { elicitation: { form: {} }, sampling: {} }
const SAMPLED = { role: 'assistant' as const, model: 'test', content: { type: 'text' as const, text: 'Paris' } }
const ANSWERED = { action: 'accept' as const, content: { name: 'Ada', color: 'blue', confirm: true } }
const HOSTILE = 'it\'s "quoted" `ticks` ${process.exit(7)} \\ \u2028\u2029\n\u0000\u202e <b> 日本 \u{1f600}'

type Recorded = Pick<Client, 'callTool' | 'listTools' | 'readResource' | 'close'>

/** Clients of each era, connected to a bridge that records. */
const CLIENTS: Record<string, (command: { command: string; args: string[] }) => Promise<Recorded>> = {
  '2025-11-25': async (command) => {
    const client = new Client(INFO, { capabilities: CAPABILITIES })
    client.setRequestHandler(ElicitRequestSchema, () => ANSWERED)
    client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED)
    await client.connect(new StdioClientTransport({ ...command, stderr: 'ignore' }))
    return client
  },
  '2026-07-28': async (command) => {
    const versionNegotiation = { mode: { pin: '2026-07-28' } }
    const client = new ModernClient(INFO, { capabilities: CAPABILITIES, versionNegotiation })
    client.setRequestHandler('elicitation/create', () => ANSWERED)
    client.setRequestHandler('sampling/createMessage', () => SAMPLED)
    await client.connect(new ModernStdio({ ...command, stderr: 'ignore' }))
    return client as unknown as Recorded
  },
}

const modern = await startModern(t, 'conformance/modern-server')

/** Servers of each era, and a call of each kind. */
const SERVERS: Record<
  string,
  { server: string[]; calls: { name: string; arguments: Record<string, unknown> }[]; unknown: string }
> = {
  legacy: {
    server: EVERYTHING,
    calls: [
      { name: 'echo', arguments: { message: HOSTILE } },
      { name: 'get-sum', arguments: { b: 2, a: 1 } },
      { name: 'trigger-elicitation-request', arguments: {} },
      { name: 'trigger-sampling-request', arguments: { prompt: 'Capital?', maxTokens: 5 } },
      { name: 'no-such-tool', arguments: {} },
    ],
    unknown: 'demo://resource/no/such',
  },
  modern: {
    server: ['--upstream', modern.stdio?.upstream ?? ''],
    calls: [
      { name: 'test_simple_text', arguments: {} },
      { name: 'test_input_required_result_elicitation', arguments: {} },
      { name: 'test_input_required_result_multi_round', arguments: {} },
      { name: 'test_error_handling', arguments: {} },
    ],
    unknown: 'test://no/such',
  },
}

/** Makes all calls of a server as a client, while the bridge records. Gives the file. */
async function record(
  t: Test,
  revision: string,
  { server, calls, unknown }: (typeof SERVERS)[string],
): Promise<string> {
  const file = join(temporaryFolder(t), 'calls.json')
  const client = await CLIENTS[revision]?.(bridgeCommand('--listen', 'stdio', '--record', file, ...server))
  if (!client) throw new Error('no client')
  await client.listTools()
  for (const call of calls) await client.callTool(call).catch(() => {})
  await t.rejects(client.readResource({ uri: unknown }))
  await client.close()
  await until(() => callsIn(file).length === calls.length + 2, 'all calls are in the file')
  return file
}

function callsIn(file: string): readonly RecordingCall[] {
  return readRecording(readFileSync(file, 'utf8')).calls
}

for (const [era, server] of Object.entries(SERVERS))
  for (const revision of Object.keys(CLIENTS))
    t.test(`calls of a ${era} server by a client of ${revision} are answered as recorded`, async (t) => {
      const file = await record(t, revision, server)
      if (process.platform !== 'win32') t.equal(statSync(file).mode & 0o777, 0o600)
      const calls = callsIn(file)
      t.ok(calls.every((call) => call.revision === revision))
      t.same(
        calls.map(({ params }) => params['arguments']).filter(Boolean),
        server.calls.map((call) => call.arguments),
        'the arguments are those that were sent',
      )
      t.ok(
        calls.some(({ answers }) => answers?.length),
        'with answers to questions',
      )
      t.ok(
        calls.some(({ expect }) => 'error' in expect),
        'with an error',
      )
      const { code, stdout, stderr } = await run(t, ['replay', file, ...server.server])
      t.equal(code, 0, stdout + stderr)
      t.match(stdout, new RegExp(`${calls.length} calls: ${calls.length} as recorded\\n$`))
    })

t.test('another answer is shown with its place, and ends with 1', async (t) => {
  const file = await record(t, '2025-11-25', SERVERS['legacy'] as (typeof SERVERS)[string])
  const changed = callsIn(file).map((call) =>
    call.name === 'tools/call get-sum'
      ? { ...call, expect: { result: { content: [{ type: 'text', text: 'three' }], old: 1 } } }
      : call,
  )
  writeFileSync(file, writeRecording({ calls: changed }))
  const { code, stdout } = await run(t, ['replay', file, ...EVERYTHING])
  t.equal(code, 1)
  t.match(
    stdout,
    /✗ tools\/call get-sum .*\n {4}− \/result\/old\n {8}recorded: 1\n {4}~ \/result\/content\/0\/text\n {8}recorded: "three"\n {8}now: {6}"The sum of 1 and 2 is 3\."\n/,
  )
  t.match(stdout, /7 calls: 6 as recorded, 1 with another answer\n$/)

  const json = await run(t, ['replay', '--json', file, ...EVERYTHING])
  t.equal(json.code, 1)
  const told = JSON.parse(json.stdout)
  t.match(told, { same: 6, different: 1, failed: 0 })
  t.match(
    told.calls.find(({ outcome }: { outcome: string }) => outcome === 'different'),
    {
      name: 'tools/call get-sum',
      differences: [
        { at: '/result/old', op: 'remove', expected: 1 },
        { at: '/result/content/0/text', op: 'replace', expected: 'three' },
      ],
    },
  )

  writeFileSync(file, writeRecording({ calls: changed, ignore: ['/result/old', '/result/content/*/text'] }))
  t.equal((await run(t, ['replay', file, ...EVERYTHING])).code, 0, 'what is ignored is not compared')
})

t.test('questions that the recording does not expect fail the call, and those that are missing', async (t) => {
  const call = (name: string, answers: RecordingCall['answers'], expect: object): RecordingCall => ({
    revision: '2025-11-25',
    method: 'tools/call',
    params: { name, arguments: {} },
    ...(answers && { answers }),
    expect: { result: expect as Record<string, unknown> },
    ignore: ['/result', '/error'],
  })
  const calls = [
    call('trigger-elicitation-request', undefined, {}),
    call('get-tiny-image', [{ method: 'elicitation/create', result: { action: 'decline' } }], {}),
  ]
  const file = temporaryFile(t, 'calls.json', writeRecording({ calls }))
  const { code, stdout } = await run(t, ['replay', file, ...EVERYTHING])
  t.equal(code, 1)
  t.match(stdout, 'The server asked elicitation/create, and the recording has no answer to that')
  t.match(stdout, 'The server did not ask elicitation/create, as it did when this was recorded')
  t.match(stdout, '2 calls: 0 as recorded, 2 failed')
})

t.test('a secret is hidden in the file, and its call is made again once it is filled in', async (t) => {
  const server = {
    server: EVERYTHING,
    calls: [{ name: 'echo', arguments: { message: 'hi', token: 'hunter2' } }],
    unknown: 'demo://x',
  }
  const file = await record(t, '2026-07-28', server)
  t.notMatch(readFileSync(file, 'utf8'), 'hunter2')
  const { code, stdout } = await run(t, ['replay', file, ...EVERYTHING])
  t.equal(code, 1)
  t.match(stdout, 'enter a value at /params/arguments/token')
  writeFileSync(file, readFileSync(file, 'utf8').replace('‹hidden›', 'hunter2'))
  t.equal((await run(t, ['replay', file, ...EVERYTHING])).code, 0)
})

t.test('calls are added to a recording, and another file stays as it is', async (t) => {
  const file = await record(t, '2025-11-25', { server: EVERYTHING, calls: [], unknown: 'demo://x' })
  const [, ...args] = [execPath, '--listen', 'stdio', '--record', file, ...EVERYTHING]
  const client = await CLIENTS['2026-07-28']?.(bridgeCommand(...args))
  await client?.callTool({ name: 'echo', arguments: { message: 'more' } })
  await client?.close()
  await until(() => callsIn(file).length === 3, 'the call is added')
  t.same(
    callsIn(file).map(({ revision }) => revision),
    ['2025-11-25', '2025-11-25', '2026-07-28'],
  )

  const other = temporaryFile(t, 'notes.txt', 'my notes')
  const { code, stderr } = await run(t, ['--record', other, ...EVERYTHING])
  t.equal(code, 2)
  t.match(stderr, /--record needs a new file or a recording, and .*notes\.txt is none/)
  t.equal(readFileSync(other, 'utf8'), 'my notes')
  const folder = temporaryFolder(t)
  t.equal((await run(t, ['--record', folder, ...EVERYTHING])).code, 2)
  t.equal((await run(t, ['--record', join(folder, 'none/calls.json'), ...EVERYTHING])).code, 2)
  t.notOk(existsSync(join(folder, 'none')))
})

t.test('a server that does not start, or is another one, ends with 1', async (t) => {
  const file = await record(t, '2025-11-25', SERVERS['legacy'] as (typeof SERVERS)[string])
  const missing = await run(t, ['replay', file, '--', execPath, '/no/such/server.js'])
  t.equal(missing.code, 1)
  t.match(missing.stderr, /is not available[\s\S]*Cannot find module/)
  const nobody = await run(t, ['replay', file, 'http://127.0.0.1:9/mcp'])
  t.equal(nobody.code, 1)
  t.match(nobody.stderr, 'http://127.0.0.1:9/mcp')
  const other = await run(t, ['replay', file, ...MEMORY])
  t.equal(other.code, 1)
  t.match(other.stdout, /✗ tools\/list/)
})

t.test('a wrong file ends with 2, and no server is started', async (t) => {
  const large = temporaryFile(t, 'large.json', '{')
  truncateSync(large, 100 * 1024 * 1024)
  const WRONG: [file: string, message: string][] = [
    [large, 'the file is larger than 64 MB'],
    [temporaryFile(t, 'broken.json', '{"recording":1,"calls":[{]}'), 'the file is not JSON'],
    [temporaryFile(t, 'binary.json', '\u0000\u0001'), 'it is UTF-16'],
    [temporaryFile(t, 'mcp.json', { mcpServers: {} }), 'is not a recording of mcp-bridge'],
    [
      temporaryFile(t, 'calls.json', { recording: 1, calls: [{ revision: '2025-11-25', method: 'ping', params: {} }] }),
      '/calls/0 lacks "expect"',
    ],
    ['no-such-file.json', 'the file does not exist'],
    [temporaryFolder(t), 'cannot use'],
  ]
  const started = join(temporaryFolder(t), 'started')
  const server = ['--', execPath, '-e', `require('fs').writeFileSync(${JSON.stringify(started)}, '')`]
  for (const [file, message] of WRONG) {
    const { code, stderr } = await run(t, ['replay', file, ...server])
    t.equal(code, 2, message)
    t.match(stderr, message)
  }
  for (const args of [
    ['replay'],
    ['replay', large],
    ['replay', large, 'example.com'],
    ['replay', large, 'https://a/mcp', 'b'],
  ])
    t.equal((await run(t, args)).code, 2, args.join(' '))
  t.notOk(existsSync(started))
})

t.test('of several servers, each call goes to the one of its name', async (t) => {
  const mcpServers = Object.fromEntries(
    [['one', EVERYTHING] as const, ['two', MEMORY] as const].map(([name, [, command, ...args]]) => [
      name,
      { command, args },
    ]),
  )
  const config = temporaryFile(t, 'mcp.json', { mcpServers })
  const call = (server: string): RecordingCall => ({
    name: server,
    server,
    revision: '2026-07-28',
    method: 'tools/call',
    params: { name: server === 'two' ? 'read_graph' : 'echo', arguments: server === 'two' ? {} : { message: 'x' } },
    expect: { result: {} },
    ignore: ['/result'],
  })
  const file = temporaryFile(t, 'calls.json', writeRecording({ calls: [call('one'), call('two'), call('three')] }))
  const { code, stdout } = await run(t, ['replay', file, '--config', config])
  t.equal(code, 1)
  t.match(stdout, /✓ one .*\n✓ two .*\n! three .*\n {4}There is no server or group "three": there are /)
})
