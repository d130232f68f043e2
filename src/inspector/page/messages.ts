/** The messages of a call on both wires, side by side, with the changes by the bridge. */
import { useSignal } from '@preact/signals'
import { html } from 'htm/preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { sharesOf } from '../json-lines.js'
import { awaysOf, isRunning, phasesOf } from '../phases.js'
import type { KeptPicture } from '../recorder/events.js'
import { clientOf, httpStatus, type MessageRow, type Row, rowsOf } from '../rows.js'
import { openingSince } from '../server-views.js'
import type { CallView } from '../views.js'
import { duration, full, shown, size } from '../words.js'
import { Changes, type MessageMarks, marksOf } from './changes.js'
import { isAmong, type Laid, lay, MarkedJson } from './marked.js'
import { line, Missing } from './raw.js'
import { current, textWords } from './state.js'
import { Picture } from './try/outcome.js'
import { isDrawn } from './try/pixels.js'

/** Pixels of the heading of the table, the heading and the foot of a message, a line of text, and a character. */
const PIXELS = { head: 30, message: 30, foot: 32, line: 19, character: 7.83 } as const
/** Pixels beside the texts: of the panel, of a cell, and before a text for its signs. */
const BESIDE = { panel: 24, cell: 20, signs: 22 } as const
/** Narrower panels have the sides below one another, as in the style sheet. */
const SIDE_BY_SIDE = 700
/** Least lines that are shown of a text. */
const LEAST = 2

interface Room {
  width: number
  height: number
}

/** Parts that the reader has opened or closed, by the numbers of the first messages of rows. */
interface Folds {
  open: ReadonlyMap<number, boolean>
  whole: ReadonlyMap<number, boolean>
  changes: ReadonlyMap<number, boolean>
}

/**
 * The messages of a call: the client's wire on the left, the server's on the right, aligned by cause. Texts share the room of
 * the panel and can be expanded; only the panel scrolls. `time`: a running call is drawn up to here. `isRead`: the kept texts
 * have been read.
 */
export function Messages({ call, time, isRead }: { call: CallView; time: number; isRead: boolean }) {
  const table = useRef<HTMLTableElement>(null)
  const room = useRoom(table)
  const folds = useSignal<Folds>({ open: new Map(), whole: new Map(), changes: new Map() })
  const fold = (what: keyof Folds, row: number, isOpen: boolean) => {
    folds.value = { ...folds.value, [what]: new Map(folds.value[what]).set(row, isOpen) }
  }
  const rows = rowsOf(call)
  const words = textWords.value
  const isFound = rows.some((row) => hasWord(row, words))
  // Scrolls to the first search result.
  useEffect(
    () => document.querySelector('#panel mark')?.scrollIntoView({ block: 'nearest' }),
    [call.id, isFound, words.join(' ')],
  )
  if (rows.length === 0) return html`<p class="empty">No messages of this call were recorded.</p>`
  const isStacked = room.width < SIDE_BY_SIDE
  const outside = isStacked ? BESIDE.panel + 22 : BESIDE.panel / 2
  const column = (isStacked ? room.width : room.width / 2) - outside - BESIDE.cell - BESIDE.signs
  const width = Math.max(20, Math.floor(column / PIXELS.character))
  const pairs = rows.map((row): Pair => {
    const seq = firstOf(row)
    const isOpen = folds.value.open.get(seq) ?? (!isNotification(row) || hasWord(row, words))
    const side = (hop: MessageRow['hop']): Side | undefined => {
      const message = row[hop]
      if (!message) return undefined
      const marks = marksOf(message, row[hop === 'client' ? 'server' : 'client'], call)
      return { message, marks, laid: isOpen && message.payload ? lay(message.payload, width, marks.own) : undefined }
    }
    const [client, server] = [side('client'), side('server')]
    const heights = [client?.laid?.height ?? 0, server?.laid?.height ?? 0]
    const hasPictures = isOpen && [client, server].some((one) => one?.message.payload?.pictures)
    return { seq, row, client, server, isOpen, hasPictures, height: isStacked ? sum(heights) : Math.max(...heights) }
  })
  const opened = pairs.filter(({ isOpen }) => isOpen)
  const aways = awaysOf(call)
  const gaps = aways.length + (isRunning(call) ? 1 : 0)
  const others =
    PIXELS.head +
    (pairs.length + gaps) * PIXELS.message +
    opened.length * PIXELS.foot +
    pairs.filter(({ hasPictures }) => hasPictures).length * (THUMBNAIL + PIXELS.line)
  const lines = Math.floor((room.height - others) / PIXELS.line)
  const shares = sharesOf(
    opened.map(({ height }) => height),
    lines,
    LEAST,
  )
  const shareOf = new Map(opened.map(({ seq }, i) => [seq, Math.ceil((shares[i] as number) / (isStacked ? 2 : 1))]))
  const explained = new Set<string>()
  const away = (before: number, last: Row | undefined) =>
    aways
      .filter(({ seq }) => seq < before && (!last || seq > firstOf(last)))
      .map(
        ({ ms }) =>
          html`<tr class="away"><td colspan="2">… client away ${ms === undefined ? '' : duration(ms)} …</td></tr>`,
      )
  return html`
    <table class="sides" ref=${table}>
      <caption class="hidden">Messages with the client and with the server, side by side</caption>
      <thead>
        <tr>
          <th scope="col">Client <span class="faint">${full(clientOf(call))}</span></th>
          <th scope="col">Server <span class="faint">${full(call.upstream)}${call.pid === undefined ? '' : `, pid ${call.pid}`}</span></th>
        </tr>
      </thead>
      <tbody>
        ${pairs.map((pair, i) => {
          const { seq } = pair
          const share = shareOf.get(seq) ?? 0
          const isCut =
            hasWord(pair.row, words) && !sidesOf(pair).some(({ laid }) => laid && isAmong(words, laid, share))
          const most = (folds.value.whole.get(seq) ?? isCut) ? Number.POSITIVE_INFINITY : share
          const view = { call, pair, most, words, isRead, explained, folds: folds.value, fold }
          return [...away(seq, rows[i - 1]), html`<tr key=${seq}>${cell(view, 'client')}${cell(view, 'server')}</tr>`]
        })}
        ${away(Number.POSITIVE_INFINITY, rows.at(-1))}
        ${isRunning(call) && html`<tr class="away"><td colspan="2">… ${waiting(call, time)} …</td></tr>`}
      </tbody>
    </table>
  `
}

