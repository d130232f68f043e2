/** The changes of `wrap` and `unwrap` to the text of a client's file. No side effects. */

import { type Editable, type FileChange, Uneditable } from '../../config/formats/edit.js'
import { isObject, valueAt } from '../../config/value.js'
import type { Dialect } from './dialects.js'
import { type ClientEntry, unwrapping, type Wrapped, wrappedIn, wrapping } from './entry.js'
import type { Launcher } from './launcher.js'
import { Unfit } from './unfit.js'

export interface Layout {
  /** The keys that may lead to its servers. */
  places: readonly (readonly string[])[]
  dialect: Dialect
  /** Reads its text. Throws a FormatError. */
  open(text: string): Editable
}

export interface Named {
  name: string
  /** The keys that lead to it. */
  keys: readonly string[]
  /** In the format of `mcpServers`. */
  entry: ClientEntry
  /** As in the file. */
  own: ClientEntry
}

/** A changed file, and the outcome for each entry. */
export interface WrapPlan {
  text: string
  changed: readonly { name: string; before: ClientEntry; after: ClientEntry }[]
  /** Entries that were not changed. */
  left: readonly { name: string; why: string }[]
}

/** The entries of a file. Throws a FormatError. */
export function entriesIn(text: string, { places, dialect, open }: Layout): Named[] {
  const { value } = open(text)
  return places.flatMap((place) =>
    Object.entries(objectUnder(value, place)).map(([name, given]) => {
      const own = isObject(given) ? given : {}
      return { name, keys: [...place, name], entry: dialect.read(own), own }
    }),
  )
}

/** Puts the bridge before the servers of entries. */
export function wrapped(text: string, layout: Layout, entries: readonly Named[], launcher: Launcher): WrapPlan {
  return planned(text, layout, entries, (file, one) => changed(file, layout, one, wrapping(one.entry, launcher)))
}

/**
 * Takes the bridge out of entries. An entry that has not changed since `wrapped` gets its text from the backup. In any
 * other entry, only the command of the bridge is changed.
 */
export function unwrapped(
  text: string,
  layout: Layout,
  entries: readonly Named[],
  backup: string | undefined,
): WrapPlan {
  const old = backup === undefined ? [] : entriesIn(backup, layout)
  const again = backup === undefined ? undefined : wrappedAgain(backup, layout, entries)
  if (backup !== undefined && again?.text === text) return { text: backup, changed: again.changed.map(back), left: [] }
  return planned(text, layout, entries, (file, one, current) => {
    const found = wrappedIn(one.entry)
    if (!found) throw new Unfit('it is not as mcp-bridge wrap makes it')
    const before = old.find(({ keys }) => keys.join('\n') === one.keys.join('\n'))
    if (before && backup !== undefined && isAsLeft(file, backup, before, layout, found))
      return file.restored(one.keys, layout.open(backup))
    // One at a time, because two may touch the same comma.
    const { within, changes } = layout.dialect.changes(unwrapping(one.entry, found, before?.entry), one.own)
    return changes.reduce((now, change) => layout.open(now).changed([...one.keys, ...within], [change]), current)
  })
}

/** The result of `wrapped` for the backup and the same entries, with their command of the bridge. */
function wrappedAgain(backup: string, layout: Layout, entries: readonly Named[]): WrapPlan | undefined {
  const [first] = entries
  const launcher = first && wrappedIn(first.entry)?.launcher
  if (!launcher) return undefined
  const names = entries.map(({ keys }) => keys.join('\n'))
  const same = entriesIn(backup, layout).filter(({ keys }) => names.includes(keys.join('\n')))
  return same.length === entries.length ? wrapped(backup, layout, same, launcher) : undefined
}

function back({ name, before, after }: WrapPlan['changed'][number]): WrapPlan['changed'][number] {
  return { name, before: after, after: before }
}

function changed(file: Editable, { dialect }: Layout, { keys, own }: Named, canonical: readonly FileChange[]): string {
  const { within, changes } = dialect.changes(canonical, own)
  return file.changed([...keys, ...within], changes)
}

function planned(
  text: string,
  { dialect, open }: Layout,
  entries: readonly Named[],
  change: (file: Editable, one: Named, text: string) => string,
): WrapPlan {
  const done: { name: string; before: ClientEntry; after: ClientEntry }[] = []
  const left: { name: string; why: string }[] = []
  let current = text
  for (const one of entries) {
    const { name, keys, entry } = one
    try {
      current = change(open(current), one, current)
      done.push({ name, before: entry, after: dialect.read(objectUnder(open(current).value, keys)) })
    } catch (error) {
      if (!(error instanceof Unfit || error instanceof Uneditable)) throw error
      left.push({ name, why: error.message })
    }
  }
  return { text: current, changed: done, left }
}

/** Whether an entry has the text that `wrapped` makes from the backup. */
function isAsLeft(file: Editable, backup: string, before: Named, layout: Layout, { launcher }: Wrapped): boolean {
  if (wrappedIn(before.entry)) return false
  try {
    const again = changed(layout.open(backup), layout, before, wrapping(before.entry, launcher))
    return file.textUnder(before.keys) === layout.open(again).textUnder(before.keys)
  } catch (error) {
    if (error instanceof Unfit || error instanceof Uneditable) return false
    throw error
  }
}

function objectUnder(value: unknown, keys: readonly string[]): ClientEntry {
  const found = valueAt(value, keys)
  return isObject(found) ? found : {}
}
