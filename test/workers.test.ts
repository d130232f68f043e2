/** Several processes serve as one bridge (`workers`). Each request of these tests has a connection of its own, which the workers get in turn. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { connect } from 'node:net'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { kill } from 'node:process'
import t, { type Test } from 'tap'
import { ADA, all, NAME, of, startAsker, talk } from './support/asking.js'
import { type Program, run, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile, temporaryFolder } from './support/folder.js'
import { freePort } from './support/free-port.js'
import { LegacyClient } from './support/legacy-client.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { call, send } from './support/modern.js'
import { modernStdio } from './support/modern-stdio.js'
import { noRedis, RedisServer } from './support/redis.js'
import { makeCa } from './support/tls.js'

interface Status {
  workers?: number
  status: string
  servers: Record<string, { programs: number; sessions: number }>
}

/** Serves with two workers. Resolves when both do. */
async function start(t: Test, server: object, settings: object = {}, env: Record<string, string> = {}) {
  const config = { mcpServers: { test: server }, listen: 'http://127.0.0.1:0/mcp', workers: 2, ...settings }
  const file = temporaryFile(t, 'config.json', config)
  const program = startProgram(t, ['--config', file, '--log-format', 'json'], env)
  const [, url = ''] = await says(program, /"url":"(http:\/\/[^"]*|unix:[^"]*)"/)
  const bridge = { program, file, url, origin: url.replace(/\/mcp$/, '') }
  await until(async () => (await statusOf(bridge)).workers === 2, 'two workers')
  return bridge
}

async function statusOf({ origin }: { origin: string }): Promise<Status> {
  return (await send('GET', `${origin}/status`, undefined, {})).message as unknown as Status
}

const linesOf = (program: Program) =>
  program
    .stderr()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
/** The workers that have answered calls, by their numbers. */
const answering = (program: Program) =>
  [...new Set(linesOf(program).flatMap(({ event, worker }) => (event === 'call' ? Number(worker) : [])))].sort()

async function metric({ origin }: { origin: string }, pattern: RegExp): Promise<number> {
  const text = await (await fetch(`${origin}/metrics`)).text()
  return Number(pattern.exec(text)?.[1] ?? Number.NaN)
}

t.test('a session of a worker is served over the connections of all', async (t) => {
  const bridge = await start(t, modernStdio(t).server)
  const client = await LegacyClient.open(bridge.url)
  const answers = []
  for (let i = 0; i < 6; i++) answers.push(await client.request('tools/list'))
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200, 200],
  )
  t.ok((await metric(bridge, /^mcp_bridge_forwarded_total\{.*outcome="answered"\} (\d+)$/m)) >= 2)
  t.equal((await statusOf(bridge)).servers['test']?.sessions, 1, 'it is one session of one worker')
})

t.test('a question that one worker has parked is answered by way of the other', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { url } = await start(t, asker.server)
  const client = talk(url, asker)
  const first = await client.steps([{ ask: [NAME] }, { ask: [NAME] }, { ask: [NAME] }])
  const second = await client.again(first, all(first, ADA))
  const third = await client.again(second, all(second, ADA))
  t.same((await client.again(third, all(third, ADA))).said, [ADA, ADA, ADA])
  t.equal(of(asker, 'tools/call').length, 1, 'the server was called once')
})

t.test('a killed worker is replaced, its sessions are lost, and nothing is done twice', async (t) => {
  const { server, messages } = modernStdio(t)
  const bridge = await start(t, server)
  const { program, url } = bridge
  const clients = await Promise.all(Array.from({ length: 4 }, () => LegacyClient.open(url)))
  const before = workersOf(program)
  t.equal(before.length, 2)
  const calls = clients.map((client) =>
    client.request('tools/call', { name: 'wait', arguments: { ms: 1_000 } }).catch(() => undefined),
  )
  const begun = () => messages().filter(({ method }) => method === 'tools/call').length
  await until(() => begun() === 4, 'the calls')
  kill(before[0] as number, 'SIGKILL')
  await says(program, /"event":"worker_lost"/)
  const answers = await Promise.all(calls)
  t.equal(begun(), 4, 'no call was made again')
  t.ok(answers.filter((answer) => answer?.status === 200).length <= 3)
  await until(async () => (await statusOf(bridge)).workers === 2, 'a worker in its place')
  const now = workersOf(program)
  t.notOk(now.includes(before[0] as number))
  const after = await Promise.all(clients.map((client) => client.request('tools/list')))
  t.same(
    [...new Set(after.map(({ status }) => status))].sort(),
    [200, 404],
    'sessions of the other worker go on, the others are to be opened again',
  )
  t.equal((await call(url, 'tools/list')).status, 200)

  const again = now.find((pid) => !before.includes(pid)) as number
  kill(again, 'SIGKILL')
  await until(() => lostIn(program).length === 2)
  t.same(
    lostIn(program).map(({ againIn }) => againIn),
    [100, 200],
    'one that ends soon again is replaced later',
  )
})

