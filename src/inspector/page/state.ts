/** The state of the page: the events so far, and the current view, which the address repeats. */
import { batch, computed, signal } from '@preact/signals'
import { inOwnTexts, readFilter, WHOLE_SIGN } from '../filter.js'
import { isRunning } from '../phases.js'
import type { RecordedEvent } from '../recorder/events.js'
import { type CallView, type ProcessNow, type ServerNow, type ServerView, Views } from '../views.js'

export const PLACES = ['calls', 'servers', 'sessions', 'refused', 'try'] as const
export type PagePlace = (typeof PLACES)[number]

export const TABS = ['messages', 'timeline', 'why', 'raw'] as const
export type Tab = (typeof TABS)[number]

/** Fields of the filter with a drop-down list in the page. */
export const CHOICES = ['bridge', 'server', 'era', 'status'] as const
export type Selection = (typeof CHOICES)[number]

/** Where events come from. */
export type EventsFrom =
  | { kind: 'connecting' | 'live' | 'no token' }
  | { kind: 'waiting' | 'refused'; why: string }
  /** Events of a file. `isServed`: by the program that serves the page. */
  | { kind: 'file'; name: string; isServed?: boolean }

export const place = signal<PagePlace>('calls')
export const selected = signal<string | undefined>(undefined)
export const tab = signal<Tab>('messages')
export const filterText = signal('')
export const choices = signal<Readonly<Partial<Record<Selection, string>>>>({})
export const source = signal<EventsFrom>({ kind: 'connecting' })
export const helpOpen = signal(false)
/** A message that disappears after a moment. */
export const note = signal('')
/** The current state of the servers, from the bridge. */
export const serversNow = signal<readonly (ServerNow | ServerView)[]>([])
/** The process of the bridge; undefined if it is not known. */
export const processNow = signal<ProcessNow | undefined>(undefined)
/** Which payloads the bridge stores, until when if that is temporary, and whether it has any texts. */
export const kept = signal<{ payloads: string; until?: number; hasTexts: boolean } | undefined>(undefined)
/** Ids of the calls that stay in the memory of the bridge. */
export const pinned = signal<ReadonlySet<string>>(new Set())
/** When the memory of the bridge was cleared, in milliseconds since 1970. */
export const cleared = signal<number | undefined>(undefined)
/** Ids of the calls in whose texts a word of the filter was found, by words in lower case. */
export const foundInTexts = signal<ReadonlyMap<string, ReadonlySet<string>>>(new Map())
/** Whether the list follows the newest call. */
export const following = signal(true)
/** The index of the first call below the visible part of the list. */
export const seenUntil = signal(0)
/** The calls in the list when it was paused. */
const pausedCalls = signal<readonly CallView[] | undefined>(undefined)
/** Changes when events are added. */
const version = signal(0)

/** Bounds of the page: higher than those of the bridge, because it shows past sessions and stays open. */
const KEPT_HERE = { calls: 10_000, parts: 5_000, events: 100_000 }
let views = new Views(KEPT_HERE)

/** Most stored events outside of calls. The oldest are dropped. */
const MAX_OTHERS = 5_000
let others: RecordedEvent[] = []

/** The calls, servers and sessions of all events. A component that reads it is redrawn when events are added. */
export const current = computed(() => {
  void version.value
  return { views }
})

export const paused = computed(() => pausedCalls.value !== undefined)

/** The filter of the text and of the lists together. */
export const filterWords = computed(() => {
  const words = CHOICES.flatMap((choice) => {
    const value = choices.value[choice]
    // A part would also match servers with longer names.
    return value === undefined ? [] : [`${choice}:"${choice === 'server' ? WHOLE_SIGN : ''}${value}"`]
  })
  return [...words, filterText.value].join(' ').trim()
})

/** Texts are those in the events, as in a file, or those that the bridge has searched. */
const filter = computed(() => {
  const found = foundInTexts.value
  const isFound = (word: string, { id, parts }: CallView) => {
    const calls = found.get(word)
    return calls !== undefined && (calls.has(id) || parts.some((part) => calls.has(part)))
  }
  return readFilter(filterWords.value, (call, word) => inOwnTexts(call, word) || isFound(word, call))
})

/** The words of the filter that are searched in texts. */
export const textWords = computed(() => readFilter(filterWords.value).texts)

/** The error in the filter, or a hint. */
export const filterProblem = computed(() => filter.value.problem ?? filter.value.hint)

/** Whether a call matches the filter. Evaluated again only after the call has changed, or has taken longer. */
const isShown = computed(() => {
  const { matches } = filter.value
  const known = new WeakMap<CallView, { state: number; isMatch: boolean }>()
  return (call: CallView): boolean => {
    if (isRunning(call)) return matches(call, now())
    const state = call.events.length + call.more
    const before = known.get(call)
    if (before?.state === state) return before.isMatch
    const isMatch = matches(call)
    known.set(call, { state, isMatch })
    return isMatch
  }
})

