/** Aligns the two sides of a call: each message with the one it causes on the other wire. */

import type { CallView } from './call-views.js'
import { textAt } from './changed-values.js'
import { isAnswer, isMessage, type RecordedOf, type Side } from './recorder/events.js'

/** A message of a call. */
export type MessageRow = RecordedOf<'message'>

/** The HTTP status of a message. Answers to clients over Streamable HTTP have 200 unless the event has another one. */
export function httpStatus(message: MessageRow, { client, fault }: Pick<CallView, 'client' | 'fault'>) {
  const { http } = message
  if (client?.transport !== 'http' || !isMessage(message, 'client', 'out') || !isAnswer(message)) return http?.status
  // If the server refuses the credential of a legacy client, the client gets the server's status.
  return http?.status ?? (client.era === 'legacy' && fault === 'upstreamAuthRequired' ? undefined : 200)
}

const CLIENT_NAME = '/params/_meta/io.modelcontextprotocol~1clientInfo/name'

/** The client of a call. If no event names it, the text of its request does. */
export function clientOf({ client, events }: Pick<CallView, 'client' | 'events'>): Side | undefined {
  if (!client || client.name !== undefined) return client
  const request = events.find((seen) => isMessage(seen, 'client', undefined, 'request')) as MessageRow | undefined
  const name = request?.payload && textAt(request.payload.text, CLIENT_NAME)
  return name === undefined ? client : { ...client, name }
}

/** A message and its counterpart on the other wire; one of them may be missing. */
export interface Row {
  client?: MessageRow
  server?: MessageRow
  /**
   * The counterpart of the only message, if it is in another row because several messages share it. `unseen`: the
   * message forwards one that is not among those of the call.
   */
  elsewhere?: MessageRow | 'unseen'
}

/** Candidates for the unknown counterpart of a message, by its wire and form. The first match applies. */
interface Source {
  /** Forms of messages on the other wire. */
  forms: readonly MessageRow['form'][]
  /** The newest one not forwarded yet, all of these, or the newest one in any case. */
  which: 'waiting' | 'all waiting' | 'newest'
  /** Also if the message is known to forward another one. */
  besides?: true
}

const ANSWERS = ['result', 'error'] as const
const NOTIFICATION: readonly Source[] = [{ forms: ['notification'], which: 'waiting' }]
/** A modern client's answers are in its newest request. */
const ANSWER: readonly Source[] = [{ forms: ['request'], which: 'newest' }]

const SOURCES: Readonly<Record<MessageRow['hop'], Readonly<Record<MessageRow['form'], readonly Source[]>>>> = {
  client: {
    notification: NOTIFICATION,
    // One result of a modern server can become several requests to a legacy client.
    request: [{ forms: ['result'], which: 'newest' }],
    // The requests of a legacy server reach a modern client in one result.
    result: [
      { forms: ANSWERS, which: 'waiting' },
      { forms: ['request'], which: 'all waiting' },
    ],
    error: [{ forms: ANSWERS, which: 'waiting' }],
  },
  server: {
    notification: NOTIFICATION,
    // The request is repeated with all answers of a legacy client.
    request: [
      { forms: ANSWERS, which: 'all waiting', besides: true },
      { forms: ['request'], which: 'waiting' },
    ],
    result: ANSWER,
    error: ANSWER,
  },
}

const OTHER = { client: 'server', server: 'client' } as const

/** The messages of a call, aligned by cause: an incoming message on one wire, the outgoing one on the other. */
export function rowsOf({ events }: Pick<CallView, 'events'>): Row[] {
  const rows: Row[] = []
  /** Rows of requests that the bridge answered itself. */
  const answered = new Set<Row>()
  for (const message of events) {
    if (message.kind !== 'message') continue
    const { hop, dir, of } = message
    const [cause, ...others] = dir === 'out' ? causesOf(message, rows, answered) : []
    if (cause && !cause[hop]) cause[hop] = message
    else if (cause) rows.push({ [hop]: message, elsewhere: cause[OTHER[hop]] as MessageRow })
    else rows.push({ [hop]: message, ...(of !== undefined && { elsewhere: 'unseen' }) })
    for (const row of others) row.elsewhere = message
    const own = cause ? undefined : requestOf(message, rows)
    if (own) answered.add(own)
  }
  return rows
}

/** The rows of the messages that this one forwards: the known one, or all candidates. Newest first. */
function causesOf(message: MessageRow, rows: readonly Row[], answered: ReadonlySet<Row>): readonly Row[] {
  const { hop, form, method, of, changes } = message
  const from = OTHER[hop]
  const arrived = rows.filter((row) => row[from]?.dir === 'in').reverse()
  const known = of === undefined ? undefined : arrived.find((row) => row[from]?.seq === of)
  if (known && !known[hop]) return [known]
  const isWaiting = (row: Row) => !row[hop] && !row.elsewhere && !answered.has(row)
  for (const { forms, which, besides = false } of SOURCES[hop][form]) {
    if (of !== undefined && !besides) continue
    const fitting = arrived.filter((row) => {
      const cause = row[from] as MessageRow
      if (!forms.includes(cause.form) || (form === 'notification' && cause.method !== method)) return false
      // A message without changes forwards none that was forwarded before.
      return which === 'newest' ? changes !== undefined : isWaiting(row)
    })
    if (fitting.length > 0) return which === 'all waiting' ? fitting : fitting.slice(0, 1)
  }
  return known ? [known] : []
}

/** The row of the request that an answer belongs to, on the same wire. */
function requestOf(message: MessageRow, rows: readonly Row[]): Row | undefined {
  const { hop, dir, id } = message
  if (dir === 'in' || !isAnswer(message)) return undefined
  return rows.findLast((row) => row[hop]?.dir === 'in' && row[hop].form === 'request' && row[hop].id === id)
}
