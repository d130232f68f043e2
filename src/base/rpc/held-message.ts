/** Finds the message in a text of a server that may be anything: in the place of an answer, or of an event. */
import { type Message, messageOrNone } from './message.js'
import { cut, type JsonSource, sourceOf } from './source.js'

/** The JSON-RPC message, or the batch with at least one; undefined for any other text. */
export function heldMessage(source: JsonSource): Message | undefined {
  const message = messageOrNone(source)
  return holdsMessage(message) ? message : undefined
}

function holdsMessage(message: Message | undefined): boolean {
  if (message?.kind !== 'batch') return message !== undefined && message.kind !== 'invalid'
  const { source, elements } = message
  return elements.some(({ start, end }) => {
    const element = messageOrNone(sourceOf(cut(source, start, end)))
    return element?.kind !== 'batch' && holdsMessage(element)
  })
}
