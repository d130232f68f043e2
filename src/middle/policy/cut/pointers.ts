/** What stands in a result for what is cut off: a text for the model, and a link for clients that read resources. */

import type { Json } from '../../../base/rpc/splice.js'
import { ECHOED, printable } from '../../../base/texts/printable.js'
import type { Call } from '../../../mcp/protocol/call.js'
import { traits } from '../../../mcp/protocol/eras.js'
import { KEPT_MINUTES } from './kept-results.js'
import type { Long } from './long.js'

/** The tool that reads the parts of a result. */
export const READ_MORE = 'read_more'

/** Whether a caller can be given links. Where its session is translated, they are replaced if it cannot read them. */
export function hasLinks({ link }: Call): boolean {
  return link?.revision === undefined || traits[link.revision].resourceLinks
}

/** The blocks for something that is kept under a URI. */
export function pointersTo(long: Long, uri: string, withLink: boolean): readonly Json[] {
  const { parts, isBegun } = long
  const next = isBegun ? 2 : 1
  return [
    textOf(`${whatOf(long)} ${howToRead(`${uri}/${next}`, next, parts.length)}`),
    ...(withLink ? [linkTo(long, uri)] : []),
  ]
}

/** The blocks for the part after this one; none if it is the last one. */
export function pointersAfter(number: number, of: number, mimeType: string, base: string, withLink: boolean): Json[] {
  if (of === 1) return []
  if (number >= of) return [textOf(`This is part ${number} of ${of}, the last one.`)]
  const long = { kind: 'text', mimeType, parts: { length: of }, isBegun: true } as const
  const uri = `${base}/${number + 1}`
  return [
    textOf(`This is part ${number} of ${of}. ${howToRead(uri, number + 1, of)}`),
    ...(withLink ? [linkOf(uri, nameOf(long, number + 1), mimeType)] : []),
  ]
}

/** The sentence that says how the next part is read. */
export function howToRead(uri: string, number: number, of: number): string {
  const what = of === 1 ? 'It' : `Part ${number} of ${of}`
  return `${what} is kept for ${KEPT_MINUTES} minutes: call ${READ_MORE} with ${JSON.stringify({ uri })}, or read the resource.`
}

function linkTo(long: Long, uri: string): Json {
  const number = long.isBegun ? 2 : 1
  return linkOf(`${uri}/${number}`, nameOf(long, number), long.mimeType)
}

function linkOf(uri: string, name: string, mimeType: string): Json {
  return JSON.stringify({ type: 'resource_link', uri, name, mimeType })
}

function nameOf({ kind, parts, about }: Pick<Long, 'kind' | 'about'> & { parts: { length: number } }, number: number) {
  const what = kind === 'text' && about === undefined ? 'result' : kind === 'structured' ? 'structured content' : kind
  return parts.length === 1 ? what : `${what}, part ${number} of ${parts.length}`
}

function whatOf({ kind, mimeType, parts, isBegun, about }: Long): string {
  const bytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0).toLocaleString('en')
  if (isBegun) return `The text above is cut: it is part 1 of ${parts.length}, of ${bytes} bytes.`
  if (kind === 'structured') return `The structured content is left out, ${bytes} bytes: ${about}.`
  const which = about === undefined ? '' : ` ${printable(about, ECHOED)}`
  return `A content is left out: ${kind === 'text' ? 'resource' : kind}${which}, ${printable(mimeType)}, ${bytes} bytes.`
}

function textOf(text: string): Json {
  return JSON.stringify({ type: 'text', text })
}
