/** Sessions by their ids, with nothing behind them: whose they are, how long they last, how many there may be. */
import t, { type Test } from 'tap'
import { Fault } from '../../../src/base/fault/fault.js'
import { type KeptSession, Sessions, type SessionsOptions } from '../../../src/clients/http/sessions.js'
import { until } from '../../support/eventually.js'
import { faultOf } from '../../support/faults.js'

class Pretended implements KeptSession {
  readonly principal: string
  busy = false
  unanswered = 0
  gone = false
  alive = 0
  closed = 0
  drained = 0

  constructor(principal: string) {
    this.principal = principal
  }

  keepAlive(): void {
    this.alive++
  }

  drain(): void {
    this.drained++
  }

  close(): void {
    this.closed++
  }
}

function sessionsOf(t: Test, options: Partial<SessionsOptions> = {}): Sessions<Pretended> {
  const sessions = new Sessions<Pretended>({ max: 10, idle: 60_000, keepAlive: 60_000, ...options })
  t.teardown(() => sessions.close())
  return sessions
}

function add(sessions: Sessions<Pretended>, principal = 'alice') {
  const session = new Pretended(principal)
  return { id: sessions.add(session), session }
}

t.test('finds a session by its id, for its owner only', async (t) => {
  const sessions = sessionsOf(t)
  const alice = add(sessions, 'alice')
  const bob = add(sessions, 'bob')
  t.equal(sessions.find(alice.id, 'alice'), alice.session)
  t.equal(sessions.find(bob.id, 'bob'), bob.session)
  t.equal(sessions.find(alice.id, 'bob'), undefined)
  for (const id of ['', 'x', '__proto__', 'constructor', alice.id.slice(0, -1), `${alice.id} `])
    t.equal(sessions.find(id, 'alice'), undefined, id)
  t.equal(sessions.size, 2)
})

t.test('ids are visible ASCII, unguessable and unique', async (t) => {
  const sessions = sessionsOf(t, { max: 2_000 })
  const ids = Array.from({ length: 1_000 }, () => add(sessions).id)
  t.equal(new Set(ids).size, ids.length)
  for (const id of ids) t.match(id, /^[A-Za-z0-9_-]{32}$/)
})

t.test('a session that ends is closed once, and removed', async (t) => {
  const sessions = sessionsOf(t)
  const { id, session } = add(sessions)
  sessions.end(id)
  sessions.end(id)
  sessions.end('unknown')
  t.equal(session.closed, 1)
  t.equal(sessions.find(id, 'alice'), undefined)
})

t.test('the least recently used session makes room, unless it is in use', async (t) => {
  const sessions = sessionsOf(t, { max: 3 })
  const [first, second, third] = [add(sessions), add(sessions), add(sessions)]
  sessions.find(first.id, 'alice')
  sessions.find(second.id, 'bob')
  second.session.busy = true
  add(sessions)
  t.equal(third.session.closed, 1, 'the second is older, but busy, and who asks for another’s has not used it')
  t.equal(sessions.size, 3)
  add(sessions)
  t.equal(first.session.closed, 1)
  t.equal(second.session.closed, 0)
})

t.test('with all sessions in use there is no room, and none is added', async (t) => {
  const sessions = sessionsOf(t, { max: 2 })
  for (const { session } of [add(sessions), add(sessions)]) session.busy = true

  t.match(
    faultOf(() => add(sessions)),
    { fault: 'overloaded', retryAfter: 1 },
  )
  t.throws(() => sessions.makeRoom('alice'), Fault)
  t.equal(sessions.size, 2)
})

t.test('idle sessions end, busy ones do not, and become idle when their requests are done', async (t) => {
  const sessions = sessionsOf(t, { idle: 300, keepAlive: 20 })
  const [idle, busy] = [add(sessions), add(sessions)]
  busy.session.busy = true
  await until(() => idle.session.closed === 1)
  t.equal(busy.session.closed, 0)
  busy.session.busy = false
  t.equal(sessions.find(busy.id, 'alice'), busy.session)
  const asked = idle.session.alive
  await until(() => busy.session.closed === 1)
  t.equal(idle.session.alive, asked, 'who has ended gives no signs of life')
  t.equal(sessions.size, 0)
})

t.test('a session ends sooner when the stream of its client is gone', async (t) => {
  const sessions = sessionsOf(t, { idle: 60_000, gone: 200, keepAlive: 20 })
  const [silent, gone, back] = [add(sessions), add(sessions), add(sessions)]
  gone.session.gone = true
  back.session.gone = true
  back.session.busy = true
  await until(() => gone.session.closed === 1)
  t.equal(silent.session.closed, 0, 'a client without a stream may only be silent')
  t.equal(back.session.closed, 0, 'one that waits for an answer is there')
  back.session.busy = false
  await until(() => back.session.closed === 1)
})

t.test('sessions of one principal make room among themselves, and leave room for others', async (t) => {
  const sessions = sessionsOf(t, { max: 4, share: 0.5 })
  const modest = add(sessions, 'modest')
  const greedy = [add(sessions, 'greedy')]
  for (let n = 0; n < 20; n++) greedy.push(add(sessions, 'greedy'))
  t.equal(modest.session.closed, 0)
  t.same([sessions.size, greedy.filter(({ session }) => session.closed === 0).length], [2, 1])
  for (const { session } of greedy) session.busy = true
  t.match(
    faultOf(() => add(sessions, 'greedy')),
    { fault: 'rateLimited', status: 429, retryAfter: 1 },
  )
  t.equal(add(sessions, 'other').session.closed, 0)
})

t.test('all open streams get keep-alive comments', async (t) => {
  const sessions = sessionsOf(t, { keepAlive: 10 })
  const all = [add(sessions).session, add(sessions).session]
  await until(() => all.every(({ alive }) => alive >= 3))
})

t.test('drains all, and closes all, even if closing one closes others', async (t) => {
  const sessions = sessionsOf(t)
  const all = [add(sessions), add(sessions), add(sessions)]
  const [first, second] = all as [(typeof all)[0], (typeof all)[0]]
  first.session.drain = () => sessions.end(second.id)
  sessions.drain()
  t.same(
    all.map(({ session }) => session.drained),
    [0, 1, 1],
  )
  t.equal(sessions.size, 2)
  sessions.close()
  t.same(
    all.map(({ session }) => session.closed),
    [1, 1, 1],
  )
  t.equal(sessions.size, 0)
})
