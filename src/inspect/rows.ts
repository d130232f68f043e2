/** The two sides of a call: which message on one wire causes which on the other. */
import type { Seen, Side } from '../ports/seen.js'
import type { CallView } from './call-views.js'
import { textAt } from './values.js'

/** A message of a call. */
export type Message = Extract<Seen, { kind: 'message' }>

/** The HTTP status of a message: that of an answer to a client over Streamable HTTP is 200 unless it is told. */
export function httpStatus({ hop, dir, form, http }: Message, { client, fault }: Pick<CallView, 'client' | 'fault'>) {
  const isAnswer = hop === 'client' && dir === 'out' && (form === 'result' || form === 'error')
  if (!isAnswer || client?.transport !== 'http') return http?.status
  // A legacy client gets the status of a server that refuses its credential.
  return http?.status ?? (client.era === 'legacy' && fault === 'upstreamAuthRequired' ? undefined : 200)
}

const CLIENT_NAME = '/params/_meta/io.modelcontextprotocol~1clientInfo/name'

/** The client of a call. If no event has its name, as with relayed calls, it is read from the text of its request. */
export function clientOf({ client, events }: Pick<CallView, 'client' | 'events'>): Side | undefined {
  if (!client || client.name !== undefined) return client
  const isRequest = (seen: Seen) => seen.kind === 'message' && seen.hop === 'client' && seen.form === 'request'
  const request = events.find(isRequest) as Message | undefined
  const name = request?.payload && textAt(request.payload.text, CLIENT_NAME)
  return name === undefined ? client : { ...client, name }
}

/** A message and its counterpart on the other wire; one of them may be missing. */
export interface Row {
  client?: Message
  server?: Message
  /**
   * The counterpart of the only message, if it stands in another row because several messages have it. `unseen`: the
   * message passes on one that is not among those of the call.
   */
  elsewhere?: Message | 'unseen'
}

/** What a message can pass on if that is not known, by its wire and form: what comes first counts. */
interface Source {
  /** Forms of messages on the other wire. */
  forms: readonly Message['form'][]
  /** The newest one that was not passed on so far, all of these, or the newest one in any case. */
  which: 'waiting' | 'all waiting' | 'newest'
  /** Also if the message is known to pass on another one. */
  besides?: true
}

const ANSWERS = ['result', 'error'] as const
const NOTIFICATION: readonly Source[] = [{ forms: ['notification'], which: 'waiting' }]
/** The request with the answers of a modern client is its newest one. */
const ANSWER: readonly Source[] = [{ forms: ['request'], which: 'newest' }]

const SOURCES: Readonly<Record<Message['hop'], Readonly<Record<Message['form'], readonly Source[]>>>> = {
  client: {
    notification: NOTIFICATION,
    // A result of a modern server can ask a legacy client several things.
    request: [{ forms: ['result'], which: 'newest' }],
    // What a legacy server asks reaches a modern client in one result.
    result: [
      { forms: ANSWERS, which: 'waiting' },
      { forms: ['request'], which: 'all waiting' },
    ],
    error: [{ forms: ANSWERS, which: 'waiting' }],
  },
  server: {
    notification: NOTIFICATION,
    // The request is sent again with all answers of a legacy client.
    request: [
      { forms: ANSWERS, which: 'all waiting', besides: true },
      { forms: ['request'], which: 'waiting' },
    ],
    result: ANSWER,
    error: ANSWER,
  },
}

const OTHER = { client: 'server', server: 'client' } as const

/** The messages of a call, aligned by cause: what comes in on one wire, and what goes out for it on the other. */
export function rowsOf({ events }: Pick<CallView, 'events'>): Row[] {
  const rows: Row[] = []
  /** Rows of requests that the bridge has answered itself. */
  const answered = new Set<Row>()
  for (const message of events) {
    if (message.kind !== 'message') continue
    const { hop, dir, of } = message
    const [cause, ...others] = dir === 'out' ? causesOf(message, rows, answered) : []
    if (cause && !cause[hop]) cause[hop] = message
    else if (cause) rows.push({ [hop]: message, elsewhere: cause[OTHER[hop]] as Message })
    else rows.push({ [hop]: message, ...(of !== undefined && { elsewhere: 'unseen' }) })
    for (const row of others) row.elsewhere = message
    const own = cause ? undefined : requestOf(message, rows)
    if (own) answered.add(own)
  }
  return rows
}

/** The rows of the messages that this one passes on: the one that is known, or those that fit. The newest come first. */
function causesOf(message: Message, rows: readonly Row[], answered: ReadonlySet<Row>): readonly Row[] {
  const { hop, form, method, of, changes } = message
  const from = OTHER[hop]
  const arrived = rows.filter((row) => row[from]?.dir === 'in').reverse()
  const known = of === undefined ? undefined : arrived.find((row) => row[from]?.seq === of)
  if (known && !known[hop]) return [known]
  const isWaiting = (row: Row) => !row[hop] && !row.elsewhere && !answered.has(row)
  for (const { forms, which, besides = false } of SOURCES[hop][form]) {
    if (of !== undefined && !besides) continue
    const fitting = arrived.filter((row) => {
      const cause = row[from] as Message
      if (!forms.includes(cause.form) || (form === 'notification' && cause.method !== method)) return false
      // A message without changes passes on none that was passed on before.
      return which === 'newest' ? changes !== undefined : isWaiting(row)
    })
    if (fitting.length > 0) return which === 'all waiting' ? fitting : fitting.slice(0, 1)
  }
  return known ? [known] : []
}

/** The row of the request that an answer is for, on the same wire. */
function requestOf({ hop, dir, form, id }: Message, rows: readonly Row[]): Row | undefined {
  if (dir === 'in' || form === 'request' || form === 'notification') return undefined
  return rows.findLast((row) => row[hop]?.dir === 'in' && row[hop].form === 'request' && row[hop].id === id)
}
