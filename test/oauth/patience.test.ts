/** How long a request waits for a sign-in, whatever happens. */
import t from 'tap'
import { TokenAccount } from '../../src/services/oauth/client/account.js'
import type { Obtainer } from '../../src/services/oauth/client/obtain.js'
import { MemoryStore } from '../../src/services/oauth/store/memory.js'
import { stopClock } from '../support/clock.js'
import { reasonOf } from '../support/signing-in.js'

const HOUR = 3_600_000

t.test('a request waits only for a bounded time if authorization servers are slow', async (t) => {
  const clock = stopClock(t)
  const never = new Promise<never>(() => {})
  const account = new TokenAccount({
    server: 'stock',
    settings: { grant: 'code' },
    store: new MemoryStore(),
    holder: { endpoint: 'https://mcp.example/mcp', account: 'local' },
    // A real one fails sooner, unless each of its documents comes just in time.
    obtainer: async () => ({ find: () => never }) as unknown as Obtainer,
  })
  const refusal = { status: 401, challenges: [], sent: undefined } as const
  const waiting = reasonOf(account.refused(refusal, new AbortController().signal, true))
  await clock.pass(HOUR)
  t.match(await waiting, { reason: 'sign_in_pending', message: /"stock" is slow to answer/ })
})
