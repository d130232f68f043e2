/** Tells the inspector the messages with a client. */
import type { Era } from '../protocol/eras.js'
import { changesOf, type Made } from '../protocol/rules.js'
import { type Head, headOf, idValue, type Notification, type Request, type Response } from '../rpc/message.js'
import { receivedMessage } from '../rpc/received.js'
import { lengthOf, type Wire } from '../rpc/source.js'
import type { Logger } from './logger.js'

const TOWARDS = { modern: 'modern client', legacy: 'legacy client' } as const

/** What a message with a client belongs to. */
export interface About {
  call?: string | undefined
  session?: string | undefined
}

/** Tells the inspector a message from a client, if there is an inspector. */
export function tellReceived(
  { telemetry }: Logger,
  message: Request | Notification | Response,
  { call, session }: About,
): void {
  if (!telemetry?.watch) return
  const { server, watch } = telemetry
  const { head, bytes, source, text } = receivedMessage(message)
  watch.witness({ kind: 'message', hop: 'client', dir: 'in', ...head, bytes, source, server, call, session }, text)
}

/** Tells the inspector an encoded message to a client, if there is an inspector. Returns what the message is. */
export function tellSent(
  { telemetry }: Logger,
  text: Wire,
  { call, session }: About,
  { made, era }: { made: Made | undefined; era: Era },
): Head | undefined {
  if (!telemetry?.watch) return undefined
  const { server, watch } = telemetry
  const head = headOf(text)
  if (!head) return undefined
  const { form, method, id } = head
  const changed = changesOf({ form, method }, made, TOWARDS[era])
  watch.witness(
    {
      kind: 'message',
      hop: 'client',
      dir: 'out',
      form,
      method,
      id: id === undefined ? undefined : idValue(id),
      bytes: lengthOf(text),
      changes: changed?.changes,
      more: changed?.more,
      source: changed?.source,
      server,
      call,
      session,
    },
    text,
  )
  return head
}
