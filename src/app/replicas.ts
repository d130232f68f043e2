/** The connection to the other replicas, as configured, and the address at which they reach this one. Loaded only with Redis. */

import { keyOf } from '../base/crypto/seal.js'
import type { Log } from '../base/log/events.js'
import { isLoopback, parseListen, type Settings } from '../config/settings.js'
import { ownHost } from '../services/replicas/internal.js'
import { RedisReplicas } from '../services/replicas/replicas.js'
import { filesAt } from './certificates.js'

/** Undefined without Redis, and on stdio, because there no other process can serve the client. Throws a ConfigError. */
export function replicasOf({ redis, replicas, stateKeys, listen }: Settings, log: Log): RedisReplicas | undefined {
  const clients = parseListen(listen)
  if (!redis || clients.kind === 'stdio') return undefined
  const files = filesAt('redis', redis, log)
  // Files that change need a restart.
  const { current: tls, expiresAt } = files
  const certificate = expiresAt === undefined ? undefined : ({ use: 'redis', expiresAt } as const)
  const here = `http://${isLoopback(clients.host) ? '127.0.0.1' : ownHost()}:0`
  const address = new URL(replicas.address ?? here)
  return new RedisReplicas({ ...redis, tls, certificate, keys: stateKeys.map(keyOf), address, log })
}
