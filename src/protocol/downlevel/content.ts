/** Blocks of content: those that a client does not know become something that it knows and that says as much. */
import { EMPTY, edit, type Json, type Payload, raw, textUnder, value, write } from '../../rpc/splice.js'
import { fit, type Shape } from './fit.js'
import { inArray } from './members.js'
import * as shapes from './shapes.js'
import { type Downlevel, type Feature, speaks } from './target.js'
import { isObjectOrAbsent, wrapped } from './wrap.js'

interface Kind {
  shape: Shape
  /** What revisions have that have this kind. */
  since?: Feature
  /** What a client gets that does not have it. */
  instead?: (block: Payload) => Payload
  /** Takes the block's inside to the client. */
  inside?: (block: Payload, to: Downlevel) => Payload
}

type Kinds = Readonly<Record<string, Kind>>

/** Bytes of an unknown block that are shown as text. */
const MAX_SHOWN = 4 * 1024
const encoder = new TextEncoder()
/** Written to, and never read: what counts is how much fits. */
const scratch = new Uint8Array(MAX_SHOWN)

/** Blocks of the results of tools and of prompts. */
const shown: Kinds = {
  text: { shape: shapes.text },
  image: { shape: shapes.media },
  audio: { shape: shapes.media, since: 'audio', instead: asResource },
  resource: { shape: shapes.embeddedResource },
  resource_link: { shape: shapes.resourceLink, since: 'resourceLinks', instead: asReference },
}

/** Blocks of the messages that a model is to go on from. */
const sampled: Kinds = {
  text: { shape: shapes.text },
  image: { shape: shapes.media },
  audio: { shape: shapes.media, since: 'audio', instead: asMention },
  tool_use: { shape: shapes.toolUse, since: 'samplingTools' },
  tool_result: { shape: shapes.toolResult, since: 'samplingTools', inside: toolResult },
}

export const shownBlock = (block: Payload, to: Downlevel) => known(block, shown, to)
export const sampledBlock = (block: Payload, to: Downlevel) => known(block, sampled, to)

/** What has content, with each block of it as `shownBlock` has it. */
export function shownContent(holder: Payload, to: Downlevel): Payload {
  return inArray(
    holder,
    'content',
    (block) => shownBlock(block, to),
    (element) => unknownBlock(element, to),
  )
}

function known(block: Payload, kinds: Kinds, to: Downlevel): Payload {
  const type = value(block, 'type')
  const kind = typeof type === 'string' && Object.hasOwn(kinds, type) ? kinds[type] : undefined
  const lacking = kind?.since !== undefined && !speaks(to, kind.since)
  // What is going to be retold is looked at as it came: nothing of it has to go.
  const fitting = kind && fit(block, kind.shape, to, to.strict && !lacking)
  if (!fitting) return unknownBlock(write(block), to)
  if (!lacking) return kind.inside ? kind.inside(fitting, to) : fitting
  to.lost(kind.since ?? '')
  return kind.instead ? known(kind.instead(fitting), kinds, to) : asJson(write(fitting))
}

export function textBlock(text: string): Payload {
  return edit(EMPTY, { type: '"text"', text: JSON.stringify(text) })
}

/** What is said of a block apart from its content is said of what takes its place as well. */
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

/** A name for a content: FNV-1a, twice from different beginnings. It tells contents apart, and proves nothing. */
function digest(content: Json): string {
  return [0x811c9dc5, 0x01000193].map((basis) => fnv(content, basis).toString(16).padStart(8, '0')).join('')
}

function fnv(content: string, basis: number): number {
  let hash = basis
  for (let i = 0; i < content.length; i++) hash = Math.imul(hash ^ content.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

function toolResult(block: Payload, to: Downlevel): Payload {
  const told = shownContent(block, to)
  return isObjectOrAbsent(told) ? told : wrapped(told)
}