/** A message, its changes, and its text if it is open. */
interface Side {
  message: MessageRow
  marks: MessageMarks
  laid: Laid | undefined
}

/** A row: a message and its counterpart. */
interface Pair {
  /** The number of the first one. */
  seq: number
  row: Row
  client: Side | undefined
  server: Side | undefined
  isOpen: boolean
  hasPictures: boolean
  /** Lines of the longer text; of both, if they are below one another. */
  height: number
}

function sidesOf({ client, server }: Pair): Side[] {
  return [client, server].filter((side) => side !== undefined)
}

/** Whether a text of a row has one of these words, which are in lower case. */
function hasWord({ client, server }: Row, words: readonly string[]): boolean {
  if (words.length === 0) return false
  const texts = [client, server].map((message) => message?.payload?.text.toLowerCase() ?? '')
  return words.some((word) => texts.some((text) => text.includes(word)))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => one + other, 0)
}

function isNotification({ client, server }: Row): boolean {
  return (client ?? server)?.form === 'notification'
}

/** The room of the panel for the table. */
function useRoom(table: { readonly current: HTMLTableElement | null }): Room {
  const room = useSignal<Room>({ width: innerWidth, height: innerHeight / 2 })
  const measure = () => {
    const panel = document.getElementById('panel')
    const { current: element } = table
    if (!panel || !element) return
    const above = element.getBoundingClientRect().top - panel.getBoundingClientRect().top + panel.scrollTop
    const [width, height] = [panel.clientWidth, Math.round(panel.clientHeight - above)]
    const before = room.peek()
    if (width !== before.width || height !== before.height) room.value = { width, height }
  }
  // The height above the table depends on the call.
  useLayoutEffect(measure)
  useEffect(() => {
    const panel = document.getElementById('panel')
    if (!panel) return undefined
    const observer = new ResizeObserver(measure)
    observer.observe(panel)
    return () => observer.disconnect()
  }, [])
  return room.value
}

/** The side that a call waits for, and since when. */
function waiting(call: CallView, time: number): string {
  const { who = 'bridge', from = 0, to = 0 } = phasesOf(call, time).at(-1) ?? {}
  const { servers } = current.value.views
  const asked = [call.server, ...call.members].flatMap((name) => servers.get(name) ?? [])
  const opening = who === 'bridge' && asked.map((server) => openingSince(server, call.at)).find(Boolean)
  const where = who === 'bridge' ? 'in the bridge' : `waiting for the ${who}`
  const why = opening ? `: the server has not answered ${shown(opening.method)}` : ''
  return `${where} for ${duration(to - from)} so far${why}`
}