const lostIn = (program: Program) => linesOf(program).filter(({ event }) => event === 'worker_lost')

/** The processes that a program has started to serve. */
function workersOf({ child }: Program): number[] {
  const text = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

t.test('limits on requests, metrics and bounds count for all workers together', async (t) => {
  const bridge = await start(t, modernStdio(t).server, {
    limits: { tools: [{ tools: '*', max: 6, every: '1h' }], calls: 101 },
  })
  const made = []
  for (let i = 0; i < 10; i++) made.push(await call(bridge.url, 'tools/call', { name: 'echo', arguments: {} }))
  t.equal(made.filter(({ message }) => message.error === undefined).length, 6)
  t.same(answering(bridge.program), [1, 2])
  t.equal(await metric(bridge, /^mcp_bridge_bound_limit\{bound="calls".*\} (\d+)$/m), 100)
  const counted = /^mcp_bridge_calls_total\{.*method="tools\/call".*outcome="ok".*\} (\d+)$/m
  t.equal(await metric(bridge, counted), 6)
})

t.test('all workers drain, and the first process ends last', async (t) => {
  const { server, messages } = modernStdio(t)
  const { program, url } = await start(t, server)
  const calls = Array.from({ length: 4 }, () => call(url, 'tools/call', { name: 'wait', arguments: { ms: 1_500 } }))
  await until(() => messages().filter(({ method }) => method === 'tools/call').length === 4, 'the calls')
  program.child.kill('SIGTERM')
  t.same(
    (await Promise.all(calls)).map(({ status }) => status),
    [200, 200, 200, 200],
  )
  t.equal(await program.ended, 0)
  const stopped = linesOf(program).filter(({ event }) => event === 'stopping')
  t.same(stopped.map(({ worker }) => worker).sort(), [1, 2])
  await t.rejects(call(url, 'tools/list'), { code: 'ECONNREFUSED' })
})

t.test('all workers read the configuration again', async (t) => {
  const { program, file, url } = await start(t, modernStdio(t).server)
  const config = JSON.parse(readFileSync(file, 'utf8')) as { mcpServers: Record<string, object> }
  writeFileSync(file, JSON.stringify({ ...config, mcpServers: { ...config.mcpServers, more: legacyStdio(t).server } }))
  program.child.kill('SIGHUP')
  await until(() => linesOf(program).filter(({ event }) => event === 'config_changed').length === 2)
  const more = url.replace('/mcp', '/more/mcp')
  for (let i = 0; i < 4; i++) t.equal((await call(more, 'tools/list')).status, 200)
})

t.test('workers share a unix socket, which only its user can open', async (t) => {
  const path = join(temporaryFolder(t), 'bridge.sock')
  const file = temporaryFile(t, 'config.json', {
    mcpServers: { test: modernStdio(t).server },
    listen: `unix:${path}:/mcp`,
    workers: 2,
  })
  const program = startProgram(t, ['--config', file, '--log-format', 'json'])
  await until(() => linesOf(program).filter(({ event }) => event === 'server_ready').length === 2)
  t.equal(statSync(path).mode & 0o777, 0o600)
  const ask = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(path)
      socket.setEncoding('utf8').on('data', resolve).on('error', reject)
      socket.end('GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
    })
  for (let i = 0; i < 4; i++) t.match(await ask(), /^HTTP\/1\.1 200 /)
})

