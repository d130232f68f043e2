/** Turns recorded events of another bridge, or of a file, back into events that a ring records under numbers of its own. */
import type { Changes, KeptText, RecordedEvent, TraceEvent } from '../recorder/events.js'

/** The members of an event that differ in the ring. */
export interface Belongings {
  bridge: string | undefined
  /** The name of a server, unique among all bridges. */
  serverName(name: string): string
  /** The number of the call of an id. */
  callOf(id: string): number
  /** The number that another event has here; undefined if it was dropped. */
  numberOf(seq: number): number | undefined
  /** The origin of times, in milliseconds since 1970. */
  origin: number
}

/** The event, and the text of its message. */
export function traceOf(
  seen: RecordedEvent,
  { bridge, serverName, callOf, numberOf, origin }: Belongings,
): { event: TraceEvent; payload: KeptText | undefined } {
  const { v: _v, seq: _seq, at, replica: _replica, server, call, continues, ...body } = seen
  const belonging = {
    bridge,
    server: server === undefined ? undefined : serverName(server),
    call: call === undefined ? undefined : callOf(call),
    continues: continues === undefined ? undefined : callOf(continues),
    session: seen.session,
    now: at - origin,
  }
  if (body.kind === 'call') {
    const member = body.member === undefined ? undefined : serverName(body.member)
    return { event: { ...body, ...belonging, member }, payload: undefined }
  }
  if (body.kind !== 'message') return { event: { ...body, ...belonging } as TraceEvent, payload: undefined }
  const { payload, changes, more = 0, of, ...message } = body
  return {
    event: {
      ...message,
      ...belonging,
      changed: changes && changedBy(changes, more),
      of: of === undefined ? undefined : numberOf(of),
    },
    payload,
  }
}

function changedBy(all: Changes['all'], more: number): Changes {
  const size = JSON.stringify(all).length
  return { all, more, weight: size, size }
}
