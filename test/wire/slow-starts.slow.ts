/** Programs that need long to start, for example because `npx` downloads them first. */
import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { downloads } from '../../src/servers/transport/stdio/downloads.js'
import { type Started, startBridge } from '../support/bridge.js'
import { startProgram } from '../support/cli.js'
import { holdTimers, leaper } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { initialize, LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'
import { SseClient } from '../support/sse-client.js'
import type { Transcript } from '../support/transcript.js'

/** Time limits that no other timer has. */
const INITIALIZE = 1_234_567
const START = 7_654_321
const WAIT = 2_345_678
const timeouts = { probe: 200, initialize: INITIALIZE, start: START, startWait: WAIT }

/** A file that lets a program start when it is there. */
function gate(t: Test): { startFile: string; open(): void; close(): void } {
  const startFile = join(temporaryFolder(t), 'start')
  return { startFile, open: () => writeFileSync(startFile, ''), close: () => rmSync(startFile) }
}

/** A function that lets `timeouts.initialize`, or more, pass while the program goes on writing. */
function passer(t: Test): (log: Started['log'], milliseconds?: number) => Promise<void> {
  const time = holdTimers(t, INITIALIZE)
  const leap = leaper(t)
  return async (log, milliseconds = INITIALIZE) => {
    await until(() => time.waiting > 0, 'a request that waits')
    leap(milliseconds)
    const lines = () => log.filter(({ event }) => event === 'server_stderr').length
    const before = lines()
    await until(() => lines() > before, 'a line on stderr')
    time.run()
  }
}

/** The program was started once, and got one `initialize`. */
function isOneProcess(t: Test, { pids, messages }: Transcript): void {
  t.equal(pids().length, 1, 'one process')
  t.equal(messages().filter(({ method }) => method === 'initialize').length, 1, 'one initialize')
}

const LIST = JSON.stringify({ jsonrpc: '2.0', id: 'list', method: 'tools/list' })

t.test('waits for a program that writes while it starts, in one process', async (t) => {
  type Begun = { log: Started['log']; answer: Promise<unknown> }
  const clients: [string, (t: Test, server: object) => Promise<Begun>][] = [
    [
      'by a modern client',
      async (t, server) => {
        const { url, log } = await startBridge(t, server, { timeouts })
        return { log, answer: call(url, 'tools/list').then(({ message }) => message) }
      },
    ],
    [
      'by a legacy client',
      async (t, server) => {
        const { url, log } = await startBridge(t, server, { timeouts })
        const answer = LegacyClient.open(url).then((client) => client.request('tools/list'))
        return { log, answer: answer.then(({ message }) => message) }
      },
    ],
    [
      'by a client of HTTP+SSE',
      async (t, server) => {
        const { url, log } = await startBridge(t, server, { timeouts })
        return { log, answer: SseClient.open(url, '2024-11-05').then((client) => client.request('tools/list')) }
      },
    ],
    [
      'by a client on stdio that has ended its input, however long that takes',
      async (t, server) => {
        const times = { ...timeouts, startWait: 1, drainTimeout: 60_000 }
        const pipe = openPipe(t, server, { timeouts: times })
        pipe.line(`${initialize('2025-06-18')}\n${LIST}`)
        return { log: pipe.log, answer: pipe.end().then(() => pipe.messages().at(-1)) }
      },
    ],
  ]
  for (const [name, begin] of clients)
    await t.test(name, async (t) => {
      const { startFile, open } = gate(t)
      const program = legacyStdio(t, { startFile, writes: 'downloading\n' })
      const passTime = passer(t)
      const { log, answer } = await begin(t, program.server)
      for (let n = 0; n < 3; n++) await passTime(log)
      open()
      t.match(await answer, { result: { tools: [] } })
      isOneProcess(t, program)
    })
})

t.test('waits for a modern program at its second start, too', async (t) => {
  const { startFile, open, close } = gate(t)
  const program = modernStdio(t, { startFile, writes: 'downloading\n' })
  const passTime = passer(t)
  const { url, log, bridge } = await startBridge(t, program.server, { timeouts })
  open()
  t.match((await call(url, 'tools/list')).message, { result: {} })
  close()
  process.kill(Number(program.pids()[0]), 'SIGKILL')
  await until(() => log.some(({ event }) => event === 'server_gone'), 'the end of the program')
  t.equal(bridge.server.verdict?.era, 'modern')
  const answer = call(url, 'tools/list')
  for (let n = 0; n < 3; n++) await passTime(log)
  open()
  t.match((await answer).message, { result: {} })
  t.equal(program.pids().length, 2)
})

t.test('a silent program ends after timeouts.initialize, which the message names', async (t) => {
  const { startFile } = gate(t)
  const { server } = legacyStdio(t, { startFile })
  const time = holdTimers(t, INITIALIZE)
  const leap = leaper(t)
  const { url } = await startBridge(t, server, { timeouts })
  const answer = call(url, 'tools/list')
  await until(() => time.waiting > 0, 'initialize')
  leap(INITIALIZE)
  time.run()
  t.match((await answer).message.error, {
    message: /No answer to initialize in 1234567 ms, in which the program wrote nothing \(timeouts\.initialize\)/,
    data: { outcome: 'not_executed' },
  })
})

t.test(
  'a program that writes without end ends after timeouts.start, and waiting calls start no other one',
  async (t) => {
    const { startFile } = gate(t)
    const program = legacyStdio(t, { startFile, writes: 'downloading\n' })
    const passTime = passer(t)
    const { url, log } = await startBridge(t, program.server, { timeouts })
    const clients = ['a', 'b', 'c'].map((name) => LegacyClient.open(url, { clientInfo: { name, version: '1' } }))
    await passTime(log, START)
    for (const { opened } of await Promise.all(clients))
      t.match(opened.message.error, {
        message: /No answer to initialize in the 7654321 ms that the program had to start \(timeouts\.start\)/,
        data: { outcome: 'not_executed' },
      })
    t.equal(program.pids().length, 1)
  },
)

t.test('waits for programs that download others, even if they are silent', async (t) => {
  const cases: [command: string, args: string[], does: boolean][] = [
    ['npx', ['-y', 'server'], true],
    ['/usr/local/bin/npx', [], true],
    ['C:\\Program Files\\nodejs\\npx.cmd', ['server'], true],
    ['uvx', ['server'], true],
    ['docker', ['run', '-i', 'image'], true],
    ['cmd', ['/c', 'npx', '-y', 'server'], true],
    ['sh', ['-c', 'cd /srv && exec npx -y server'], true],
    ['node', ['npx'], false],
    ['/opt/npx/server', [], false],
    ['sh', ['-c', 'node /srv/docker/server.js'], false],
  ]
  for (const [command, args, does] of cases) t.equal(downloads({ command, args }), does, [command, ...args].join(' '))

  const { startFile, open } = gate(t)
  const program = legacyStdio(t, { startFile })
  const npx = join(temporaryFolder(t), 'npx')
  symlinkSync(execPath, npx)
  const time = holdTimers(t, INITIALIZE)
  const leap = leaper(t)
  const { url } = await startBridge(t, { ...program.server, command: npx }, { timeouts })
  const answer = call(url, 'tools/list')
  await until(() => time.waiting > 0, 'initialize')
  leap(INITIALIZE)
  time.run()
  open()
  t.match((await answer).message, { result: { tools: [] } })
  isOneProcess(t, program)
})

t.test('a modern client is told in time that the program is starting, which continues', async (t) => {
  const { startFile, open } = gate(t)
  const program = legacyStdio(t, { startFile })
  const wait = holdTimers(t, WAIT)
  const { url } = await startBridge(t, program.server, { timeouts })
  const early = call(url, 'tools/list')
  await until(() => wait.waiting > 0, 'the call')
  wait.run()
  const { status, headers, message } = await early
  t.equal(status, 503)
  t.equal(headers['retry-after'], '5')
  t.match(message.error, { message: /The server is starting/, data: { outcome: 'not_executed', retryAfterMs: 5_000 } })

  const told = call(url, 'tools/call', { name: 'echo', arguments: {} }, { meta: { progressToken: 'p' } })
  open()
  t.match((await told).message, { result: {} })
  isOneProcess(t, program)
})

t.test('a legacy client is told in time, and gets the session that was opened for it when it retries', async (t) => {
  const { startFile, open } = gate(t)
  const program = legacyStdio(t, { startFile })
  const wait = holdTimers(t, WAIT)
  const { url } = await startBridge(t, program.server, { timeouts })
  const early = LegacyClient.open(url)
  await until(() => wait.waiting > 0, 'the client')
  wait.run()
  const { opened } = await early
  t.equal(opened.headers['retry-after'], '5')
  t.match(opened.message, { id: 'hello', error: { message: /The server is starting/ } })
  open()
  const client = await LegacyClient.open(url)
  t.match((await client.request('tools/list')).message, { result: { tools: [] } })
  isOneProcess(t, program)
  const other = await LegacyClient.open(url)
  t.match((await other.request('tools/list')).message, { result: { tools: [] } })
  t.equal(program.pids().length, 2, 'a session of its own')
})

t.test('probe and the end of the program name the options', async (t) => {
  const { startFile } = gate(t)
  const { server } = legacyStdio(t, { startFile, writes: 'downloading\n' })
  const times = { probe: 100, initialize: 6_000, start: 7_000 }
  const config = temporaryFile(t, 'config.json', { mcpServers: { slow: server }, timeouts: times })
  const commands = [['probe'], ['--listen', 'stdio']]
  const run = async (args: string[]) => {
    const program = startProgram(t, [...args, '--config', config])
    t.equal(await program.ended, 1)
    t.match(program.stderr(), /7000 ms that the program had to start \(timeouts\.start\)/)
    t.match(program.stderr(), /timeouts\.start/)
    if (args[0] === 'probe') t.match(program.stderr(), /up to 7 s from its start \(.*timeouts\.start\)/)
  }
  await Promise.all(commands.map(run))
})
