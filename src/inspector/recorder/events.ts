/** The recorded events, such as calls, messages, sessions and refusals, in order. */

import type { Blame } from '../../base/fault/faults.js'
import type { Wire } from '../../base/rpc/source.js'
import type { Cancelled, Outcome } from '../../mcp/ports/outcome.js'
import type { Era } from '../../mcp/protocol/eras.js'

/** A client or server, as seen in one call. */
export interface Side {
  era: Era
  revision?: string | undefined
  transport?: 'http' | 'sse' | 'stdio' | undefined
  /** The name that it declares. */
  name?: string | undefined
}

/** One value that the bridge has changed. */
export interface Change {
  /**
   * JSON Pointer (RFC 6901) into the message that came in. Elements after one that was removed move up in the message
   * that goes out.
   */
  at: string
  op: 'add' | 'remove' | 'replace'
  /** The id of the row of docs/development/translation.md that says why. */
  rule: string
}

/** The changes of a message, in order. */
export interface Changes {
  readonly all: readonly Change[]
  /** Number of further changes, which are not listed. */
  readonly more: number
  /** Approximate bytes if they are stored; 0 if the list is cached anyway. */
  readonly weight: number
  /** Approximate characters of their JSON. */
  readonly size: number
}

/** The id of a call, as it is shown. */
export function callId(call: number): string {
  return `c${call}`
}

/** The number of a call with this id; 0 if it is none. */
export function callNumber(id: string): number {
  const [, digits] = /^c(\d{1,15})$/.exec(id) ?? []
  return Number(digits ?? 0)
}

/** The kept part of the text of a message. */
export interface KeptText {
  text: string
  /** Characters that are missing at the end. */
  cut: number
  /** Number of hidden values. */
  hidden: number
  /** Images. The text has only their sizes. */
  pictures?: readonly KeptPicture[] | undefined
}

/** An image in a text: its media type, and its bytes in base64. */
export interface KeptPicture {
  type: string
  data: string
}

/** The head of an HTTP message. Requests have no status. Names of headers are in lower case. */
export interface Http<Value> {
  status?: number | undefined
  headers: Readonly<Record<string, Value>>
}

/** What an event belongs to. A call is recorded by its number, and shown with a letter: `c81`. */
interface Belonging<Call extends number | string> {
  /** The process id of the bridge that recorded it, where the events of several bridges are together. */
  bridge?: string | undefined
  server?: string | undefined
  call?: Call | undefined
  /** The call that this one continues: it brings the answers to a question. */
  continues?: Call | undefined
  /** The id of a session. Only the first 8 characters of its digest are kept. */
  session?: string | undefined
}

/** A call begins or ends. Times are milliseconds; `upstreamMs` is the part spent waiting for the server. */
export interface CallBody {
  kind: 'call'
  what: 'begun' | 'ended'
  principal: string
  client: Side
  upstream?: Side | undefined
  method: string
  /** The tool, prompt or resource. */
  name?: string | undefined
  /** The server of a group that the call is for. */
  member?: string | undefined
  outcome?: Outcome | undefined
  /** Undefined unless the outcome is `cancelled`. */
  cancelled?: Cancelled | undefined
  /** The code of a JSON-RPC error. */
  code?: number | undefined
  fault?: string | undefined
  blame?: Blame | undefined
  why?: string | undefined
  ms?: number | undefined
  upstreamMs?: number | undefined
  trace?: string | undefined
}

/**
 * A message on one of the two wires. `in` is towards the bridge. All members are listed in the same order, because V8
 * reads objects of one shape fastest.
 */
export interface MessageBody {
  kind: 'message'
  hop: 'client' | 'server'
  dir: 'in' | 'out'
  form: 'request' | 'result' | 'error' | 'notification'
  method?: string | undefined
  id?: string | number | undefined
  bytes: number
  /**
   * Only headers that cannot be secret, and have one value, are kept. An answer to a client over Streamable HTTP
   * without a status has 200.
   */
  http?: Http<string | readonly string[] | undefined> | undefined
  /**
   * Changes compared with the received message that this one forwards. Undefined if it forwards none. The new values are
   * those of the text.
   */
  changed?: Changes | undefined
  /** The number of the message that this one forwards. */
  of?: number | undefined
}

