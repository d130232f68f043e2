/** Messages of tests, from texts. */
import { parseMessage } from '../../src/base/rpc/message.js'
import { join, sourceOf, type Wire } from '../../src/base/rpc/source.js'

export const parseText = (text: string) => parseMessage(sourceOf(text))

/** What goes out, as one text. */
export const textOf = (wire: Wire) => join(wire)
