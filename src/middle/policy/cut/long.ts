/** Finds in the result of a tool what is too long for a model, and replaces it by what stands for it. */
import { cut } from '../../../base/rpc/source.js'
import {
  arrayIn,
  edit,
  type Json,
  objectIn,
  type Payload,
  payloadAt,
  raw,
  stringUnder,
  write,
} from '../../../base/rpc/splice.js'
import { shapeOf } from './shape.js'
import { isLonger, partsOf } from './split.js'

/** Something of a result that is too long. */
export interface Long {
  kind: 'text' | 'structured' | 'image' | 'audio' | 'resource'
  mimeType: string
  /** A text in parts, or the one base64 text of other content. */
  parts: readonly string[]
  /** Whether the first part is shown. */
  isBegun: boolean
  /** The kind of JSON that is not shown, or the URI of a resource. */
  about?: string | undefined
}

/** A result with long content. */
export interface LongResult {
  long: readonly Long[]
  /** The result in which each of `long` is replaced by these blocks. */
  shortened(pointers: readonly (readonly Json[])[]): Payload
}

/** Resources of up to this many characters stay, also beside a text that is cut. */
const MOST_KEPT_RESOURCE = 1_024
const MEDIA: Readonly<Record<string, 'image' | 'audio' | undefined>> = { image: 'image', audio: 'audio' }

/** Blocks, and numbers of what stands in their place in `long`. */
type Part = Json | number

/**
 * What is longer than so many bytes; undefined if nothing is. Texts of all blocks are one text, joined by line breaks.
 * `mayReplace`: structured content may be replaced.
 */
export function longIn(result: Payload, limit: number, mayReplace: boolean): LongResult | undefined {
  const content = arrayIn(result, 'content')
  const blocks = (content?.elements ?? []).map((span) => ({
    json: content ? cut(content.source, span.start, span.end) : '',
    block: content && payloadAt(content.source, span),
  }))
  const texts = blocks.map(({ block }) => block && textIn(block))
  const joined = texts.filter((text) => text !== undefined).join('\n')
  const isCut = isLonger(joined, limit)
  const parts = isCut ? partsOf(joined, limit) : [joined]
  const shown = shownOf(texts, parts[0] as string)
  const lastShown = shown.findLastIndex((text) => text !== undefined)
  /** Bytes that are left for the texts of resources. */
  let left = limit - (isCut ? limit : Buffer.byteLength(joined))
  const long: Long[] = []
  const out: Part[] = []
  const replace = (one: Long) => out.push(long.push(one) - 1)
  for (const [i, { json, block }] of blocks.entries()) {
    const text = texts[i]
    if (block && text !== undefined) {
      if (shown[i] === text) out.push(json)
      else if (shown[i] !== undefined) out.push(write(edit(block, { text: JSON.stringify(shown[i]) })))
      if (isCut && i === lastShown) replace({ kind: 'text', mimeType: 'text/plain', parts, isBegun: true })
      continue
    }
    const media = block && longMedia(block, limit, left)
    if (media) replace(media)
    else {
      left -= Buffer.byteLength((block && textOfResource(block)) ?? '')
      out.push(json)
    }
  }
  const structured = mayReplace ? longStructure(result, limit) : undefined
  if (structured) replace(structured)
  if (long.length === 0) return undefined
  return {
    long,
    shortened: (pointers) => {
      const all = out.flatMap((part) => (typeof part === 'number' ? (pointers[part] ?? []) : [part]))
      return edit(result, { content: `[${all.join(',')}]`, ...(structured && { structuredContent: undefined }) })
    },
  }
}

/** What of each text is in the first part of all joined by line breaks; undefined for nothing. */
function shownOf(texts: readonly (string | undefined)[], first: string): readonly (string | undefined)[] {
  let left = first.length
  return texts.map((text, i) => {
    if (text === undefined || (left <= 0 && texts.slice(0, i).some((before) => before !== undefined))) return undefined
    const shown = text.slice(0, left)
    left -= text.length + 1
    return shown
  })
}

/** Whether the structured content is longer than so many bytes. */
export function hasLongStructure(result: Payload, limit: number): boolean {
  const structured = raw(result, 'structuredContent')
  return structured !== undefined && isLonger(structured, limit)
}

function longStructure(result: Payload, limit: number): Long | undefined {
  if (!hasLongStructure(result, limit)) return undefined
  const json = raw(result, 'structuredContent') as Json
  const about = shapeOf(JSON.parse(json))
  return { kind: 'structured', mimeType: 'application/json', parts: partsOf(json, limit), isBegun: false, about }
}

function textIn(block: Payload): string | undefined {
  return stringUnder(block, 'type') === 'text' ? stringUnder(block, 'text') : undefined
}

/** A block whose content is longer than the limit, or a resource whose text does not fit into what is left of it. */
function longMedia(block: Payload, limit: number, left: number): Long | undefined {
  const type = stringUnder(block, 'type') ?? ''
  const media = MEDIA[type]
  if (media) {
    const data = stringUnder(block, 'data') ?? ''
    const mimeType = stringUnder(block, 'mimeType') ?? `${media}/*`
    return data.length > limit ? { kind: media, mimeType, parts: [data], isBegun: false } : undefined
  }
  const resource = type === 'resource' ? objectIn(block, 'resource') : undefined
  if (!resource) return undefined
  const about = stringUnder(resource, 'uri')
  const given = stringUnder(resource, 'mimeType')
  const blob = stringUnder(resource, 'blob')
  if (blob !== undefined && blob.length > limit)
    return { kind: 'resource', mimeType: given ?? 'application/octet-stream', parts: [blob], isBegun: false, about }
  const text = stringUnder(resource, 'text')
  if (text === undefined || text.length <= MOST_KEPT_RESOURCE || !isLonger(text, Math.max(0, left))) return undefined
  return { kind: 'text', mimeType: given ?? 'text/plain', parts: partsOf(text, limit), isBegun: false, about }
}

function textOfResource(block: Payload): string | undefined {
  const resource = objectIn(block, 'resource')
  return resource && stringUnder(resource, 'text')
}
