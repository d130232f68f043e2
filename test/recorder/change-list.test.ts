/** Lists of changes: equal ones are one object, as far as they are remembered. */
import t from 'tap'
import { parseObject } from '../../src/base/rpc/splice.js'
import { ChangeList, MAX_CHANGES } from '../../src/inspector/recorder/change-list.js'
import { Place } from '../../src/inspector/recorder/changes.js'

const empty = () => new ChangeList((op, path) => `${op} ${path}`)

t.test('equal lists are one object, which takes no memory again', async (t) => {
  const message = new Place()
  const none = empty()
  const list = () => none.with('remove', message.member('a')).with('add', message.member('b').element(3))
  t.equal(list(), list())
  t.equal(list().all, list().all)
  t.equal(list().weight, 0)
  t.same(list().all, [
    { at: '/a', op: 'remove', rule: 'remove /a' },
    { at: '/b/3', op: 'add', rule: 'add /b/*' },
  ])
  t.not(none.with('replace', message.member('a')), none.with('remove', message.member('a')))
  t.same(none.all, [])
})

t.test('determines a rule again for each message if an element decides it', async (t) => {
  let asked = 0
  const none = new ChangeList(() => `rule ${++asked}`)
  const place = new Place().member('list').element(0)
  const became = { before: parseObject('{}'), after: undefined }
  const rules = [1, 2].map(() => none.with('remove', place, became).all[0]?.rule)
  t.same(rules, ['rule 1', 'rule 2'])
  t.ok(none.with('remove', place, became).weight > 0)
})

t.test('names that only one message has are not remembered without bound', async (t) => {
  const message = new Place()
  const none = empty()
  for (let i = 0; i < 20_000; i++) none.with('remove', message.member(`k${i}`))
  t.equal(message.member('k1'), message.member('k1'))
  t.not(message.member('k19999'), message.member('k19999'))
  t.equal(message.member('k19999').at, '/k19999')
  t.ok(none.with('remove', message.member('k19999')).weight > 0)
  t.same(none.with('remove', message.member('k19999')).all, none.with('remove', message.member('k19999')).all)
  const long = 'x'.repeat(1_000_000)
  t.not(new Place().member(long), new Place().member(long))
  t.ok(new Place().member(long).at.length < 300)
})

t.test('long places are not remembered without bound', async (t) => {
  let place = new Place()
  const name = 'n'.repeat(200)
  const places: Place[] = []
  for (let depth = 0; depth < 60; depth++) {
    place = place.member(name)
    for (let i = 0; i < 100; i++) places.push(place.element(i))
  }
  const characters = places
    .filter(({ isKept }) => isKept)
    .reduce((sum, { at, path }) => sum + at.length + path.length, 0)
  t.ok(characters > 500_000 && characters < 1_100_000, `${characters} characters`)
  t.equal(places.at(-1)?.at.length, 60 * 201 + 3, 'the others are made anew')
})

t.test('counts changes beyond the bound', async (t) => {
  const message = new Place()
  let list = empty()
  for (let i = 0; i < MAX_CHANGES + 50; i++) list = list.with('remove', message.member('list').element(i))
  t.match(list, { all: { length: MAX_CHANGES }, more: 50 })
})
