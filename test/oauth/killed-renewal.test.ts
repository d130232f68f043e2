/** Processes that are killed or stopped while they renew a token (support/killed-renewal.ts), with records in files, and at one step in Redis. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import type { TokenStore } from '../../src/services/oauth/store/store.js'
import { HOUR, rotating, STEPS, testKilled, testLate } from '../support/killed-renewal.js'
import { noRedis } from '../support/redis.js'
import { Protected, signingIn } from '../support/signing-in.js'

const never = new AbortController().signal

t.test('records in files', async (t) => {
  testKilled(t, 'files', STEPS)
  testLate(t, 'files')
})

t.test('records in Redis', { skip: noRedis }, async (t) => testKilled(t, 'Redis', STEPS.slice(-1)))

t.test('what an issuer has given is stored when the store is back, and asked for once', async (t) => {
  const { as, seen, take, refreshes } = await rotating(t, 0)
  const server = await Protected.start(t, as.issuer)
  const { store: kept, folder, unauthorized: signIn } = signingIn(t, { server })
  const sent = await signIn()
  let away = 0
  const store: TokenStore = {
    stamp: (key) => kept.stamp(key),
    read: (key) => kept.read(key),
    remove: (key) => kept.remove(key),
    list: () => kept.list(),
    change: (key, holder, edit) =>
      away-- > 0
        ? Promise.reject(new Fault('storeUnavailable', 'Redis is away', { retryAfter: 1 }))
        : kept.change(key, holder, edit),
  }
  as.script = {
    token: (request) => {
      away = 3
      return take(request)
    },
  }
  const { account, unauthorized } = signingIn(t, { server, folder, store })
  t.match(await unauthorized(sent), /renewed/)
  t.match(await kept.read(account.key), { token: { access: /renewed/ }, lease: undefined })
  t.equal(refreshes(), 1)
  t.same(seen, { isRevoked: false, again: 0 })
})

t.test('a lease that was left behind ends, whatever the clock of its holder said', async (t) => {
  const { as, seen } = await rotating(t, 0)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, account, store } = signingIn(t, { server })
  const sent = await unauthorized()
  const until = Date.now() + 1_000 * HOUR
  await store.change(account.key, { endpoint: server.url, account: 'local' }, (record) => {
    record.lease = { owner: 'killed', until }
  })
  t.match(await unauthorized(sent), /renewed/)
  t.same(seen, { isRevoked: false, again: 0 })
  t.match(await account.authorization(never), /renewed/)
})
