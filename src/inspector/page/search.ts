/** Has the bridge search its kept texts for the words of the filter, because the page does not have the texts. */
import { effect } from '@preact/signals'
import { isRunning } from '../phases.js'
import type { Views } from '../views.js'
import { mayHaveTexts, readFromBridge } from './feed.js'
import { current, foundInTexts, source, textWords } from './state.js'

/** Milliseconds before a search, so that it begins after the last key, and at least between two searches. */
const BEFORE = 200
const BETWEEN = 1_000
/** A search may take this share of the time of the bridge. */
const REST = 10
/** Most words that are searched. */
const MAX_WORDS = 5

/** The results of a word. */
interface Searched {
  calls: Set<string>
  /** Events up to this one need not be searched again. */
  after: number
}

/** Searches again whenever the words change, or events come, until the page is closed. */
export function followSearch(): void {
  const known = new Map<string, Searched>()
  let of: Views | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let next = 0
  let words = ''
  const search = async () => {
    timer = undefined
    const began = performance.now()
    const { views } = current.peek()
    for (const word of textWords.peek().slice(0, MAX_WORDS)) {
      const before = known.get(word) ?? { calls: new Set(), after: 0 }
      // Texts of a call may become visible when it ends.
      const running = [...views.calls.values()].filter(isRunning).map(({ events }) => (events[0]?.seq ?? 1) - 1)
      const path = `found?${new URLSearchParams({ text: word, after: `${before.after}` })}`
      const found = await readFromBridge<{ calls: string[]; last: number }>(path)
      if (!found || current.peek().views !== views) continue
      const { calls, last } = found
      known.set(word, { calls: new Set([...before.calls, ...calls]), after: Math.min(last, ...running) })
    }
    const now = performance.now()
    next = now + Math.max(BETWEEN, (now - began) * REST)
    foundInTexts.value = new Map([...known].map(([word, { calls }]) => [word, calls]))
  }
  effect(() => {
    const { views } = current.value
    if (of !== views) known.clear()
    of = views
    const wanted = textWords.value
    for (const word of known.keys()) if (!wanted.includes(word)) known.delete(word)
    if (wanted.length === 0 || source.value.kind !== 'live' || !mayHaveTexts()) return
    const isNew = words !== wanted.join(' ')
    words = wanted.join(' ')
    if (timer !== undefined && !isNew) return
    clearTimeout(timer)
    timer = setTimeout(() => search().catch(() => {}), isNew ? BEFORE : Math.max(BEFORE, next - performance.now()))
  })
}
