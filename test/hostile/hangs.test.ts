/** Programs that hang are replaced, and programs that work are not. Names begin with the number of the finding. */
import t from 'tap'
import { Peer } from '../../src/upstream/peer.js'
import { StdioTransport } from '../../src/upstream/transport/stdio.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { linesOf } from '../support/transcript.js'
import { runs, unkind } from '../support/unkind.js'

const tool = (url: string, name: string, args: object = {}): Promise<Answer> =>
  call(url, 'tools/call', { name, arguments: args })

/** Two calls of a tool that nobody answers, because the program has been stopped. */
async function stopAndCall(url: string, pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  for (const key of ['one', 'two'])
    await tool(url, 'act', { key }).then(({ message }) => t.match(message.error?.data, { reason: 'upstream_timeout' }))
}

t.test('H15 a program that hangs is asked, replaced if it is silent, and runs nothing when it wakes', async (t) => {
  const executions = `${temporaryFolder(t)}/executions`
  const legacy = legacyStdio(t, { executions })
  const modern = modernStdio(t, { executions })
  await Promise.all(
    [legacy, modern].map(async ({ server, pids }) => {
      const { url, log } = await startBridge(t, server, { timeouts: { call: 2_000 } })
      await until(async () => (await tool(url, 'echo')).message.result !== undefined, 'an answer')
      const [first] = pids().map(Number)
      await stopAndCall(url, first as number)
      await until(() => !runs(first as number), 'the end of the program that hangs')
      await until(async () => (await tool(url, 'echo')).message.result !== undefined, 'an answer of another one')
      t.equal(pids().length, 2)
      t.ok(log.some(({ why }) => /The server hangs/.test(String(why))))
    }),
  )
  t.same(linesOf(executions), [])
})

t.test('H15 clients who stop waiting say as much, if they have waited long and no other does', async (t) => {
  const { server, pids } = unkind(t)
  const channel = await new StdioTransport({ ...server, env: {} }).open()
  t.teardown(() => channel.close(true))
  const peer = new Peer(channel)
  let ended: string | undefined
  peer.events = {
    ...peer.events,
    ping: { method: 'ping', params: undefined },
    ended: ({ message }) => (ended = message),
  }
  await peer.call('ping', undefined, 30_000)
  process.kill(Number(pids()[0]), 'SIGSTOP')
  const giveUp = (waited: number) => {
    const exchange = peer.begin()
    exchange.send('tools/call', '{"name":"never"}')
    exchange.sentAt -= waited
    return exchange
  }
  const asked = () => [...peer.open].length
  for (let n = 0; n < 3; n++) giveUp(1_000).release()
  t.equal(asked(), 0, 'they were in a hurry')
  const other = giveUp(0)
  for (let n = 0; n < 3; n++) giveUp(31_000).release()
  t.equal(asked(), 1, 'somebody still waits')
  other.release()
  for (let n = 0; n < 2; n++) giveUp(31_000).release()
  t.equal(asked(), 1, 'the program is asked')
  await until(() => ended !== undefined, 'the end of the program that hangs')
  t.match(ended, /The server hangs: it answered neither 2 calls in a row nor ping/)
})

t.test('H15 a program that answers when it is asked is left alone, however many calls it leaves open', async (t) => {
  const stdio = unkind(t)
  const { url } = await startBridge(t, stdio.server, { timeouts: { call: 2_000 } })
  for (let n = 0; n < 5; n++)
    t.match((await tool(url, 'never')).message.error, { data: { reason: 'upstream_timeout' } })
  await until(() => stdio.messages().some(({ method }) => method === 'ping'), 'a ping')
  t.ok((await tool(url, 'echo')).message.result)
  t.equal(stdio.pids().length, 1)
})
