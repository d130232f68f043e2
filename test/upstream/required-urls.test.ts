/** A server that still requires a URL after the client has accepted it: when the bridge repeats the call, and whom it asks. */
import t from 'tap'
import { parseObject } from '../../src/base/rpc/splice.js'
import { CompletedElicitations } from '../../src/servers/legacy/completed-elicitations.js'
import { type RequiredUrl, UrlElicitation } from '../../src/servers/legacy/required-urls.js'
import { stopClock } from '../support/clock.js'

const visitsOf = () => new CompletedElicitations(() => true)
const page = (url: string, id = ''): RequiredUrl => ({ url, id, message: 'Go' })
const completed = (visits: CompletedElicitations, id: string) =>
  visits.completed(parseObject(JSON.stringify({ elicitationId: id })))
const never = new AbortController().signal

const SAME: [what: string, accepted: RequiredUrl, required: RequiredUrl][] = [
  ['the same', page('https://a.example/x', '1'), page('https://a.example/x', '1')],
  ['the same without an id', page('https://a.example/x?y=1'), page('https://a.example/x?y=1')],
  ['the same id', page('https://a.example/x', '1'), page('https://a.example/y', '1')],
  ['a new id in the query', page('https://a.example/x?e=id-1', 'id-1'), page('https://a.example/x?e=id-2', 'id-2')],
  ['a new id in the path', page('https://a.example/e/id-1/go', 'id-1'), page('https://a.example/e/id-2/go', 'id-2')],
  ['a new state', page('https://a.example/x?state=1&p=q', '1-1'), page('https://a.example/x?p=q&state=2', '2-2')],
]
const OTHERS: [what: string, accepted: RequiredUrl, required: RequiredUrl][] = [
  ['another page', page('https://a.example/x', 'id-1'), page('https://a.example/y', 'id-2')],
  ['another parameter', page('https://a.example/x?p=github', 'id-1'), page('https://a.example/x?p=slack', 'id-2')],
  ['another host', page('https://a.example/x'), page('https://b.example/x')],
]

t.test('does not ask again for an accepted URL while the user is there', async (t) => {
  for (const [what, accepted, required] of SAME) {
    const clock = stopClock(t)
    const visit = new UrlElicitation([accepted])
    t.same(visit.toAsk([required], visitsOf()), [], what)
    await clock.pass(44_950)
    t.same(visit.toAsk([required], visitsOf()), [], what)
    await clock.pass(100)
    t.same(visit.toAsk([required], visitsOf()), [required], `${what}, when the time is up`)
    const visits = visitsOf()
    if (accepted.id !== '') completed(visits, accepted.id)
    const again = new UrlElicitation([accepted]).toAsk([required], visits)
    t.same(again, accepted.id === '' ? [] : [required], `${what}, if the server says that the user is done`)
  }
  for (const [what, accepted, required] of OTHERS)
    t.same(new UrlElicitation([accepted]).toAsk([accepted, required], visitsOf()), [required], what)
})

t.test('repeats a call whose URL is required again after 5, 10, 20 seconds and at the end', async (t) => {
  const clock = stopClock(t)
  const visit = new UrlElicitation([page('https://a.example/x', '1')])
  const visits = visitsOf()
  // Advances the clock to 50 ms after each delay.
  for (const wait of [5_000, 10_000, 20_000, 9_850]) {
    let over = false
    const waiting = visit.wait([page('https://a.example/x', '2')], visits, never).then(() => {
      over = true
    })
    await clock.pass(wait - 50)
    t.notOk(over, `not before ${wait} ms`)
    await clock.pass(100)
    await waiting
  }
})

t.test('repeats a call as soon as the server reports that the user is done, once per report', async (t) => {
  stopClock(t)
  const visit = new UrlElicitation([page('https://a.example/x', '1'), page('https://a.example/y', '2')])
  const visits = visitsOf()
  const first = visit.wait([], visits, never)
  completed(visits, '2')
  await first
  let over = false
  const second = visit.wait([page('https://a.example/x', '3')], visits, never).then(() => {
    over = true
  })
  completed(visits, 'of somebody else')
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(over)
  completed(visits, '3')
  await second
  const given = new AbortController()
  const third = visit.wait([], visits, given.signal)
  given.abort()
  await third
  t.pass('nor does it wait when the call is given up')
})
