/** Records of accounts in a Redis, as replicas share them. */
import { keyOf, Sealer } from '../../src/base/crypto/seal.js'
import { ReplicatedStore } from '../../src/services/oauth/store/replicated.js'
import { Redis } from '../../src/services/replicas/redis.js'
import { SealedStore } from '../../src/services/replicas/store.js'
import { until } from './eventually.js'

/** Resolves when the Redis can be used. */
export async function sharedRecords(url: string): Promise<{ store: ReplicatedStore; close(): void }> {
  const quiet = () => {}
  const redis = new Redis({ url, timeout: 30_000, log: { debug: quiet, info: quiet, warn: quiet } })
  await redis.connect()
  await until(() => redis.working, 'a Redis that can be used')
  const sealer = new Sealer([keyOf('a secret that all the replicas know of')], 'replica')
  return {
    store: new ReplicatedStore(new SealedStore({ prefix: 'p:', common: redis, sealer: () => sealer })),
    close: () => redis.close(),
  }
}