/** Calls that match the filter, oldest first. */
export const shownCalls = computed<readonly CallView[]>(() => {
  const all = pausedCalls.value ?? [...current.value.views.calls.values()]
  return filter.value.isEmpty ? all : all.filter(isShown.value)
})

/** The call that is shown in detail. */
export const selectedCall = computed(() => {
  const { value: id } = selected
  return id === undefined ? undefined : { call: current.value.views.call(id) }
})

/** Offset of the bridge's clock to `performance.now`, in milliseconds. The clock of the viewer may be wrong. */
let ahead = 0

/** Synchronizes the clock with the bridge. */
export function setClock(at: number): void {
  ahead = at - performance.now()
}

/** The current time for running calls. Without a bridge, it is constant. */
export function now(): number {
  return source.value.kind === 'live' ? performance.now() + ahead : views.at
}

/**
 * The time up to which a call is drawn. Components of a call take it as a property: a call is one mutable object, and a
 * component with equal properties is not redrawn. An ended call needs no time.
 */
export function timeOf(call: CallView): number {
  return isRunning(call) ? now() : call.at
}

/** Milliseconds between two ticks. */
const TICK = 1_000

/** Redraws the page every second while a call runs, because its duration is shown. */
export function followClock(): void {
  setInterval(() => {
    if (source.peek().kind !== 'live' || document.hidden) return
    if ([...views.calls.values()].some(isRunning)) add([])
  }, TICK)
}

/** Shortest pause between two redraws in milliseconds, and its least multiple of the last redraw's duration. */
const DRAW = 100
const REST = 4

let scheduled = false
/** When the page may be redrawn next, in milliseconds of `performance.now`. */
let next = 0

/**
 * Adds events. Whatever their rate, redrawing takes at most a fifth of the time, so that the page can react to keys. A
 * hidden page is not redrawn.
 */
export function add(events: readonly RecordedEvent[]): void {
  for (const seen of events) {
    views.add(seen)
    if (seen.call === undefined) others.push(seen)
  }
  if (others.length > MAX_OTHERS) others = others.slice(-MAX_OTHERS)
  if (scheduled) return
  scheduled = true
  setTimeout(() => requestAnimationFrame(draw), next - performance.now())
}

function draw(began: number): void {
  scheduled = false
  version.value++
  next = began + DRAW
  // After the frame: the time since then is the duration of the redraw.
  setTimeout(() => {
    const now = performance.now()
    next = Math.max(next, now + (now - began) * REST)
  })
}

/** These calls stay in the memory of the bridge, and of the page. */
export function setPinned(ids: Iterable<string>): void {
  pinned.value = new Set(ids)
  views.pin(pinned.value)
}

/** Events before this number may have left the memory of the bridge: they are not lost. It was cleared at this time. */
export function beginAt({ first, cleared: at }: { first: number; cleared?: number }): void {
  views.first = first
  cleared.value = at
}

/** Drops all events: they are from another bridge, or from a file. */
export function forget(): void {
  views = new Views(KEPT_HERE)
  views.pin(pinned.peek())
  others = []
  batch(() => {
    pausedCalls.value = undefined
    serversNow.value = []
    processNow.value = undefined
    kept.value = undefined
    version.value++
  })
}

/** The events of the page in order: those of matching calls, or all without a filter. */
export function eventsOf(words: string): RecordedEvent[] {
  const { matches, isEmpty } = words === filterWords.peek() ? filter.peek() : readFilter(words)
  const events = [...views.calls.values()].filter((call) => matches(call, now())).flatMap((call) => call.events)
  // A stream event that concerns an answer is also part of its call.
  const all = new Map([...(isEmpty ? others : []), ...events].map((seen) => [seen.seq, seen]))
  return [...all.values()].toSorted((a, b) => a.seq - b.seq)
}

export function toggleHelp(): void {
  helpOpen.value = !helpOpen.value
}

export function togglePause(): void {
  pausedCalls.value = paused.value ? undefined : [...views.calls.values()]
}

/** Selects the call `by` rows below the selected one; without one, the newest visible call. */
export function move(by: number): void {
  const calls = shownCalls.value
  const at = calls.findIndex(({ id }) => id === selected.value)
  const next = at < 0 ? seenUntil.value - 1 : at + by
  const call = calls[Math.min(calls.length - 1, Math.max(0, next))]
  if (call) selected.value = call.id
}

export function moveTab(by: number): void {
  const at = TABS.indexOf(tab.value)
  tab.value = TABS[(at + by + TABS.length) % TABS.length] as Tab
}

/** Shows a message for a moment. */
export function say(text: string): void {
  note.value = text
  setTimeout(() => {
    if (note.value === text) note.value = ''
  }, 3_000)
}
