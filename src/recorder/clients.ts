/** Tells the inspector the messages with a client. */
import { type MessageSight, sightOf, tellArrived, tellSent as tellSentTo } from './message.js'
import { UNRECORDED } from './events.js'
import type { Era } from '../protocol/eras.js'
import type { Made, Towards } from './rules.js'
import { headOf, idValue, type MessageHead, type Notification, type Request, type Response } from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import type { Logger } from '../downstream/logger.js'

/** Whom the messages to a client of an era are for. */
export const TOWARDS: Readonly<Record<Era, Towards>> = { modern: 'modern client', legacy: 'legacy client' }

/** What a message with a client belongs to. */
export interface MessageContext {
  call?: number | undefined
  session?: string | undefined
}

/** Headers of a request, with names in lower case. */
export type WatchedHeaders = Readonly<Record<string, string | string[] | undefined>> | undefined

/** What an encoded message was made of, and for whom. */
interface Making {
  made: Made | undefined
  era: Era
}

/** Tells the inspector a message from a client, if there is an inspector. */
export function tellReceived(
  { telemetry }: Logger,
  message: Request | Notification | Response,
  { call, session }: MessageContext,
): void {
  if (!telemetry?.watch || call === UNRECORDED) return
  const { server, watch } = telemetry
  tellArrived(watch.witness, message, sightOf('client', 'in', server, call, session, undefined))
}

/** Tells the inspector an encoded message to a client, if there is an inspector. Returns what the message is. */
export function tellSent(
  { telemetry }: Logger,
  text: Wire,
  { call, session }: MessageContext,
  { made, era }: Making,
): MessageHead | undefined {
  if (!telemetry?.watch) return undefined
  const { server, watch } = telemetry
  const sight = sightOf('client', 'out', server, call, session, undefined)
  const head = fillIn(sight, text)
  if (head && call !== UNRECORDED) tellSentTo(watch.witness, text, sight, made, TOWARDS[era])
  return head
}

/** Reads from an encoded message what it is. Returns undefined if that cannot be read. */
export function fillIn(sight: MessageSight, text: Wire): MessageHead | undefined {
  const head = headOf(text)
  if (!head) return undefined
  sight.form = head.form
  sight.method = head.method
  sight.id = head.id === undefined ? undefined : idValue(head.id)
  return head
}
