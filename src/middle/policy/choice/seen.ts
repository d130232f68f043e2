/** Reduces the pages of lists to what clients may see. Each page is edited once, however often it is sent. */
import { perObject } from '../../../base/rpc/memoize.js'
import {
  edit,
  mapElements,
  objectsIn,
  opens,
  type Payload,
  raw,
  receivedKeys,
  type Value,
} from '../../../base/rpc/splice.js'
import { folded, stringIn } from '../unambiguous.js'
import type { SeenPage } from './listed.js'
import { chosenNames, type Rules } from './names.js'
import { type Override, Rewriting, type ToolHeaders } from './tools.js'

/** The tools of a server as clients see them. */
export interface ToolRules extends Rules {
  /** By the tool's name at the server. `name` is its name for clients. */
  readonly override: Readonly<Record<string, Override & { readonly name?: string | undefined }>>
}

/** The rules, unless all that they say is which tools a person approves: then clients see the tools as they are. */
export function choosing<T extends ToolRules & { readonly approve?: unknown }>(rules: T | undefined): T | undefined {
  const chooses = rules && (rules.allow || rules.deny.length > 0 || Object.keys(rules.override).length > 0)
  return rules?.approve !== undefined && !chooses ? undefined : rules
}

/** A tool or prompt that clients may use. */
export interface SeenItem {
  /** Its name at the server. */
  name: string
  /** How calls of it are rewritten. */
  rewriting?: Rewriting
  headers?: ToolHeaders
}

/** An element of a list as clients see it. */
interface SeenElement<T> {
  shown: Payload
  name: string
  item: T
}

/** By the names of tools at the server: their names for clients, where these differ. */
export function renamed(overrides: ToolRules['override']): ReadonlyMap<string, string> {
  const named = Object.entries(overrides).flatMap(([name, { name: shown }]) =>
    shown === undefined ? [] : [[name, shown] as const],
  )
  return new Map(named)
}

export function toolsAsSeen({ override, ...rules }: ToolRules): (page: Payload) => SeenPage<SeenItem> {
  const shownName = chosenNames(rules, renamed(override))
  const rewritings = new Map(Object.entries(override).map(([name, rewritten]) => [name, new Rewriting(rewritten)]))
  return asSeen('tools', 'name', (tool, name) => {
    const rewriting = rewritings.get(name)
    const shown = shownName(name)
    if (shown === undefined) return undefined
    const definition = rewriting ? rewriting.definition(tool) : tool
    return {
      shown: shown === name ? definition : edit(definition, { name: JSON.stringify(shown) }),
      name: shown,
      item: rewriting ? { name, rewriting, headers: rewriting.headers(tool) } : { name },
    }
  })
}

/** For prompts and types of events, which are only shown or hidden. */
export function namedAsSeen(key: 'prompts' | 'events', rules: Rules): (page: Payload) => SeenPage<SeenItem> {
  const shownName = chosenNames(rules)
  return asSeen(key, 'name', (item, name) =>
    shownName(name) === undefined ? undefined : { shown: item, name, item: { name } },
  )
}

/**
 * Returns a function that edits a page: `see` decides what clients see of each element of the list under `key`, by its
 * name. Elements without an unambiguous name are hidden.
 */
export function asSeen<T>(
  key: string,
  named: string,
  see: (element: Payload, name: string) => SeenElement<T> | undefined,
): (page: Payload) => SeenPage<T> {
  return perObject((page) => {
    const items = new Map<string, T>()
    const result = withList(page, key, (element) => {
      const name = stringIn(element, named)
      const seen = name === undefined ? undefined : see(element, name)
      if (!seen) return []
      items.set(seen.name, seen.item)
      return seen.shown
    })
    return { result, items }
  })
}

/**
 * Returns a function that reads what `of` says of each tool on a page, which stays as it is. Of two tools with one name, only the
 * server knows which one is called: `both` says what counts.
 */
export function toolsIn<T>(
  of: (tool: Payload, name: string) => T,
  both: (one: T, other: T) => T,
): (page: Payload) => SeenPage<T> {
  return perObject((page) => {
    const items = new Map<string, T>()
    for (const tool of objectsIn(page, 'tools')) {
      const name = stringIn(tool, 'name')
      if (name === undefined) continue
      const [before, now] = [items.get(name), of(tool, name)]
      items.set(name, before === undefined ? now : both(before, now))
    }
    return { result: page, items }
  })
}

/** The page with each element of its list edited, and without other members that could be mistaken for the list. */
function withList(page: Payload, key: string, change: (element: Payload) => Payload | []): Payload {
  const edits: Record<string, Value | undefined> = {}
  let times = 0
  for (const name of receivedKeys(page)) {
    if (name === key) times++
    else if (folded(name) === folded(key)) edits[name] = undefined
  }
  const list = mapElements(page, key, change, () => [])
  const isList = [undefined, '['].includes(opens(page, key))
  if (list) edits[key] = list
  else if (!isList) edits[key] = '[]'
  else if (times > 1) edits[key] = raw(page, key)
  return edit(page, edits)
}
