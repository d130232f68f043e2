/**
 * Answers calls while a server is unreachable. A caller gets the last lists and discovery that it received before, with
 * the tools marked as unavailable. Other calls fail at once, with the reason and the time of the next attempt.
 */

import { digest } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import type { Memory } from '../../base/limits/memory.js'
import { canonical } from '../../base/rpc/canonical.js'
import { EMPTY, edit, type Json, mapElements, objectIn, type Payload, value, write } from '../../base/rpc/splice.js'
import type { Call, Final, Policy } from '../../mcp/protocol/call.js'
import { OF_BRIDGE } from '../../mcp/protocol/meta.js'
import { LISTS } from '../../mcp/protocol/methods.js'
import { copyOf } from './cache/results.js'
import { CountedCache } from './counted-cache.js'
import { whoOf } from './who.js'

/** The policy's view of a server. */
export interface UnavailableOptions {
  name: string
  /**
   * The state of the circuit breaker. While it is `open`, the server is not called: until when, by `now()`, and why, in a
   * few words.
   */
  state(): { open: boolean; until: number; reason: string }
  memory: Memory
  now?: () => number
}

interface Last {
  result: Payload
  server: Json | undefined
  bytes: number
}

/** Methods whose last result is remembered. */
const REMEMBERED: ReadonlySet<string> = new Set(['server/discover', ...LISTS.keys()])
const MAX_REMEMBERED_LISTS = 256
const MAX_REMEMBERED_BYTES = 16 * 1024 * 1024
/** Longest params, in characters; usually a cursor. */
const MAX_REMEMBERED_PARAMS = 4 * 1024

/** The policy, and a function that ends it and drops all results. */
export function unavailable(options: UnavailableOptions): { policy: Policy; close(): void } {
  const { name, state, memory, now = () => performance.now() } = options
  const lasts = new CountedCache<Last>({ memory, max: MAX_REMEMBERED_LISTS, maxBytes: MAX_REMEMBERED_BYTES })

  const policy: Policy = (next) =>
    async function unavailableCall(call) {
      const key = keyOf(call)
      const { open, until, reason } = state()
      if (open) {
        const retryAfter = Math.max(0, until - now()) / 1000
        const last = key === undefined ? undefined : lasts.get(key)
        if (last) {
          call.log.note({ unavailable: true })
          return repeated(call, last, reason, retryAfter)
        }
        throw new Fault('upstreamUnavailable', `${name} is unavailable: ${reason}`, { retryAfter })
      }
      const reply = await next(call)
      if (key !== undefined && reply.kind === 'result' && reply.type === undefined) {
        const copy = copyOf(reply.result, reply.server)
        if (!copy || !lasts.keep(key, copy)) lasts.delete(key)
      }
      return reply
    }
  return { policy, close: () => lasts.close() }
}

/** Results may depend on the caller. Undefined if the result must not be remembered. */
function keyOf(call: Call): string | undefined {
  if (!REMEMBERED.has(call.method)) return undefined
  const params = write(call.params)
  if (params.length > MAX_REMEMBERED_PARAMS) return undefined
  return `${whoOf(call)} ${call.method} ${digest(canonical(params))}`
}

function repeated({ method }: Call, { result, server }: Last, reason: string, retryAfter: number): Final {
  // The client must not cache this, because the server may be reachable again at any time.
  const reply = { kind: 'result', server, cache: { ttlMs: 0, scope: 'private' } } as const
  if (method !== 'tools/list') return { ...reply, result }
  const mark = JSON.stringify({ reason, retryAfterMs: Math.round(retryAfter * 1000) })
  const tools = mapElements(result, 'tools', (tool) => marked(tool, mark))
  return { ...reply, result: tools === undefined ? result : edit(result, { tools }) }
}

function marked(tool: Payload, mark: Json): Payload {
  const annotations = objectIn(tool, 'annotations')
  const titles = [value(tool, 'title'), annotations && value(annotations, 'title'), value(tool, 'name')]
  const title = titles.find((one) => typeof one === 'string') ?? ''
  const meta = edit(objectIn(tool, '_meta') ?? EMPTY, { [`${OF_BRIDGE}unavailable`]: mark })
  return edit(tool, { title: JSON.stringify(`${title} (unavailable)`), _meta: meta })
}
