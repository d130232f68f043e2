/** Streams of HTTP+SSE servers that have died without an end: the machine slept, or a balancer has forgotten them. */
import { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { holdTimers, leaper } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { initialize } from '../support/legacy-client.js'
import { LegacySse } from '../support/legacy-sse.js'
import { type Answer, call } from '../support/modern.js'
import { openPipe, type Pipe } from '../support/pipe.js'
import { ForwardProxy } from '../support/proxy.js'

/** Time limits of calls, and of the look at the server. No other timer has these lengths. */
const CALL = 1_234_567
const LOOK = 5_000

const tool = (url: string, name: string, args: object = {}): Promise<Answer> =>
  call(url, 'tools/call', { name, arguments: args })
const said = (text: string) => ({ result: { content: [{ text }] } })

async function start(t: Test) {
  const legacy = await LegacySse.start(t)
  const timeLimit = holdTimers(t, CALL)
  const { url, log } = await startBridge(t, { type: 'sse', url: legacy.url }, { timeouts: { call: CALL } })
  t.match((await tool(url, 'echo', { n: 1 })).message, said('{"n":1}'))
  const late = async (name: string, args?: object) => {
    const answer = tool(url, name, args)
    await until(() => timeLimit.waiting > 0, 'the call')
    timeLimit.pass()
    t.match((await answer).message.error, { data: { reason: 'upstream_timeout' } })
  }
  const pings = () => legacy.received.filter(({ message }) => message['method'] === 'ping').length
  return { legacy, url, log, late, pings }
}

t.test('a call without an answer makes the bridge check the stream, and reopen a dead one', async (t) => {
  const { legacy, url, log, late } = await start(t)
  legacy.cutOff()
  const look = holdTimers(t, LOOK)
  await late('echo', { n: 2 })
  await until(() => look.waiting > 0, 'the look')
  // It waits for the result, so it is not lost on the dead stream.
  const next = tool(url, 'echo', { n: 3 })
  const calls = () => legacy.received.filter(({ message }) => message['method'] === 'tools/call')
  await until(() => log.some(({ event }) => event === 'call'), 'the log of the call before')
  look.run()
  t.match((await next).message, said('{"n":3}'))
  t.same(
    calls().map(({ message }) => (message['params'] as { arguments: unknown }).arguments),
    [{ n: 1 }, { n: 2 }, { n: 3 }],
    'each was sent once',
  )
  t.equal(legacy.received.filter(({ method }) => method === 'GET').length, 2)
})

t.test('a slow server keeps its stream', async (t) => {
  const { legacy, url, late, pings } = await start(t)
  for (let n = 1; n <= 3; n++) {
    await late('wait', { ms: 3_600_000 })
    await until(() => pings() === n, 'the look')
    t.match((await tool(url, 'echo', { n })).message, said(`{"n":${n}}`))
  }
  t.equal(legacy.received.filter(({ method }) => method === 'GET').length, 1)
})

t.test('a legacy client on stdio that cancels a call gets another stream, too', async (t) => {
  const legacy = await LegacySse.start(t)
  const pipe = openPipe(t, { type: 'sse', url: legacy.url })
  pipe.line(initialize('2025-06-18'))
  await answerTo(pipe, 'hello')
  say(pipe, { method: 'notifications/initialized' })
  say(pipe, { id: 1, method: 'tools/call', params: { name: 'echo', arguments: { n: 1 } } })
  await answerTo(pipe, 1)
  legacy.cutOff()
  const look = holdTimers(t, LOOK)
  const leap = leaper(t)
  say(pipe, { id: 2, method: 'tools/call', params: { name: 'echo', arguments: { n: 2 } } })
  await until(() => legacy.received.some(({ message }) => JSON.stringify(message).includes('{"n":2}')), 'the call')
  leap(LOOK)
  say(pipe, { method: 'notifications/cancelled', params: { requestId: 2 } })
  await until(() => look.waiting > 0, 'the look')
  look.run()
  say(pipe, { id: 3, method: 'tools/call', params: { name: 'echo', arguments: { n: 3 } } })
  t.match(await answerTo(pipe, 3), said('{"n":3}'))
})

t.test('connections to servers use TCP keep-alive, also those to a proxy', async (t) => {
  const legacy = await LegacySse.start(t)
  const proxy = await ForwardProxy.start(t)
  const { port } = new URL(legacy.url)
  const kept = new Map<string, number>()
  const own = Socket.prototype.setKeepAlive
  Socket.prototype.setKeepAlive = function keep(on, delay) {
    if (on === true && delay !== undefined) kept.set(String(this.remotePort), delay)
    return own.call(this, on, delay)
  }
  t.teardown(() => {
    Socket.prototype.setKeepAlive = own
  })
  const lanes = [
    [legacy.url, {}, port],
    [`http://tools.example:${port}/sse`, { HTTP_PROXY: proxy.url }, new URL(proxy.url).port],
  ] as const
  for (const [server, env, connectedTo] of lanes) {
    const { url } = await startBridge(t, { type: 'sse', url: server }, {}, { env })
    t.match((await tool(url, 'echo', { n: 1 })).message, said('{"n":1}'))
    t.equal(kept.get(connectedTo), 30_000, server)
  }
})

function say(pipe: Pipe, message: object): void {
  pipe.line(JSON.stringify({ jsonrpc: '2.0', ...message }))
}

async function answerTo(pipe: Pipe, id: unknown) {
  const found = () => pipe.messages().find((message) => message['id'] === id)
  await until(() => found() !== undefined, `an answer to ${JSON.stringify(id)}`)
  return found()
}
