/** Programs that hang are replaced, and programs that work are not. Names begin with the number of the finding. */
import t, { type Test } from 'tap'
import { Peer } from '../../src/servers/peer.js'
import { StdioTransport } from '../../src/servers/transport/stdio/stdio.js'
import { startBridge } from '../support/bridge.js'
import { type HeldTimers, holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { linesOf } from '../support/transcript.js'
import { runs, unkind } from '../support/unkind.js'

const tool = (url: string, name: string, args: object = {}): Promise<Answer> =>
  call(url, 'tools/call', { name, arguments: args })

/** A time limit of calls, which no other timer has. */
const CALL = 1_234_567

/** A call that takes too long. */
async function lateCall(t: Test, url: string, timeLimit: HeldTimers, name: string, args?: object): Promise<void> {
  const answer = tool(url, name, args)
  await until(() => timeLimit.waiting > 0, 'the call')
  timeLimit.pass()
  t.match((await answer).message.error, { data: { reason: 'upstream_timeout' } })
}

t.test(
  'pings a program that hangs, replaces it if it is silent, and lets it execute nothing when it wakes',
  async (t) => {
    const executions = `${temporaryFolder(t)}/executions`
    const legacy = legacyStdio(t, { executions })
    const modern = modernStdio(t, { executions })
    const timeLimits = [CALL, 2 * CALL].map((call) => [call, holdTimers(t, call)] as const)
    await Promise.all(
      [legacy, modern].map(async ({ server, pids }, n) => {
        const [call, timeLimit] = timeLimits[n] as (typeof timeLimits)[0]
        const { url, log } = await startBridge(t, server, { timeouts: { call } })
        await until(async () => (await tool(url, 'echo')).message.result !== undefined, 'an answer')
        const [first] = pids().map(Number)
        process.kill(first as number, 'SIGSTOP')
        for (const key of ['one', 'two']) await lateCall(t, url, timeLimit, 'act', { key })
        await until(() => !runs(first as number), 'the end of the program that hangs')
        await until(async () => (await tool(url, 'echo')).message.result !== undefined, 'an answer of another one')
        t.equal(pids().length, 2)
        t.ok(log.some(({ why }) => /The server hangs/.test(String(why))))
      }),
    )
    t.same(linesOf(executions), [])
  },
)

t.test('pings a program if several clients gave up after a long wait, and no call is open', async (t) => {
  const { server, pids } = unkind(t)
  const channel = await new StdioTransport({ ...server, env: {} }).open()
  t.teardown(() => channel.close(true))
  const peer = new Peer(channel)
  let ended: string | undefined
  peer.owner = {
    ...peer.owner,
    ping: { method: 'ping', params: undefined },
    ended: ({ message }) => (ended = message),
  }
  await peer.call('ping', undefined, 30_000)
  process.kill(Number(pids()[0]), 'SIGSTOP')
  const giveUp = (waited: number) => {
    const exchange = peer.beginExchange()
    peer.send(exchange, 'tools/call', '{"name":"never"}')
    exchange.sentAt -= waited
    return exchange
  }
  const asked = () => [...peer.open].length
  for (let n = 0; n < 3; n++) peer.release(giveUp(1_000))
  t.equal(asked(), 0, 'they were in a hurry')
  const other = giveUp(0)
  for (let n = 0; n < 3; n++) peer.release(giveUp(31_000))
  t.equal(asked(), 1, 'somebody still waits')
  peer.release(other)
  for (let n = 0; n < 2; n++) peer.release(giveUp(31_000))
  t.equal(asked(), 1, 'the program is asked')
  await until(() => ended !== undefined, 'the end of the program that hangs')
  t.match(ended, /The server hangs: it answered neither 2 calls in a row nor ping/)
})

t.test('keeps a program that answers a ping, however many calls it leaves open', async (t) => {
  const stdio = unkind(t)
  const timeLimit = holdTimers(t, CALL)
  const { url } = await startBridge(t, stdio.server, { timeouts: { call: CALL } })
  t.ok((await tool(url, 'echo')).message.result)
  for (let n = 0; n < 5; n++) await lateCall(t, url, timeLimit, 'never')
  await until(() => stdio.messages().some(({ method }) => method === 'ping'), 'a ping')
  t.ok((await tool(url, 'echo')).message.result)
  t.equal(stdio.pids().length, 1)
})
