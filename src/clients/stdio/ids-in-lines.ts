/** Which requests a line on stdio has: all of a message or batch, or that of an outline. */

import { headIn } from '../../base/rpc/head.js'
import { type Id, idKey, type Message, parseMessage, readId } from '../../base/rpc/message.js'
import type { Outline } from '../../base/rpc/outline.js'
import { cut, sourceOf } from '../../base/rpc/source.js'

/** The id of a request of which only the outline is known; undefined if it is none, or if its id is in its middle. */
export function requestedBy({ beginning, idAtEnd }: Outline): Id | undefined {
  const head = headIn(beginning)
  if (head?.method === undefined) return undefined
  return readId(head.id === undefined ? (idAtEnd ?? '') : JSON.stringify(head.id))
}

/** The keys of the ids of all requests in a message. */
export function idsIn(message: Exclude<Message, { kind: 'invalid' }>): string[] {
  if (message.kind === 'request') return [idKey(message.id)]
  if (message.kind !== 'batch') return []
  return message.elements.flatMap(({ start, end }) => {
    const element = parseMessage(sourceOf(cut(message.source, start, end)))
    return element.kind === 'request' ? [idKey(element.id)] : []
  })
}