function firstOf({ client, server }: Row): number {
  return Math.min(client?.seq ?? Number.POSITIVE_INFINITY, server?.seq ?? Number.POSITIVE_INFINITY)
}

interface CellView {
  call: CallView
  pair: Pair
  /** Most lines of a text. */
  most: number
  words: readonly string[]
  isRead: boolean
  explained: Set<string>
  folds: Folds
  fold(what: keyof Folds, row: number, isOpen: boolean): void
}

/** One message: its text with the changes marked, and the changes as a list. */
function cell({ call, pair, most, words, isRead, explained, folds, fold }: CellView, hop: MessageRow['hop']) {
  const { seq, row, isOpen } = pair
  const { [hop]: side } = pair
  const other = row[hop === 'client' ? 'server' : 'client']
  if (!side) return html`<td class="none" data-label=${hop}>${other && note(other, row, isRunning(call))}</td>`
  const { message, marks, laid } = side
  const { payload, more } = message
  const isFirst = hop === 'client' || !pair.client
  const changes = marks.own.length + marks.elsewhere.length
  // Changes that are marked in the text need no list.
  const isListed = folds.changes.get(seq) ?? (isRead && (laid?.found.size ?? -1) < marks.own.length)
  const isWhole = most === Number.POSITIVE_INFINITY
  const rest = laid ? laid.height - most : 0
  return html`
    <td data-label=${hop}>
      <p class="message">
        ${isFirst && html`<button type="button" class="fold" aria-expanded=${isOpen ? 'true' : 'false'} aria-label=${`Text of ${line(message)}`} onClick=${() => fold('open', seq, !isOpen)}></button>`}
        <span aria-hidden="true">${message.dir === (hop === 'client' ? 'in' : 'out') ? '→' : '←'} </span>${line(message, httpStatus(message, call))} <span class="faint">${duration(message.at - call.at)}, ${size(message.bytes)}</span>
      </p>
      ${laid && html`<${MarkedJson} laid=${laid} most=${most} words=${words} />`}
      ${isOpen && payload?.pictures && html`<${Thumbnails} pictures=${payload.pictures} />`}
      ${
        isOpen &&
        html`
        <div class="foot">
          ${rest > 0 && html`<button type="button" class="link" onClick=${() => fold('whole', seq, true)}>Show ${rest} more ${rest === 1 ? 'line' : 'lines'}</button>`}
          ${isWhole && laid && html`<button type="button" class="link" onClick=${() => fold('whole', seq, false)}>Show less</button>`}
          ${changes > 0 && html`<button type="button" class="link" aria-expanded=${isListed ? 'true' : 'false'} onClick=${() => fold('changes', seq, !isListed)}>${changes === 1 ? '1 change' : `${changes} changes`}</button>`}
          ${more !== undefined && html`<span class="faint">${more} more changes are not listed</span>`}
          ${payload && html`<${Missing} payload=${payload} />`}
        </div>
        ${changes > 0 && isListed && html`<${Changes} marks=${marks} explained=${explained} />`}
      `
      }
    </td>
  `
}

/** Largest side of a thumbnail in pixels. */
const THUMBNAIL = 96

function Thumbnails({ pictures }: { pictures: readonly KeptPicture[] }) {
  return html`
    <div class="thumbnails">
      ${pictures.map(({ type, data }) => {
        const words = `${shown(type, 40)}, ${size(Math.floor((data.length * 3) / 4))}`
        return html`<figure>${isDrawn(type) && html`<${Picture} type=${type} bytes=${data} side=${THUMBNAIL} />`}<figcaption class="faint">${words}</figcaption></figure>`
      })}
    </div>
  `
}

/** Points to the counterpart of a message, if it is not in the same row. */
function note(other: MessageRow, { elsewhere }: Row, isOpen: boolean): string {
  if (elsewhere === 'unseen') return 'forwards a message that is not shown here'
  if (elsewhere)
    return other.dir === 'out' ? `caused by ${line(elsewhere)}, above` : `forwarded in ${line(elsewhere)}, below`
  if (other.dir === 'out') return 'sent by the bridge itself'
  if (other.method === 'notifications/cancelled') return 'cancels the call'
  return isOpen ? 'not forwarded yet' : 'not forwarded'
}
