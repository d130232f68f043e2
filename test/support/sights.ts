/** What a bridge would tell a record: calls with their messages, as the taps of both wires see them. */

import type { Change, Changes, RecordEvent, RecordedEvent, TraceEvent } from '../../src/inspector/recorder/events.js'
import { Ring } from '../../src/inspector/ring.js'
import type { Outcome } from '../../src/mcp/ports/outcome.js'

const CLIENT = { era: 'modern', revision: '2026-07-28', transport: 'http', name: 'test-client' } as const
const UPSTREAM = { era: 'legacy', revision: '2025-11-25', transport: 'stdio', name: 'test-server' } as const

/** A ring whose clock advances by a millisecond with each event. */
export function tickingRing(options: Omit<NonNullable<ConstructorParameters<typeof Ring>[0]>, 'now'> = {}): Ring {
  let now = Date.UTC(2026, 6, 28, 3, 7, 20)
  return new Ring({ ...options, origin: 0, now: () => now++ })
}

/** The events of a ring after the one with this number, with the texts that are kept of them. */
export function eventsIn(ring: Ring, after = 0): RecordedEvent[] {
  return Array.from(ring.after(after), (seen) => {
    const payload = ring.text(seen.seq)
    return payload ? { ...seen, payload } : seen
  })
}

/** A list of changes. */
export function listed(all: readonly Change[]): Changes {
  return { all, more: 0, weight: 0, size: 0 }
}

export interface CallOptions {
  /** The number of the call. */
  id: number
  server?: string
  name?: string
  outcome?: Outcome
  why?: string
  /** Texts of the client's request and of its answer. */
  texts?: { request: string; result: string }
  /** The HTTP status of the answer. */
  status?: number
  more?: Partial<Extract<TraceEvent, { kind: 'call' }>>
}

/** One translated call: four messages, and a progress notification. */
export function tellCall(
  record: RecordEvent,
  { id, server = 'orders', name = 'book', outcome = 'ok', why, texts, status = 200, more }: CallOptions,
): void {
  const belonging = { server, call: id }
  const call = {
    ...belonging,
    kind: 'call',
    principal: 'alice',
    client: CLIENT,
    upstream: UPSTREAM,
    method: 'tools/call',
    name,
    session: 'a-secret-session-id',
    ...more,
  } as const
  record({ ...call, what: 'begun' })
  const message = { ...belonging, kind: 'message', bytes: 280 } as const
  const headers = {
    'content-type': 'application/json',
    authorization: 'Bearer CANARY-header',
    'mcp-session-id': 'CANARY-session',
  }
  record(
    { ...message, hop: 'client', dir: 'in', form: 'request', method: 'tools/call', id: 7, http: { headers } },
    texts?.request,
  )
  const changes = [
    { at: '/params/_meta/io.modelcontextprotocol~1protocolVersion', op: 'remove', rule: 'envelope' },
    { at: '/params/_meta/progressToken', op: 'add', rule: 'progress' },
  ] as const
  record(
    { ...message, hop: 'server', dir: 'out', form: 'request', method: 'tools/call', id: 31, changed: listed(changes) },
    texts?.request,
  )
  record({ ...message, hop: 'server', dir: 'in', form: 'notification', method: 'notifications/progress' })
  record({ ...message, hop: 'client', dir: 'out', form: 'notification', method: 'notifications/progress' })
  const failed = outcome === 'error' || outcome === 'fault'
  const form = failed ? 'error' : 'result'
  record({ ...message, hop: 'server', dir: 'in', form, id: 31 }, texts?.result)
  const added = [{ at: '/result/resultType', op: 'add', rule: 'result-type' }] as const
  record(
    { ...message, hop: 'client', dir: 'out', form, id: 7, changed: listed(added), http: { status, headers } },
    texts?.result,
  )
  record({
    ...call,
    what: 'ended',
    outcome,
    ms: 7,
    upstreamMs: 3,
    ...(failed && { code: -32603, blame: 'upstream', fault: more?.fault ?? 'upstreamUnavailable' }),
    why,
  })
}

/** A call whose server asks its client, and the call with the answers. */
export function tellQuestion(
  record: RecordEvent,
  { id, answer, server = 'orders' }: { id: number; answer: number; server?: string },
): void {
  tellCall(record, { id, server, outcome: 'asks' })
  record({ kind: 'question', what: 'parked', round: 1, call: id, server })
  tellCall(record, { id: answer, server, more: { continues: id } })
}
