/** Subscriptions that a modern server on a pipe ends without a result, as a pipe has it: clients go on hearing of changes. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { changed, hears, listen, told, updated } from '../support/listening.js'
import { call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'

const URI = 'test://item/a'
const FILTER = { toolsListChanged: true, resourceSubscriptions: [URI] }

for (const cancel of ['plain', 'named'])
  t.test(`reopens a subscription that the server has cancelled (${cancel})`, async (t) => {
    const stdio = modernStdio(t)
    const { url } = await startBridge(t, stdio.server)
    const touch = (what: object) => call(url, 'tools/call', { name: 'touch', arguments: what })
    const listens = () => stdio.messages().filter(({ method }) => method === 'subscriptions/listen').length
    const stream = await listen(url, FILTER, { id: 'mine' })
    await stream.has(1)
    await touch({ cancel })
    t.same(await hears(stream, 2), [changed('tools'), updated(URI)], 'anything may have changed meanwhile')
    await touch({ uris: [URI] })
    t.same((await hears(stream, 3)).at(-1), updated(URI))
    t.equal(listens(), 2)
    t.notMatch(stream.text, /cancelled/, 'the id in it would be the bridge’s own')
    t.equal(stream.messages.filter(({ method }) => String(method).endsWith('acknowledged')).length, 1)
    t.notOk(stream.over)
    t.same(stdio.cancelled(), [], 'what the server has cancelled it is not told to cancel')

    await touch({ cancel })
    await hears(stream, 5)
    stream.leave()
    await until(() => stdio.cancelled().length === 1, 'the end of the third')
    t.equal(listens(), 3)
    t.same(stdio.violations(), [])
  })

t.test('a legacy client hears of changes after the server has cancelled its subscription', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server)
  const client = await LegacyClient.open(url)
  const stream = await client.listen()
  await client.request('resources/subscribe', { uri: URI })
  await client.call('touch', { cancel: 'plain' })
  await hears(stream, 4)
  await client.call('touch', { uris: [URI] })
  t.same((await hears(stream, 5)).at(-1), updated(URI))
})

t.test('a subscription that the server does not reopen ends for its client', async (t) => {
  const stdio = modernStdio(t, { listen: 'once' })
  const { url } = await startBridge(t, stdio.server)
  const stream = await listen(url, FILTER, { id: 'mine' })
  await stream.has(1)
  await call(url, 'tools/call', { name: 'touch', arguments: { cancel: 'plain' } })
  await stream.ended()
  t.match(stream.answer('mine'), { result: { resultType: 'complete' } })
  t.same(told(stream), [])
})

t.test('a subscription outlives the process of its server', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server)
  const stream = await listen(url, FILTER)
  await stream.has(1)
  process.kill(Number(stdio.pids()[0]), 'SIGKILL')
  t.same(await hears(stream, 2), [changed('tools'), updated(URI)])
  await call(url, 'tools/call', { name: 'touch', arguments: { uris: [URI] } })
  t.same((await hears(stream, 3)).at(-1), updated(URI))
  t.equal(stdio.pids().length, 2)
})

t.test('a subscription that the server ended with a result has ended', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server)
  const stream = await listen(url, FILTER)
  await stream.has(1)
  await call(url, 'tools/call', { name: 'touch', arguments: { end: true } })
  await stream.ended()
  t.match(stream.messages.at(-1), { result: { resultType: 'complete' } })
})
