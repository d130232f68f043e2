/** Messages of tests, from texts. */
import { parseMessage } from '../../src/rpc/message.js'
import { join, sourceOf, type Wire } from '../../src/rpc/source.js'

export const parseText = (text: string) => parseMessage(sourceOf(text))

/** What goes out, as one text. */
export const textOf = (wire: Wire) => join(wire)