t.test('what keeps the first worker from serving ends the program, and is said once', async (t) => {
  const { url } = await start(t, modernStdio(t).server)
  const args = ['--config', temporaryFile(t, 'c.json', { mcpServers: { test: modernStdio(t).server } })]
  const { code, stderr } = await run(t, [...args, '--workers', '2', '--listen', url])
  t.equal(code, 1)
  t.equal(stderr.match(/listen_failed/g)?.length, 1, stderr)
  t.match(stderr, /port \d+ is in use/)
})

t.test('what one process alone can do is refused with several, and said', async (t) => {
  const server = modernStdio(t).server
  for (const [settings, words] of [
    [{ listen: 'stdio' }, /workers.*has to be 1 with .*stdio/],
    [{ inspect: {} }, /inspect.*shows the calls of one process/],
    [{ mcpServers: { test: { ...server, process: 'single' } } }, /process.*cannot be .*single.* with .*workers/],
    [{ limits: { processes: 1 } }, /limits\.processes.*is divided among 2 workers/],
  ] as const) {
    const file = temporaryFile(t, 'config.json', { mcpServers: { test: server }, workers: 2, ...settings })
    const { code, stderr } = await run(t, ['--config', file, '--log-format', 'json'])
    t.equal(code, 78, stderr)
    t.match(stderr.replaceAll('\\"', '"'), words)
  }
})

t.test(
  'with TLS and an address for operators, each connection is that of one worker, and answers are of all',
  async (t) => {
    const ca = await makeCa()
    const { cert, key } = await ca.serverOptions(['localhost', '127.0.0.1'])
    const admin = `http://127.0.0.1:${await freePort()}`
    const file = temporaryFile(t, 'config.json', {
      mcpServers: { test: modernStdio(t).server },
      tls: { cert: temporaryFile(t, 'tls.crt', cert), key: temporaryFile(t, 'tls.key', key) },
      listen: 'https://localhost:0/mcp',
      admin,
      workers: 2,
    })
    const program = startProgram(t, ['--config', file, '--log-format', 'json'])
    await until(() => linesOf(program).filter(({ event }) => event === 'server_ready').length === 2)
    const [, port] = /"url":"https:\/\/127.0.0.1:(\d+)\/mcp"/.exec(program.stderr()) ?? []
    for (let i = 0; i < 4; i++) {
      const status = await new Promise((resolve, reject) => {
        get({ host: 'localhost', port, path: '/healthz', ca: ca.cert, agent: false }, (response) =>
          resolve(response.resume().statusCode),
        ).on('error', reject)
      })
      t.equal(status, 404, 'health is at the address for operators')
      t.equal((await statusOf({ origin: admin })).workers, 2)
    }
  },
)

t.test('with Redis, workers are replicas like those of other machines', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const bridge = await start(t, modernStdio(t).server, {
    redis: { url: redis.url, timeout: 30_000 },
    stateKeys: ['a secret that all the replicas know of'],
  })
  const client = await LegacyClient.open(bridge.url)
  for (let i = 0; i < 4; i++) t.equal((await client.request('tools/list')).status, 200)
  t.ok((await metric(bridge, /^mcp_bridge_forwarded_total\{.*outcome="answered"\} (\d+)$/m)) >= 1)
  t.equal(await metric(bridge, /^mcp_bridge_redis_up (\d+)$/m), 1)
})

t.test('the file for the health check is written while all workers answer, and status tells of them', async (t) => {
  const state = temporaryFolder(t)
  const health = join(state, 'health')
  const env = { MCP_BRIDGE_HEALTH_FILE: health, XDG_STATE_HOME: state }
  const { program } = await start(t, modernStdio(t).server, {}, env)
  const age = () => uptime() - Number(readFileSync(health, 'utf8'))
  await until(() => age() < 3, 'a new time in the file')
  const { stdout } = await run(t, ['status'], env)
  t.match(stdout, `process ${program.child.pid}, 2 workers`)
  const [worker = 0] = workersOf(program)
  kill(worker, 'SIGSTOP')
  await until(() => age() > 8, 'an old time in the file')
  kill(worker, 'SIGCONT')
  await until(() => age() < 3, 'a new time in the file')
})
