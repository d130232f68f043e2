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
}

/** The messages of a call, aligned by cause: what comes in on one wire, and what goes out for it on the other. */
export function rowsOf({ events }: Pick<CallView, 'events'>): Row[] {
  const rows: Row[] = []
  for (const message of events) {
    if (message.kind !== 'message') continue
    const cause = message.dir === 'out' ? causeOf(rows, message) : undefined
    if (cause) cause[message.hop] = message
    else rows.push({ [message.hop]: message })
  }
  return rows
}

/** The row of the message that this one passes on. If that is not known, or it was passed on before, the first that fits. */
function causeOf(rows: readonly Row[], message: Message): Row | undefined {
  const other = message.hop === 'client' ? 'server' : 'client'
  const known = message.of === undefined ? undefined : rows.find((row) => row[other]?.seq === message.of)
  return known && !known[message.hop] ? known : rows.find((row) => isCause(row, message))
}

/** Whether the message goes out because of the one in this row. */
function isCause(row: Row, message: Message): boolean {
  const cause = message.hop === 'client' ? row.server : row.client
  if (cause?.dir !== 'in' || row[message.hop]) return false
  if (message.form === 'notification' || cause.form === 'notification')
    return message.form === cause.form && message.method === cause.method
  // A question may become a result, and a call that brings answers a result for the server.
  return true
}