type EventBody =
  | CallBody
  | MessageBody
  /** A question of a server to the client of a call. */
  | { kind: 'question'; what: 'parked' | 'answered' | 'expired' | 'refused' | 'lost'; round?: number | undefined }
  /** The era of a server was detected, or could not be. */
  | {
      kind: 'verdict'
      era: Era | 'unknown'
      revision?: string | undefined
      transport?: string | undefined
      why: string
      ms?: number | undefined
    }
  | {
      kind: 'session'
      side: 'client' | 'server'
      what: 'opened' | 'ended' | 'lost'
      principal?: string | undefined
    }
  /**
   * An event stream in the session of a client over Streamable HTTP. `left`: its connection was closed before the end of
   * the stream. `id` is that of the request that it answers; streams for other messages have none. A stream with an answer
   * is recorded only if the client leaves it or comes back.
   */
  | {
      kind: 'stream'
      what: 'opened' | 'left' | 'resumed' | 'ended'
      /** Unique in its session. */
      stream: string
      id?: string | number | undefined
    }
  /** The process of a server. `running`: number of its processes after the event. */
  | {
      kind: 'child'
      what: 'started' | 'restarted' | 'ended' | 'stderr'
      pid?: number | undefined
      running?: number | undefined
      line?: string | undefined
    }
  /** A refused request. `why` is the name of a fault, `said` its message, `from` an IP address. */
  | {
      kind: 'refused'
      status: number
      why: string
      said?: string | undefined
      path?: string | undefined
      from?: string | undefined
    }
  /** The configuration or the trust in a server changed. */
  | { kind: 'config' | 'trust'; text: string }
  /** Something was not recorded; `count`: how much, if known. */
  | { kind: 'lost'; what: 'calls' | 'messages' | 'refusals' | 'lines'; text: string; count?: number | undefined }

type RecordedMessage = Omit<MessageBody, 'changed' | 'http'> & {
  http?: Http<string> | undefined
  changes?: readonly Change[] | undefined
  more?: number | undefined
  payload?: KeptText | undefined
}

/** An event before it is recorded. `now` is its `performance.now()`, if known. */
export type TraceEvent = Belonging<number> & { now?: number | undefined } & EventBody

/** Members of all recorded events. */
interface Event {
  v: 1
  seq: number
  /** Milliseconds since 1970. */
  at: number
  /** The id of the recording replica, if there are several. */
  replica?: string | undefined
}

/** A recorded event. */
export type RecordedEvent = Event & Belonging<string> & (Exclude<EventBody, MessageBody> | RecordedMessage)

/** One of this kind. */
export type RecordedOf<K extends RecordedEvent['kind']> = Extract<RecordedEvent, { kind: K }>

/** The start or the end of a call, before it is recorded. */
export type CallTrace = Extract<TraceEvent, CallBody>

/** Whether an event is a message: on this wire, in this direction and of this form, as far as they are given. */
export function isMessage(
  seen: RecordedEvent,
  hop?: MessageBody['hop'],
  dir?: MessageBody['dir'],
  form?: MessageBody['form'],
): seen is RecordedOf<'message'> {
  if (seen.kind !== 'message') return false
  return (hop ?? seen.hop) === seen.hop && (dir ?? seen.dir) === seen.dir && (form ?? seen.form) === seen.form
}

/** Whether a message answers a request. */
export function isAnswer({ form }: Pick<MessageBody, 'form'>): boolean {
  return form === 'result' || form === 'error'
}

/**
 * Records an event. `text` is a message as on the wire; a part of it is copied if the configuration keeps texts. Returns the number of the event. Keeps no reference to the event, except to its changes. Never throws.
 */
export type RecordEvent = (event: TraceEvent, text?: Wire) => number
