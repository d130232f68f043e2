/** The connection to the other replicas, as configured, and the address at which they reach this one. Loaded only with Redis or workers. */

import { keyOf } from '../base/crypto/seal.js'
import type { Log } from '../base/log/events.js'
import { isLoopback, parseListen, type Settings } from '../config/settings.js'
import type { Common } from '../services/replicas/common.js'
import { ownHost } from '../services/replicas/internal.js'
import { Redis } from '../services/replicas/redis.js'
import { HttpReplicas } from '../services/replicas/replicas.js'
import { filesAt } from './certificates.js'

/** Undefined without Redis, and on stdio, because there no other process can serve the client. Throws a ConfigError. */
export function replicasOf({ redis, replicas, stateKeys, listen }: Settings, log: Log): HttpReplicas | undefined {
  const clients = parseListen(listen)
  if (!redis || clients.kind === 'stdio') return undefined
  const files = filesAt('redis', redis, log)
  // Files that change need a restart.
  const { current: tls, expiresAt } = files
  const certificate = expiresAt === undefined ? undefined : ({ use: 'redis', expiresAt } as const)
  const here = `http://${isLoopback(clients.host) ? '127.0.0.1' : ownHost()}:0`
  const address = new URL(replicas.address ?? here)
  const { prefix } = redis
  const common = new Redis({ ...redis, tls, log })
  return new HttpReplicas({ common, prefix, certificate, keys: stateKeys.map(keyOf), address, log })
}

/** Prefix of what workers have in common: they share it with nobody. */
const OF_WORKERS = 'w:'

/** The other workers as replicas. `socket`: where they reach this one; undefined if there is no folder for sockets. */
export function replicasOfWorkers(
  { stateKeys }: Pick<Settings, 'stateKeys'>,
  { common, socket }: { common: Common; socket: string | undefined },
  log: Log,
): HttpReplicas {
  const address = new URL(socket === undefined ? 'http://127.0.0.1:0' : `unix:${encodeURI(socket)}`)
  return new HttpReplicas({ common, prefix: OF_WORKERS, keys: stateKeys.map(keyOf), address, log })
}
