/** Tells the inspector the messages with a client. */
import { tellArrived } from '../ports/received.js'
import type { MessageSeen, Sight } from '../ports/seen.js'
import type { Era } from '../protocol/eras.js'
import { changesOf, type Made, receivedFor } from '../protocol/rules.js'
import { type Head, headOf, idValue, type Notification, type Request, type Response } from '../rpc/message.js'
import { lengthOf, type Wire } from '../rpc/source.js'
import type { Logger } from './logger.js'

const TOWARDS = { modern: 'modern client', legacy: 'legacy client' } as const

/** What a message with a client belongs to. */
export interface About {
  call?: string | undefined
  session?: string | undefined
  /** `performance.now()` of the message, if it is known. */
  now?: number | undefined
  /** The HTTP status of an answer, unless it is 200 or there is none. */
  status?: number | undefined
}

const NO_HEADERS = {}

/** Headers of a request, with names in lower case. */
export type Headers = Readonly<Record<string, string | string[] | undefined>> | undefined

/** What an encoded message was made of, and for whom. */
interface Making {
  made: Made | undefined
  era: Era
}

/** Tells the inspector a message from a client, if there is an inspector. Returns the value of its id. */
export function tellReceived(
  { telemetry }: Logger,
  message: Request | Notification | Response,
  { call, session, now }: About,
  headers?: Headers,
): string | number | undefined {
  if (!telemetry?.watch) return undefined
  const { server, watch } = telemetry
  return tellArrived(watch.witness, message, {
    hop: 'client',
    http: headers && { headers },
    server,
    call,
    session,
    now,
  })
}

/** Tells the inspector an encoded message to a client, if there is an inspector. Returns what the message is. */
export function tellSent(logger: Logger, text: Wire, about: About, making: Making): Head | undefined {
  const head = logger.telemetry?.watch && headOf(text)
  if (!head) return undefined
  const { form, method, id } = head
  tellEncoded(logger, { form, method, id: id === undefined ? undefined : idValue(id) }, text, about, making)
  return head
}

/** The same for a message that is known, so that its text need not be read. */
export function tellEncoded(
  { telemetry }: Logger,
  { form, method, id }: Pick<MessageSeen, 'form' | 'method' | 'id'>,
  text: Wire,
  { call, session, now, status }: About,
  { made, era }: Making,
): void {
  if (!telemetry?.watch) return
  const { server, watch } = telemetry
  const sight: Sight = {
    kind: 'message',
    server,
    call,
    continues: undefined,
    session,
    now,
    hop: 'client',
    dir: 'out',
    form,
    method,
    id,
    bytes: lengthOf(text),
    http: status === undefined ? undefined : { status, headers: NO_HEADERS },
    changed: changesOf(form, method, made, TOWARDS[era]),
    of: receivedFor(made)?.seen,
  }
  watch.witness(sight, text)
}
