/** Whose the sessions are that are relayed, as far as that is remembered. */
import t from 'tap'
import { RelayedSessions } from '../../../src/downstream/http/relayed-sessions.js'

t.test('remembers the sessions of others, however many one principal opens', async (t) => {
  const told: string[] = []
  const sessions = new RelayedSessions({ max: 6, share: 0.5, report: (what) => told.push(what) })
  await sessions.opened('modest', { principal: 'modest', ours: false })
  for (let n = 0; n < 100; n++) await sessions.opened(`greedy-${n}`, { principal: 'greedy', ours: true })
  t.equal(await sessions.isOf('modest', 'modest', false), true)
  t.equal(await sessions.isOf('greedy', 'greedy-99', false), true)
  t.equal(await sessions.isOf('greedy', 'greedy-0', false), false)
  t.equal(sessions.isOurs('greedy-99'), true)
  t.equal(sessions.size, 3)
  await t.rejects(sessions.isOf('greedy', 'modest', false), { message: /^Session not found/ })
  sessions.forget('modest')
  t.equal(sessions.size, 2)
  t.equal(told.filter((what) => what === 'opened').length - told.filter((what) => what === 'ended').length, 2)
})

t.test('forgets the least recently used session first', async (t) => {
  const sessions = new RelayedSessions({ max: 2, report: () => {} })
  for (const id of ['one', 'two']) await sessions.opened(id, { principal: 'alice', ours: false })
  await sessions.isOf('alice', 'one', false)
  await sessions.opened('three', { principal: 'alice', ours: false })
  t.equal(await sessions.isOf('alice', 'two', false), false)
  t.equal(await sessions.isOf('alice', 'one', false), true)
})
