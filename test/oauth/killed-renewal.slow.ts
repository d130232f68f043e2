/** Processes that are killed or stopped while they renew a token, with records in Redis: the steps that killed-renewal.test.ts leaves out. */
import t from 'tap'
import { STEPS, testKilled, testLate } from '../support/killed-renewal.js'
import { noRedis } from '../support/redis.js'

t.test('records in Redis', { skip: noRedis }, async (t) => {
  testKilled(t, 'Redis', STEPS.slice(0, -1))
  testLate(t, 'Redis')
})
