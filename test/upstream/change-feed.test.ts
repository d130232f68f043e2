import t, { type Test } from 'tap'
import { parseObject, value } from '../../src/base/rpc/splice.js'
import { ChangeFeed } from '../../src/servers/legacy/change-feed.js'
import { stopClock } from '../support/clock.js'

const UPDATED = 'notifications/resources/updated'
const TOOLS = 'notifications/tools/list_changed'
const PROMPTS = 'notifications/prompts/list_changed'

function start(t: Test, refused: readonly string[] = []) {
  const sent: string[] = []
  const heard: string[] = []
  const changeFeed = new ChangeFeed({
    async send(method, uri) {
      sent.push(`${method.replace('resources/', '')} ${uri}`)
      if (refused.includes(uri)) throw new Error('No')
    },
  })
  const watcher = (name: string) => ({
    changed: (method: string, params: ReturnType<typeof parseObject>) => {
      heard.push(`${name}: ${method.replace('notifications/', '')} ${String(value(params, 'uri') ?? '')}`.trim())
    },
    missed: () => heard.push(`${name}: missed`),
    lost: () => heard.push(`${name}: lost`),
  })
  return { changeFeed, sent, heard, watcher, clock: stopClock(t) }
}

t.test('subscribes to a resource once for all, until a while after the last has left', async (t) => {
  const { changeFeed, sent, clock } = start(t)
  t.same(await Promise.all([changeFeed.subscribe('a'), changeFeed.subscribe('a'), changeFeed.subscribe('b')]), [
    true,
    true,
    true,
  ])
  t.same(sent, ['subscribe a', 'subscribe b'])
  changeFeed.unsubscribe('a')
  await clock.pass(10_000)
  t.equal(sent.length, 2, 'somebody is left')
  changeFeed.unsubscribe('a')
  await clock.pass(1_999)
  t.equal(sent.length, 2, 'who changes what it listens to comes back at once')
  t.ok(await changeFeed.subscribe('a'))
  await clock.pass(10_000)
  t.equal(sent.length, 2)
  changeFeed.unsubscribe('a')
  await clock.pass(2_000)
  t.same(sent.slice(2), ['unsubscribe a'])
  changeFeed.unsubscribe('a')
  changeFeed.unsubscribe('never')
  await clock.pass(10_000)
  t.equal(sent.length, 3)
  t.ok(await changeFeed.subscribe('a'))
  t.same(sent.slice(3), ['subscribe a'])
})

t.test('does not keep a refused subscription, and requests it again for the next caller', async (t) => {
  const { changeFeed, sent, clock } = start(t, ['no'])
  t.same(await Promise.all([changeFeed.subscribe('no'), changeFeed.subscribe('no')]), [false, false])
  t.same(changeFeed.wanted, [])
  t.equal(await changeFeed.subscribe('no'), false)
  changeFeed.unsubscribe('no')
  await clock.pass(10_000)
  t.same(sent, ['subscribe no', 'subscribe no'])
})

t.test('everybody gets every change, and equal changes at once are one', async (t) => {
  const { changeFeed, heard, watcher, clock } = start(t)
  const [one, other] = [watcher('one'), watcher('other')]
  changeFeed.add(one)
  changeFeed.add(other)
  changeFeed.notified(UPDATED, parseObject('{"uri":"a"}'))
  t.same(heard.splice(0), ['one: resources/updated a', 'other: resources/updated a'])
  for (let n = 0; n < 5; n++) changeFeed.notified(TOOLS, parseObject('{}'))
  changeFeed.notified(PROMPTS, parseObject('{}'))
  t.same(heard, [])
  await clock.pass(100)
  t.same(heard.splice(0).sort(), [
    'one: prompts/list_changed',
    'one: tools/list_changed',
    'other: prompts/list_changed',
    'other: tools/list_changed',
  ])
  changeFeed.notified(TOOLS, parseObject('{}'))
  changeFeed.remove(other)
  await clock.pass(100)
  t.same(heard.splice(0), ['one: tools/list_changed'])
  for (const [method, params] of [
    [UPDATED, '{}'],
    [UPDATED, '{"uri":7}'],
    ['notifications/message', '{"uri":"a"}'],
    ['notifications/tools/list_changed/more', '{}'],
    ['notifications/roots/list_changed', '{}'],
  ] as const)
    changeFeed.notified(method, parseObject(params))
  await clock.pass(1_000)
  t.same(heard, [])
})

t.test('reports a loss once, and the next session knows what it was', async (t) => {
  const { changeFeed, heard, sent, watcher, clock } = start(t)
  changeFeed.add(watcher('one'))
  for (const uri of ['a', 'b', 'c']) await changeFeed.subscribe(uri)
  changeFeed.unsubscribe('b')
  changeFeed.notified(TOOLS, parseObject('{}'))
  changeFeed.missed()
  t.same(changeFeed.wanted, ['a', 'c'])
  changeFeed.lose()
  changeFeed.lose()
  // A listener releases its session when the session is lost.
  for (const uri of ['a', 'c']) changeFeed.unsubscribe(uri)
  t.same(changeFeed.wanted, ['a', 'c'])
  await clock.pass(1_000)
  t.same(heard, ['one: missed', 'one: lost'])

  const next = start(t, ['c'])
  await next.changeFeed.keep(changeFeed.wanted)
  t.same(next.sent, ['subscribe a', 'subscribe c'])
  t.ok(await next.changeFeed.subscribe('a'))
  await clock.pass(10_000)
  t.same(next.sent, ['subscribe a', 'subscribe c'], 'it was kept for who wants it at once')
  t.equal(sent.length, 3)
})

t.test('does not wait for a server that does not acknowledge again', async (t) => {
  const clock = stopClock(t)
  const changeFeed = new ChangeFeed({ send: () => new Promise(() => {}) })
  let done = false
  const keeping = changeFeed.keep(['a']).then(() => {
    done = true
  })
  await clock.pass(999)
  t.notOk(done)
  await clock.pass(1)
  await keeping
})
