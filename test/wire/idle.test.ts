/** What ends because nobody uses it, and what stays because somebody is there. */
import { pino } from 'pino'
import t from 'tap'
import { serverOptions } from '../../src/app/server-options.js'
import { unlimited } from '../../src/base/limits/memory.js'
import { parseSettings, type ServerSettings } from '../../src/config/settings.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { ended, outlastIdleLimit } from '../support/idle.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'

const echo = { name: 'echo', arguments: { x: 1 } }

t.test('an idle program stays as long as an idle client, unless configured', async (t) => {
  const idleOf = (entry: object, timeouts: object = {}) => {
    const all = parseSettings({ mcpServers: { it: entry }, timeouts }, { env: {}, read: String })
    const context = { log: pino({ level: 'silent' }), version: '0', env: {} }
    return serverOptions('it', all.mcpServers['it'] as ServerSettings, all, context, { memory: unlimited(), keys: [] })
      .timeouts.idle
  }
  const [program, address] = [{ command: 'program' }, { url: 'http://127.0.0.1/mcp' }]
  t.equal(idleOf(program), 1_800_000)
  t.equal(idleOf(program, { clientIdle: 7 }), 7)
  t.equal(idleOf(address), 600_000)
  t.equal(idleOf({ ...program, timeouts: { idle: 7 } }), 7)
  t.equal(idleOf(program, { idle: 7 }), 7)
  t.equal(idleOf(address, { idle: 7 }), 7)
})

t.test('ends an idle program after the configured time', async (t) => {
  for (const program of [legacyStdio(t), modernStdio(t)]) {
    const { url } = await startBridge(t, program.server, { timeouts: { idle: 100 } })
    await call(url, 'tools/call', echo)
    await until(() => ended(program).length === 1, 'the end of the process')
    t.match((await call(url, 'tools/call', echo)).message, { result: { structuredContent: { x: 1 } } })
    t.equal(program.pids().length, 2)
  }
})

t.test('ends a program that was only probed, too, if no call follows', async (t) => {
  for (const program of [legacyStdio(t), modernStdio(t)]) {
    const { url, bridge } = await startBridge(t, program.server, { timeouts: { idle: 100 } })
    await bridge.warmUp(() => {})
    await until(() => ended(program).length === 1, 'the end of the process')
    t.match((await call(url, 'tools/call', echo)).message, { result: { structuredContent: { x: 1 } } })
    t.equal(program.pids().length, 2)
  }
})

t.test('a process that is being ended as idle is gone when the bridge is', async (t) => {
  for (const program of [legacyStdio(t, { stubborn: true }), modernStdio(t, { stubborn: true })]) {
    const { url, bridge } = await startBridge(t, program.server, { timeouts: { idle: 100 } })
    await call(url, 'tools/call', echo)
    await until(() => ended(program).length === 1, 'the beginning of its end')
    await bridge.close()
    t.throws(() => process.kill(Number(program.pids()[0]), 0), { code: 'ESRCH' })
  }
})

t.test('a program stays while its client is connected by a pipe, however silent', async (t) => {
  for (const program of [legacyStdio(t), modernStdio(t)]) {
    const pipe = openPipe(t, program.server, { timeouts: { idle: 100 } })
    await pipe.call('tools/call', echo)
    await outlastIdleLimit(t)
    t.match(await pipe.call('tools/call', echo), { result: { structuredContent: { x: 1 } } })
    t.same([program.pids().length, ended(program)], [1, []])
  }
})

t.test('a modern program stays while a legacy client has its session', async (t) => {
  const program = modernStdio(t)
  const { url } = await startBridge(t, program.server, { timeouts: { idle: 100 } })
  const client = await LegacyClient.open(url)
  await client.call('echo', { x: 1 })
  await outlastIdleLimit(t)
  t.same(ended(program), [])
  await client.end()
  await until(() => ended(program).length === 1, 'the end of the process')
})

t.test('the session of a client that left ends soon, and its process', async (t) => {
  const program = legacyStdio(t)
  const timeouts = { clientIdle: 600_000, clientGone: 200, keepAlive: 50 }
  const { url } = await startBridge(t, program.server, { timeouts })
  const [gone, silent, back] = [
    await LegacyClient.open(url),
    await LegacyClient.open(url),
    await LegacyClient.open(url),
  ]
  const stream = await gone.listen()
  const broken = await back.listen()
  const again = await back.listen()
  const [first = ''] = program.pids()
  stream.leave()
  broken.leave()
  await until(() => ended(program).length === 1, 'the end of the process')
  t.same(ended(program), [first])
  t.equal((await gone.request('tools/list')).status, 404)
  t.equal((await silent.request('tools/list')).status, 200, 'who never had a stream may only be silent')
  await outlastIdleLimit(t)
  t.equal((await back.request('tools/list')).status, 200, 'who has another stream is there')
  again.leave()
  await until(() => ended(program).length === 2, 'the end of the other')
})
