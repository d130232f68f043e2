/** Finds the message at the end of a line of a program that begins with something else: a banner or a prompt. */

import { type Message, messageOrNone, numberOf } from '../base/rpc/message.js'
import { objectAtEnd } from '../base/rpc/message-at-end.js'
import { cut, type JsonSource, sourceOf } from '../base/rpc/source.js'
import { isOfClients } from '../mcp/protocol/methods.js'

/**
 * The message that a program may send now, and what is before it; undefined if there is none. This is no risk for a program that
 * prints texts of its callers: with a line break, such a text could forge a message anyway. `isWaiting`: whether a request waits
 * for its answer.
 */
export function afterBanner(
  source: JsonSource,
  isWaiting: (id: number) => boolean,
): { banner: JsonSource; message: Message } | undefined {
  const text = cut(source, 0, source.text.length)
  const place = objectAtEnd(text)
  const message = place && messageOrNone(sourceOf(text.slice(place.start, place.end)))
  if (!message || !isExpected(message, isWaiting)) return undefined
  return { banner: sourceOf(text.slice(0, place.start)), message }
}

/** A line of a log may contain messages of the bridge, and old ones. */
function isExpected(message: Message, isWaiting: (id: number) => boolean): boolean {
  switch (message.kind) {
    case 'response':
      return message.id !== undefined && isWaiting(numberOf(message.id) ?? 0)
    case 'request':
      return message.method === 'ping' || !isOfClients(message.method)
    case 'notification':
      return true
    case 'batch':
    case 'invalid':
      return false
  }
}
