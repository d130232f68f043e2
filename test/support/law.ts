/**
 * Whether the changes that the inspector shows are true: applied to the message that came in, they give the one that
 * went out, and taken back, they give the one that came in. Values that are new come from the other message. Values that
 * no change names have to have the same bytes, white space included, and members the same order.
 */

import { scanAt } from '../../src/base/rpc/scan.js'
import { sourceOf } from '../../src/base/rpc/source.js'
import { elementsAt, membersAt } from '../../src/base/rpc/table.js'
import { movedTo, valueAt } from '../../src/inspector/changed-values.js'
import type { Change, RecordedEvent } from '../../src/inspector/recorder/events.js'
import { RULES } from '../../src/inspector/recorder/rules.js'
import { rowsOf } from '../../src/inspector/rows.js'
import type { Views } from '../../src/inspector/views.js'

interface Watched {
  events: readonly RecordedEvent[]
  /** Whole texts of messages, by the numbers of their events. */
  texts: ReadonlyMap<number, string>
  views: Views
  /** Names the pair of eras in the tables. */
  eras: string
}

type Message = Extract<RecordedEvent, { kind: 'message' }>

/** Checks the changes of all messages, and counts what it has checked and what has no counterpart. */
export class Checked {
  /** Messages whose changes are true, by how their counterpart was found. */
  readonly found = { 'by the inspector': 0, 'in the same row': 0, 'by its method': 0 }
  /** Messages that say in another form what a message of the other wire says, by rule. */
  readonly anew = new Set<string>()
  /** Messages that have no changes, though there is a message of the other wire in the same row. */
  readonly unexplained = new Set<string>()
  /** Messages of the bridge alone. */
  readonly own = new Set<string>()
  readonly rules = new Set<string>()

  /** What is wrong with the changes of these events. */
  all({ events, texts, views, eras }: Watched): string[] {
    const messages = events.flatMap((seen) => (seen.kind === 'message' ? [seen] : []))
    const bySeq = new Map(messages.map((message) => [message.seq, message]))
    const besides = new Map<number, Message>()
    for (const call of views.calls.values())
      for (const { client, server } of rowsOf(call)) {
        if (!client || !server) continue
        besides.set(client.seq, server)
        besides.set(server.seq, client)
      }
    const wrongWith = (from: Message, to: Message) => {
      const [received, sent, changes] = [texts.get(from.seq) ?? '', texts.get(to.seq) ?? '', to.changes ?? []]
      return [...untruths(received, sent, changes), ...withoutValue(received, sent, changes)]
    }
    const sameMethod = (to: Message) =>
      messages.find(
        (one) => one.dir === 'in' && one.hop !== to.hop && one.method === to.method && wrongWith(one, to).length === 0,
      )
    return messages.flatMap((message) => {
      if (message.dir === 'in') return []
      const { hop, form, method, changes = [], call } = message
      const about = `${eras}: ${views.call(call ?? '')?.method ?? 'no call'}, to the ${hop}: ${method ?? form}`
      if (!message.changes) {
        ;(besides.has(message.seq) ? this.unexplained : this.own).add(about)
        return []
      }
      for (const { rule } of changes) this.rules.add(rule)
      const unknown = changes.filter(({ rule }) => !RULES.has(rule))
      if (unknown.length > 0 || message.more) return [`${about}: ${JSON.stringify({ unknown, more: message.more })}`]
      if (changes[0]?.at === '') {
        this.anew.add(`${eras}: ${changes[0].rule}`)
        return changes.length === 1 ? [] : [`${about}: ${JSON.stringify(changes)}`]
      }
      const known = message.of === undefined ? undefined : bySeq.get(message.of)
      const from = known ?? besides.get(message.seq) ?? sameMethod(message)
      if (!from) return [`${about}: there is no message that was changed`]
      this.found[known ? 'by the inspector' : besides.has(message.seq) ? 'in the same row' : 'by its method']++
      return wrongWith(from, message).map((wrong) => `${about}: ${wrong}`)
    })
  }
}

/** A JSON value with its bytes. `members` and `elements` are set if it is taken apart. */
interface Node {
  raw: string
  members?: Map<string, Node>
  elements?: Node[]
}

/** The changes at a place and below it. */
interface Place {
  op?: Change['op']
  isOpen?: true
  below: Map<string, Place>
}

/** Changes whose values the page does not find. */
function withoutValue(received: string, sent: string, changes: readonly Change[]): string[] {
  return changes
    .filter(
      ({ at, op }) =>
        (op !== 'add' && valueAt(received, at) === undefined) ||
        (op !== 'remove' && valueAt(sent, movedTo(at, changes)) === undefined),
    )
    .map(({ at, op }) => `${op} ${at} has no value`)
}

