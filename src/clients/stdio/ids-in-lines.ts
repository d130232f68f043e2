/** Which requests a line on stdio has: all of a message or batch, or that of an outline. */

import { headIn } from '../../base/rpc/head.js'
import { type Id, idKey, type Message, readId } from '../../base/rpc/message.js'
import type { Outline } from '../../base/rpc/outline.js'
import { readBatch } from '../legacy/batch.js'

/** The id of a request of which only the outline is known; undefined if it is none, or if its id is in its middle. */
export function requestedBy({ beginning, idAtEnd }: Outline): Id | undefined {
  const head = headIn(beginning)
  if (head?.method === undefined) return undefined
  return readId(head.id === undefined ? (idAtEnd ?? '') : JSON.stringify(head.id))
}

/** The keys of the ids of all requests in a message. Throws a Fault for an invalid batch. */
export function idsIn(message: Exclude<Message, { kind: 'invalid' }>): string[] {
  if (message.kind === 'request') return [idKey(message.id)]
  return message.kind === 'batch' ? readBatch(message).requests.map(({ id }) => idKey(id)) : []
}
