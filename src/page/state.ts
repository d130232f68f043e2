/** What the page shows: the events so far, and the place in the page, which the address repeats. */
import { batch, computed, signal } from '@preact/signals'
import { readFilter } from '../inspect/filter.js'
import { isRunning } from '../inspect/phases.js'
import { type CallView, type ServerNow, type ServerView, Views } from '../inspect/views.js'
import type { Seen } from '../ports/seen.js'

export const PLACES = ['calls', 'servers', 'sessions', 'refused'] as const
export type Place = (typeof PLACES)[number]

export const TABS = ['messages', 'timeline', 'why', 'raw'] as const
export type Tab = (typeof TABS)[number]

/** Words of the filter that have a list of their own in the page. */
export const CHOICES = ['server', 'era', 'status'] as const
export type Choice = (typeof CHOICES)[number]

/** Where events come from. */
export type Source =
  | { kind: 'connecting' | 'live' | 'no token' }
  | { kind: 'waiting' | 'refused'; why: string }
  /** Events of a file. */
  | { kind: 'file'; name: string }

export const place = signal<Place>('calls')
export const selected = signal<string | undefined>(undefined)
export const tab = signal<Tab>('messages')
export const filterText = signal('')
export const choices = signal<Readonly<Partial<Record<Choice, string>>>>({})
export const source = signal<Source>({ kind: 'connecting' })
export const helpOpen = signal(false)
/** What was done, for a moment. */
export const note = signal('')
/** What the bridge says about its servers now. */
export const serversNow = signal<readonly (ServerNow | ServerView)[]>([])
/** Whose messages the bridge keeps as text now, until when, if that ends by itself, and whether it has any texts. */
export const kept = signal<{ payloads: string; until?: number; hasTexts: boolean } | undefined>(undefined)
/** Whether the list of calls stays at the newest. */
export const following = signal(true)
/** The number of calls in the list before the first one that is below what can be seen. */
export const seenUntil = signal(0)
/** The calls that were shown when the list was paused. */
const pausedCalls = signal<readonly CallView[] | undefined>(undefined)
/** Changes when events were added. */
const version = signal(0)

let views = new Views()

/** Most events that are kept although they belong to no call. The oldest leave. */
const MAX_OTHERS = 5_000
let others: Seen[] = []

/** What the events add up to. A component that reads it is drawn again when events come. */
export const current = computed(() => {
  version.value
  return { views }
})

export const paused = computed(() => pausedCalls.value !== undefined)

/** The filter of the text and of the lists together. */
export const filterWords = computed(() => {
  const words = CHOICES.flatMap((choice) => {
    const value = choices.value[choice]
    return value === undefined ? [] : [`${choice}:"${value}"`]
  })
  return [...words, filterText.value].join(' ').trim()
})

const filter = computed(() => readFilter(filterWords.value))

/** What is wrong with the filter, or may not be meant. */
export const filterProblem = computed(() => filter.value.problem ?? filter.value.hint)

/** Whether a call matches the filter. A call is examined again only when it has changed, or has taken longer. */
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

/** What the clock of the bridge is ahead of `performance.now`, in milliseconds. The clock of the viewer may be wrong. */
let ahead = 0

/** Sets the clock by that of the bridge. */
export function setClock(at: number): void {
  ahead = at - performance.now()
}

/** The time that running calls are measured by. Without a bridge, time stands still. */
export function now(): number {
  return source.value.kind === 'live' ? performance.now() + ahead : views.at
}

/**
 * The time until which a call is shown. Who draws a part of a call gives it this time: a call is one object, which changes,
 * and what is given the same again is not drawn again. A call that has ended needs no time.
 */
export function timeOf(call: CallView): number {
  return isRunning(call) ? now() : call.at
}

/** Milliseconds between two looks at the clock. */
const TICK = 1_000

/** Draws the page every second while a call runs, because its time is shown. */
export function followClock(): void {
  setInterval(() => {
    if (source.peek().kind !== 'live' || document.hidden) return
    if ([...views.calls.values()].some(isRunning)) add([])
  }, TICK)
}

/** Milliseconds between two drawings, and the least number of times that a drawing fits between them. */
const DRAW = 100
const REST = 4

let scheduled = false
/** When the page may be drawn next, in milliseconds of `performance.now`. */
let next = 0

/**
 * Adds events. However many come, drawing them takes at most a fifth of the time, so that the page can answer keys. A
 * page that nobody sees is not drawn.
 */
export function add(events: readonly Seen[]): void {
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
  // After the frame: what has passed since is what the drawing took.
  setTimeout(() => {
    const now = performance.now()
    next = Math.max(next, now + (now - began) * REST)
  })
}

/** Forgets all events: they are of another bridge, or of a file. */
export function forget(): void {
  views = new Views()
  others = []
  batch(() => {
    pausedCalls.value = undefined
    serversNow.value = []
    kept.value = undefined
    version.value++
  })
}

/** The events that the page has, in order: of calls that match, or all without a filter. */
export function eventsOf(words: string): Seen[] {
  const { matches, isEmpty } = readFilter(words)
  const events = [...views.calls.values()].filter((call) => matches(call, now())).flatMap((call) => call.events)
  // An event of the stream with an answer is in its call, too.
  const all = new Map([...(isEmpty ? others : []), ...events].map((seen) => [seen.seq, seen]))
  return [...all.values()].toSorted((a, b) => a.seq - b.seq)
}

export function togglePause(): void {
  pausedCalls.value = paused.value ? undefined : [...views.calls.values()]
}

/** Chooses the call `by` rows below the selected one. If none is selected, the newest one that can be seen. */
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

/** Says what was done, for a moment. */
export function say(text: string): void {
  note.value = text
  setTimeout(() => {
    if (note.value === text) note.value = ''
  }, 3_000)
}