/** What is wrong with these changes; empty if they are true. */
export function untruths(received: string, sent: string, changes: readonly Change[]): string[] {
  const place = placesOf(changes)
  takeApart(place, ['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
  for (const key of ['params', 'result']) takeApart(place.below.get(key), ['_meta'])
  const wrong: string[] = []
  const before = nodeOf(received, place)
  const after = nodeOf(sent, place, before)
  wrong.push(...differences(applied(before, after, place, '', wrong), after, 'applied', ''))
  wrong.push(...differences(takenBack(after, before, place), before, 'taken back', ''))
  return wrong
}

/**
 * Has the members of an object compared one by one: the bridge may write these in another order, and without the white
 * space between them.
 */
function takeApart(place: Place | undefined, keys: readonly string[]): void {
  if (!place || place.op !== undefined) return
  place.isOpen = true
  for (const key of keys) if (!place.below.has(key)) place.below.set(key, { below: new Map() })
  for (const key of ['_meta']) {
    const inner = place.below.get(key)
    if (inner && inner.op === undefined) inner.isOpen = true
  }
}

function placesOf(changes: readonly Change[]): Place {
  const root: Place = { below: new Map() }
  for (const { at, op } of changes) {
    let place = root
    for (const token of at.split('/').slice(1)) {
      const key = token.replaceAll('~1', '/').replaceAll('~0', '~')
      const next = place.below.get(key) ?? { below: new Map() }
      place.below.set(key, next)
      place = next
    }
    place.op = op
  }
  return root
}

function hasChange({ op, below }: Place): boolean {
  return op !== undefined || [...below.values()].some(hasChange)
}

/** The text as far as there are changes in it. `before` gives the places of the elements of lists, which may have moved. */
function nodeOf(raw: string, place: Place | undefined, before?: Node): Node {
  const source = sourceOf(raw.trim())
  const { text } = source
  if (!place || place.op !== undefined || (place.below.size === 0 && !place.isOpen)) return { raw: text }
  if (text.startsWith('{')) {
    const members = new Map<string, Node>()
    for (const { key, start, end } of membersAt(source, scanAt(source, 0)))
      members.set(key, nodeOf(text.slice(start, end), place.below.get(key), before?.members?.get(key)))
    return { raw: text, members }
  }
  if (!text.startsWith('[')) return { raw: text }
  const spans = elementsAt(scanAt(source, 0))
  const removed = (index: number) => before !== undefined && place.below.get(String(index))?.op === 'remove'
  let index = 0
  const elements = spans.map(({ start, end }) => {
    while (removed(index)) index++
    const node = nodeOf(text.slice(start, end), place.below.get(String(index)), before?.elements?.[index])
    index++
    return node
  })
  return { raw: text, elements }
}

function applied(before: Node, after: Node, place: Place, at: string, wrong: string[]): Node {
  if (before.members) {
    const members = new Map<string, Node>()
    const others = after.members ?? new Map<string, Node>()
    for (const [key, node] of before.members) {
      const here = place.below.get(key)
      if (here?.op === 'remove') continue
      if (here?.op === 'add') wrong.push(`${at}/${key} was there before it was added`)
      const other = others.get(key)
      members.set(
        key,
        here?.op === 'replace'
          ? (other ?? node)
          : here && other
            ? applied(node, other, here, `${at}/${key}`, wrong)
            : node,
      )
    }
    for (const [key, here] of place.below) {
      if (here.op !== 'add' && hasChange(here) && !before.members.has(key)) wrong.push(`${at}/${key} is not there`)
      const other = others.get(key)
      if (here.op === 'add' && other) members.set(key, other)
    }
    return { raw: before.raw, members }
  }
  const isThere = (index: string) => before.elements?.[Number(index)] !== undefined
  for (const [key, here] of place.below) if (hasChange(here) && !isThere(key)) wrong.push(`${at}/${key} is not there`)
  if (!before.elements) return before
  const elements: Node[] = []
  for (const [index, node] of before.elements.entries()) {
    const here = place.below.get(String(index))
    if (here?.op === 'remove') continue
    const other = after.elements?.[elements.length]
    elements.push(
      here?.op === 'replace'
        ? (other ?? node)
        : here && other
          ? applied(node, other, here, `${at}/${index}`, wrong)
          : node,
    )
  }
  return { raw: before.raw, elements }
}

function takenBack(after: Node, before: Node, place: Place): Node {
  if (after.members && before.members) {
    const members = new Map<string, Node>()
    for (const [key, node] of after.members) {
      const here = place.below.get(key)
      const other = before.members.get(key)
      if (here?.op === 'add') continue
      members.set(key, here?.op === 'replace' ? (other ?? node) : here && other ? takenBack(node, other, here) : node)
    }
    for (const [key, here] of place.below) {
      const other = before.members.get(key)
      if (here.op === 'remove' && other) members.set(key, other)
    }
    return { raw: after.raw, members }
  }
  if (!after.elements || !before.elements) return after
  const elements: Node[] = []
  let next = 0
  for (const [index, node] of before.elements.entries()) {
    const here = place.below.get(String(index))
    const other = here?.op === 'remove' ? node : after.elements[next++]
    if (other)
      elements.push(
        here?.op === 'replace' ? node : here && here.op === undefined ? takenBack(other, node, here) : other,
      )
  }
  elements.push(...after.elements.slice(next))
  return { raw: after.raw, elements }
}

/** Where two texts differ. */
function differences(one: Node, other: Node, how: string, at: string): string[] {
  if (one.members && other.members) {
    // New members come last. Only the members of the message itself have an order of their own.
    const orders = [one.members, other.members].map((members) => [...members.keys()].join())
    if (at !== '' && how === 'applied' && orders[0] !== orders[1])
      return [`${how}, ${at} has the members ${orders.join(' and not ')}`]
    const keys = new Set([...one.members.keys(), ...other.members.keys()])
    return [...keys].flatMap((key) => {
      const [here, there] = [one.members?.get(key), other.members?.get(key)]
      if (here && there) return differences(here, there, how, `${at}/${key}`)
      return [`${how}, ${at}/${key} is ${here ? 'left over' : 'missing'}`]
    })
  }
  if (one.elements && other.elements) {
    if (one.elements.length !== other.elements.length)
      return [`${how}, ${at} has ${one.elements.length} elements and not ${other.elements.length}`]
    return one.elements.flatMap((node, index) =>
      differences(node, other.elements?.[index] as Node, how, `${at}/${index}`),
    )
  }
  return one.raw === other.raw ? [] : [`${how}, ${at} is ${one.raw.slice(0, 200)} and not ${other.raw.slice(0, 200)}`]
}
