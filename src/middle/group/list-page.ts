/** Makes the pages of a group: one page of a list of one server, with its items as clients of the group see them. */

import { detach } from '../../base/rpc/source.js'
import { arrayIn, type Json, opens, type Payload, payloadAt, value, write } from '../../base/rpc/splice.js'
import { inTurns } from '../../base/time/in-turns.js'
import { EVENT_LIST, LISTS, type ListTraits } from '../../mcp/protocol/methods.js'
import { soundItem } from '../../mcp/protocol/sound-item.js'
import { type Replace, replacedItem } from './places.js'

type GroupList = Pick<ListTraits, 'key' | 'id'>

/** The lists of a group, by method. */
export const GROUP_LISTS: ReadonlyMap<string, GroupList> = new Map<string, GroupList>([
  ...LISTS,
  ['skills/list', { key: 'skills', id: 'uri' }],
  [EVENT_LIST, { key: 'events', id: 'name' }],
])

/** A list of a group. `method` must be one of `GROUP_LISTS`. */
export function groupList(method: string): GroupList {
  return GROUP_LISTS.get(method) as GroupList
}

/** Whether a result has the list of its method. A list that is null or absent is an empty one. */
export function hasList(method: string, result: Payload): boolean {
  const first = opens(result, groupList(method).key)
  return first === undefined || first === '[' || first === 'n'
}

/** An item of a list: its name or URI at its server and in the group, and its JSON for clients. */
export interface ListedItem {
  id: string | undefined
  shown: string | undefined
  text: Json
}

/** An item that is not as it has to be. `lost`: its members that were removed; undefined if it is left out. */
export interface Flaw {
  name: string
  why: 'malformed' | 'twice'
  lost: readonly string[] | undefined
}

/** Lists whose items are used by what must not be there twice. */
export const UNIQUE: ReadonlySet<string> = new Set(['tools/list', 'prompts/list', 'resources/list', EVENT_LIST])
/** Most flaws of a page that are noted, and the length of a name. */
const MAX_FLAWS = 100
const MAX_FLAWED_NAME = 200

/** Estimated bytes of a page and of an item, without their texts. */
const PER_PAGE = 500
const PER_ITEM = 200

export class ListPage {
  /** Identifies the page, by its server, list and content. */
  readonly content: string
  /** The items for clients of the group, as JSON without the brackets of a list. */
  readonly text: string
  readonly items: readonly ListedItem[]
  readonly flaws: readonly Flaw[]
  /** The server's names or URIs of all items. */
  readonly ids: ReadonlySet<string>
  readonly bytes: number
  /** The part of `bytes` that the ids take. */
  readonly bytesOfIds: number

  constructor(content: string, items: readonly ListedItem[], flaws: readonly Flaw[]) {
    this.content = content
    this.flaws = flaws
    this.text = items.map(({ text }) => text).join(',')
    let end = -1
    // Parts of the one text, so that the page keeps nothing else alive.
    this.items = items.map(({ id, shown, text }) => {
      const start = end + 1
      end = start + text.length
      return { id, shown, text: this.text.slice(start, end) }
    })
    this.ids = new Set(items.flatMap(({ id }) => id ?? []))
    const sizes = items.map(({ id = '', shown = '' }) => id.length + shown.length + PER_ITEM)
    this.bytesOfIds = sizes.reduce((sum, size) => sum + size, PER_PAGE)
    this.bytes = bytesOf(this.text) + this.bytesOfIds
  }
}

/** The page in a result that `hasList`. */
export async function pageOf(
  { method, content }: { method: string; content: string },
  result: Payload,
  replace: Replace,
): Promise<ListPage> {
  const { key, id } = groupList(method)
  const { source, elements } = arrayIn(result, key) ?? { source: result.source, elements: [] }
  const items: ListedItem[] = []
  const flaws: Flaw[] = []
  const seen = new Set<string>()
  let count = 0
  for await (const span of inTurns(elements)) {
    count++
    const received = payloadAt(source, span)
    const lost = new Set<string>()
    const item = received && soundItem(method, received, (member) => lost.add(member))
    const itsId = item && textIn(item, id)
    const isTwice = itsId !== undefined && seen.has(itsId)
    if (!item || isTwice || lost.size > 0) {
      const name = (received && (textIn(received, id) ?? textIn(received, 'name'))) ?? `item ${count}`
      const flaw: Flaw = { name, why: isTwice ? 'twice' : 'malformed', lost: item && !isTwice ? [...lost] : undefined }
      if (flaws.length < MAX_FLAWS) flaws.push({ ...flaw, name: detach(name.slice(0, MAX_FLAWED_NAME)) })
    }
    if (!item || isTwice) continue
    if (itsId !== undefined && UNIQUE.has(method)) seen.add(itsId)
    const shown = replacedItem(method, key, item, replace)
    items.push({ id: itsId, shown: textIn(shown, id), text: write(shown) })
  }
  return new ListPage(content, items, flaws)
}

function textIn(item: Payload, key: string): string | undefined {
  const text = value(item, key)
  return typeof text === 'string' ? text : undefined
}

/** V8 takes two bytes for each character of a text, unless all are in Latin-1. */
function bytesOf(text: string): number {
  return Buffer.byteLength(text) === text.length ? text.length : 2 * text.length
}
