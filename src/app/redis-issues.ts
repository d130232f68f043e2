/** Asks the Redis of a configuration whether it can be used, for `mcp-bridge check`. */

import type { Issue, Settings } from '../config/settings.js'
import { Redis } from '../services/replicas/redis.js'
import { filesAt } from './certificates.js'

type Line = Readonly<Record<string, unknown>>

/** An issue if it cannot be used now, and one if it may evict what replicas need. */
export async function redisIssues({ redis }: Settings): Promise<Issue[]> {
  if (!redis) return []
  const messages: string[] = []
  const note = ({ event, why, next, policy }: Line) => {
    if (event === 'redis_unavailable')
      messages.push(`cannot be used now: ${why}${next === undefined ? '' : `. ${next}`}`)
    if (event === 'redis_may_evict')
      messages.push(`may evict records that replicas need: set its maxmemory-policy to noeviction instead of ${policy}`)
  }
  const { current: tls } = filesAt('redis', redis, undefined)
  const own = new Redis({ ...redis, tls, log: { debug: () => {}, info: () => {}, warn: note } })
  await own.connect()
  if (!own.working && messages.length === 0) messages.push('does not answer now')
  own.close()
  return messages.map((message) => ({ path: 'redis', message }))
}
