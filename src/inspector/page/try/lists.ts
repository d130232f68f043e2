/** What a server lists in the view Try: tools, prompts, resources and templates, as clients of both eras see them, and what it hides. */
import { listOf } from '../../try/client.js'
import type { JsonRecord, TryClient } from '../../try/types.js'
import { readFromBridge } from '../feed.js'

export const KINDS = ['tools', 'prompts', 'resources', 'templates'] as const
type Kind = (typeof KINDS)[number]

/** A listed tool, prompt, resource or template. */
export interface Item {
  kind: Kind
  name: string
  /** As the chosen client sees it; undefined if only clients of the other era do. */
  here: JsonRecord | undefined
  /** As a client of the other era sees it. */
  there: JsonRecord | undefined
}

/** The bridge's answer about items that clients do not see. */
export interface HiddenList {
  hidden: readonly { kind: string; name: string; server: string; why: string }[]
  problem?: string
}

/** Everything that a server lists, by kind and name. */
export async function listAll(from: TryClient): Promise<Map<string, JsonRecord>> {
  const found = new Map<string, JsonRecord>()
  for (const kind of KINDS) {
    const { items: listed } = await listOf(from, kind).catch(() => ({ items: [] }))
    for (const item of listed) found.set(`${kind} ${nameOf(kind, item)}`, item)
  }
  return found
}

/** The items of both lists. Without the list of the other era, they count as equal. */
export function joined(here: Map<string, JsonRecord>, there: Map<string, JsonRecord> | undefined): Item[] {
  const keys = new Set([...here.keys(), ...(there?.keys() ?? [])])
  return [...keys].map((key) => {
    const at = key.indexOf(' ')
    const seen = here.get(key)
    return { kind: key.slice(0, at) as Kind, name: key.slice(at + 1), here: seen, there: there ? there.get(key) : seen }
  })
}

export async function hiddenOf(name: string): Promise<HiddenList> {
  const found = await readFromBridge<HiddenList>(`catalogue?server=${encodeURIComponent(name)}`)
  return found ?? { hidden: [], problem: 'The bridge did not answer what it hides.' }
}

function nameOf(kind: Kind, item: JsonRecord): string {
  return String(kind === 'resources' ? item['uri'] : kind === 'templates' ? item['uriTemplate'] : item['name'])
}
