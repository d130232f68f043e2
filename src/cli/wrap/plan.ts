/** What `wrap` and `unwrap` make of the text of a client's file. No side effects. */
import { isObject } from '../../config/value.js'
import { readJson } from '../../formats/document.js'
import { edited, editsFor, type JsonText, jsonText, replacement, textUnder } from '../../formats/edit.js'
import { type Entry, Unfit, unwrapping, type Wrapped, wrappedIn, wrapping } from './entry.js'
import type { Launcher } from './launcher.js'

/** An entry of a file. */
export interface Named {
  name: string
  /** The keys that lead to it. */
  keys: readonly string[]
  entry: Entry
}

/** A file after a change, and what became of each entry that was to be changed. */
export interface Plan {
  text: string
  changed: readonly { name: string; before: Entry; after: Entry }[]
  /** Entries that stay as they are. */
  left: readonly { name: string; why: string }[]
}

/** The entries under these keys of a file. */
export function entriesIn(text: string, places: readonly (readonly string[])[]): Named[] {
  const { value } = readJson(text)
  return places.flatMap((place) =>
    Object.entries(objectUnder(value, place)).map(([name, entry]) => {
      const keys = [...place, name]
      return { name, keys, entry: isObject(entry) ? entry : {} }
    }),
  )
}

/** Puts the bridge before the servers of entries. */
export function wrapped(text: string, entries: readonly Named[], launcher: Launcher): Plan {
  return planned(text, entries, (json, { keys, entry }) =>
    edited(json, editsFor(json, keys, wrapping(entry, launcher))),
  )
}

/**
 * Takes the bridge out of entries. An entry that is still as `wrapped` has left it gets the text that it has in the
 * backup. Of any other only what starts the bridge is changed.
 */
export function unwrapped(text: string, entries: readonly Named[], backup: string | undefined): Plan {
  const old = backup === undefined ? undefined : jsonText(backup)
  return planned(text, entries, (json, { keys, entry }) => {
    const found = wrappedIn(entry)
    if (!found) throw new Unfit('it is not as mcp-bridge wrap makes it')
    const original = old && textUnder(old, keys)
    if (old && original !== undefined && isAsLeft(json, old, keys, found))
      return edited(json, [replacement(json, keys, original)])
    const before = original === undefined ? {} : objectUnder(readJson(original).value, [])
    // One after the other, because two may touch the same comma.
    return unwrapping(entry, found, before).reduce((current, change) => {
      const now = jsonText(current)
      return edited(now, editsFor(now, keys, [change]))
    }, json.text)
  })
}

function planned(text: string, entries: readonly Named[], change: (json: JsonText, one: Named) => string): Plan {
  const changed: { name: string; before: Entry; after: Entry }[] = []
  const left: { name: string; why: string }[] = []
  let current = text
  for (const one of entries) {
    const { name, keys, entry } = one
    try {
      current = change(jsonText(current), one)
      changed.push({ name, before: entry, after: objectUnder(readJson(current).value, keys) })
    } catch (error) {
      if (!(error instanceof Unfit)) throw error
      left.push({ name, why: error.message })
    }
  }
  return { text: current, changed, left }
}

/** Whether an entry has the text that `wrapped` makes of the one in the backup. */
function isAsLeft(json: JsonText, old: JsonText, keys: readonly string[], { launcher }: Wrapped): boolean {
  const entry = objectUnder(readJson(old.text).value, keys)
  if (wrappedIn(entry)) return false
  try {
    const again = jsonText(edited(old, editsFor(old, keys, wrapping(entry, launcher))))
    return textUnder(json, keys) === textUnder(again, keys)
  } catch (error) {
    if (error instanceof Unfit) return false
    throw error
  }
}

function objectUnder(value: unknown, keys: readonly string[]): Entry {
  const found = keys.reduce<unknown>(
    (one, key) => (isObject(one) && Object.hasOwn(one, key) ? one[key] : undefined),
    value,
  )
  return isObject(found) ? found : {}
}
