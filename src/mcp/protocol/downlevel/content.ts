/** Adapts content blocks to older clients: replaces blocks that a client does not know by blocks that it knows. */
import {
  EMPTY,
  edit,
  type Json,
  mapElements,
  type Payload,
  raw,
  textUnder,
  value,
  write,
} from '../../../base/rpc/splice.js'
import { otherBlock, textBlock, typedBlock } from '../content.js'
import type { Feature } from '../eras.js'
import { fit, type Shape } from './fit.js'
import * as shapes from './shapes.js'
import type { Downlevel } from './target.js'
import { isObjectOrAbsent, wrapped } from './wrap.js'

interface Kind {
  shape: Shape
  /** The trait of revisions that have this kind of block. */
  since?: Feature
  /** The replacement for clients that do not know this kind. */
  instead?: (block: Payload) => Payload
  /** Adapts the content of the block. */
  inside?: (block: Payload, to: Downlevel) => Payload
}

type Kinds = Readonly<Record<string, Kind>>

/** Bytes of an unknown block that are shown as text. */
const MAX_SHOWN_BLOCK = 4 * 1024
const encoder = new TextEncoder()
/** Used only to measure how many characters fit into MAX_SHOWN_BLOCK bytes. */
const scratch = new Uint8Array(MAX_SHOWN_BLOCK)

/** Blocks in results of tools and prompts. */
const shown: Kinds = {
  text: { shape: shapes.text },
  image: { shape: shapes.media },
  audio: { shape: shapes.media, since: 'audio', instead: asResource },
  resource: { shape: shapes.embeddedResource },
  resource_link: { shape: shapes.resourceLink, since: 'resourceLinks', instead: asReference },
}

/** Blocks in messages of sampling. */
const sampled: Kinds = {
  text: { shape: shapes.text },
  image: { shape: shapes.media },
  audio: { shape: shapes.media, since: 'audio', instead: asMention },
  tool_use: { shape: shapes.toolUse, since: 'samplingTools' },
  tool_result: { shape: shapes.toolResult, since: 'samplingTools', inside: toolResult },
}

export const shownBlock = (block: Payload, to: Downlevel) => known(block, shown, to)
export const sampledBlock = (block: Payload, to: Downlevel) => known(block, sampled, to)

/** A holder of content, each block adapted by `shownBlock`. */
export function shownContent(holder: Payload, to: Downlevel): Payload {
  const content = mapElements(holder, 'content', (block) => known(block, shown, to), otherBlock)
  return content === undefined ? holder : edit(holder, { content })
}

function known(received: Payload, kinds: Kinds, to: Downlevel): Payload {
  const block = typedBlock(received)
  const type = value(block, 'type')
  const kind = typeof type === 'string' && Object.hasOwn(kinds, type) ? kinds[type] : undefined
  const lacking = kind?.since !== undefined && !to.traits[kind.since]
  // A block that will be replaced is not reduced first: the replacement may use all of it.
  const fitting = kind && fit(block, kind.shape, to, to.strict && !lacking)
  if (!fitting) return unknownBlock(write(block), to)
  if (!lacking) return kind.inside ? kind.inside(fitting, to) : fitting
  to.lost(kind.since ?? '')
  return kind.instead ? known(kind.instead(fitting), kinds, to) : asJson(write(fitting))
}

/** Copies the annotations and `_meta` of a block to its replacement. */
function inPlaceOf(block: Payload, other: Payload): Payload {
  return edit(other, { annotations: raw(block, 'annotations'), _meta: raw(block, '_meta') })
}

function unknownBlock(block: Json, to: Downlevel): Payload {
  to.lost('blocks of unknown kinds')
  return asJson(block)
}

function asJson(json: Json): Payload {
  const { read } = encoder.encodeInto(json, scratch)
  return textBlock(json.slice(0, read))
}

function asReference(link: Payload): Payload {
  const said = (key: string) => value(link, key) as string | undefined
  const [title, mimeType, description] = [said('title'), said('mimeType'), said('description')]
  const words = [said('name'), title && `(${title})`, said('uri'), mimeType, description && `— ${description}`]
  return inPlaceOf(link, textBlock(words.filter(Boolean).join(' ')))
}

function asMention(audio: Payload): Payload {
  return inPlaceOf(audio, textBlock(`[audio ${textUnder(audio, 'mimeType')} omitted]`))
}

function asResource(audio: Payload): Payload {
  const blob = raw(audio, 'data') ?? '""'
  const uri = `"mcp-bridge:audio/${digest(blob)}"`
  const resource = write(edit(EMPTY, { uri, mimeType: raw(audio, 'mimeType'), blob }))
  return inPlaceOf(audio, edit(EMPTY, { type: '"resource"', resource }))
}

/** A name for a content: FNV-1a, twice with different bases. It distinguishes contents; it is not a secure hash. */
function digest(content: Json): string {
  return [0x811c9dc5, 0x01000193].map((basis) => fnv(content, basis).toString(16).padStart(8, '0')).join('')
}

function fnv(content: string, basis: number): number {
  let hash = basis
  for (let i = 0; i < content.length; i++) hash = Math.imul(hash ^ content.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

function toolResult(block: Payload, to: Downlevel): Payload {
  const adapted = shownContent(block, to)
  return isObjectOrAbsent(adapted) ? adapted : wrapped(adapted)
}
