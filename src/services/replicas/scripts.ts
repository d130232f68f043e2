/** The scripts and transactions that the bridge runs in Redis, and an attempt to run each command that it needs. */
import type { Count, Swap } from './common.js'
import type { Expiring, Keys } from './connection.js'

/** Replaces the value of a key if it equals the expected one. An empty text stands for no value. */
const SWAP = `if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`
/** Milliseconds for which Redis keeps what an attempt has left. */
const BRIEFLY = 1_000

/** Resolves to whether the value was the expected one, and was replaced. */
export async function swap(keys: Keys, key: string, { from, to, milliseconds }: Swap): Promise<boolean> {
  return (await keys.eval(SWAP, { keys: [key], arguments: [from, to, String(wholeMs(milliseconds))] })) === 1
}

/** Adds one to a count that expires so many milliseconds after its first. */
export async function increment(keys: Keys, key: string, milliseconds: number): Promise<Count> {
  const first = { condition: 'NX', ...expiring(milliseconds) } as const
  const [, current, ttl] = await keys.multi().set(key, '0', first).incr(key).pTTL(key).exec()
  return { current: Number(current), ttl: Number(ttl) }
}

/** Tries the commands for values. Rejects with what Redis refuses. */
export async function tryKeys(keys: Keys, key: string): Promise<void> {
  await keys.set(key, '1', expiring(BRIEFLY))
  await keys.get(key)
  await swap(keys, key, { from: '1', to: '2', milliseconds: BRIEFLY })
  await keys.del(key)
}

/** Tries the commands for counts. */
export async function tryCounts(keys: Keys, key: string): Promise<void> {
  await increment(keys, key, BRIEFLY)
}

export function expiring(milliseconds: number): Expiring {
  return { expiration: { type: 'PX', value: wholeMs(milliseconds) } }
}

/** Redis takes only whole milliseconds above zero. */
function wholeMs(milliseconds: number): number {
  return Math.max(1, Math.round(milliseconds))
}
