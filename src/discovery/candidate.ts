/** Servers that have been found: each once, whoever has named it. */

import { freeName } from '../formats/names.js'
import { Failure } from '../net/failure.js'
import { DECEPTIVE } from '../printable.js'
import { canonical, type Endpoint } from './endpoint.js'

/** Where a server may be named. The first one that names it decides what is said of it. */
export const SOURCES = ['config', 'registry', 'well-known', 'address'] as const
export type Source = (typeof SOURCES)[number]
export type Transport = 'stdio' | 'http' | 'sse'

/** A server as one place names it. */
export interface Finding {
  name: string
  endpoint: Endpoint
  /** The transport that is asked for; undefined where that is left to be found out. */
  transport?: Transport | undefined
  source: Source
  /** The file or address where it stands; of what was given by hand, that itself. */
  from: string
  /** What would stand in `mcpServers`. */
  entry: Record<string, unknown>
  /** May be connected to. A command that the network has named is shown, and never run. */
  runnable: boolean
  /** What a person has to fill in before it can be used: variables, headers, inputs. */
  wants?: readonly string[] | undefined
  /** Where it has a manifest. */
  manifest?: { url: string } | undefined
  version?: string | undefined
  description?: string | undefined
}

export interface Candidate extends Finding {
  /** What others say of the same endpoint, in the order of their priority. */
  alsoFrom: readonly Finding[]
}

export interface PlaceFailure {
  /** The file or the address. */
  place: string
  error: Failure
}

/** How many candidates there may be. */
export const CANDIDATES = 64

/** What some places say. What cannot be read there is a failure of its own, and spoils nothing else. */
export class Findings {
  readonly findings: Finding[] = []
  readonly failures: PlaceFailure[] = []

  /** Reads something that may fail: undefined where it has. */
  async attempt<T>(place: string, read: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (this.failures.length < CANDIDATES) this.failures.push({ place, error })
      return undefined
    }
  }

  /** Takes over what others have found, as far as there is room. */
  add({ findings, failures }: Findings): void {
    this.findings.push(...findings.slice(0, CANDIDATES - this.findings.length))
    this.failures.push(...failures.slice(0, CANDIDATES - this.failures.length))
  }
}

/**
 * Makes one list of what several places have found: by priority, each endpoint once, each name once. Of a command, what may
 * be run comes first, because what the network says of it must not take the place of what a person has written.
 */
export function merge(lists: readonly (readonly Finding[])[]): { candidates: Candidate[]; leftOut: number } {
  const rank = ({ source, runnable }: Finding) => SOURCES.indexOf(source) + (runnable ? 0 : SOURCES.length)
  const found = new Map<string, Finding[]>()
  for (const one of lists.flat().toSorted((a, b) => rank(a) - rank(b))) {
    const key = canonical(one.endpoint)
    found.set(key, [...(found.get(key) ?? []), one])
  }
  const merged = [...found.values()].map(([first, ...others]) => ({ ...(first as Finding), alsoFrom: others }))
  const taken = new Set<string>()
  const candidates = merged
    .toSorted((a, b) => SOURCES.indexOf(a.source) - SOURCES.indexOf(b.source))
    .slice(0, CANDIDATES)
    .map((one) => ({ ...one, name: freeName(one.name, taken) }))
  return { candidates, leftOut: merged.length - candidates.length }
}

/** The transport that a document means by a word; undefined where it means none that there is. */
export function transportNamed(word: unknown): Transport | undefined {
  if (typeof word !== 'string') return undefined
  if (/^(?:https?|streamable[-_ ]?https?|stream(?:able)?)$/i.test(word)) return 'http'
  return /^(?:stdio|sse)$/i.test(word) ? (word.toLowerCase() as Transport) : undefined
}

/** Whether a text of the network may stand in an entry: nothing that is replaced there, and nothing that cannot be seen. */
export function isPlain(text: string): boolean {
  return text.length <= 2_048 && !text.includes('${') && !DECEPTIVE.test(text)
}
