/**
 * The candidates of discovery: the servers that it has found, and how to reach them. Each endpoint appears once, even if
 * several sources name it.
 */

import { Failure } from '../../base/net/failure.js'
import { DECEPTIVE } from '../../base/texts/printable.js'
import { canonical, type Endpoint } from '../../config/endpoint.js'
import { freeName } from '../../config/formats/served-names.js'

/** The kinds of sources, by priority: the first one that names a server describes it. */
const SOURCES = ['config', 'registry', 'well-known', 'address'] as const
export type Source = (typeof SOURCES)[number]
/** How a server is connected to. */
export type CandidateTransport = 'stdio' | 'http' | 'sse'

/** What a server card says about the server at an address. It is not signed, and the server may say otherwise. */
export interface CardClaim {
  /** The address of the card, or of the catalog that has it. */
  url: string
  /** Its name, as in com.example/weather. */
  name: string
  title?: string
  version?: string
  /** The revisions that the server supports. */
  revisions?: readonly string[]
}

/** A server as one source names it. */
export interface Finding {
  name: string
  endpoint: Endpoint
  /** The requested transport; undefined if it is to be detected. */
  transport?: CandidateTransport | undefined
  source: Source
  /** The file or address that names it; for a target given by hand, the target itself. */
  from: string
  /** Its entry for `mcpServers`. */
  entry: Record<string, unknown>
  /** The bridge may connect to it. A command from the network is only shown, never run. */
  runnable: boolean
  /** Values that a person must provide first: variables, headers, inputs. */
  wants?: readonly string[] | undefined
  /** The address of its manifest. */
  manifest?: { url: string } | undefined
  /** What its card says. */
  card?: CardClaim | undefined
  version?: string | undefined
  description?: string | undefined
}

/** A server, from all sources. */
export interface Candidate extends Finding {
  /** The findings of other sources for the same endpoint, by priority. */
  alsoFrom: readonly Finding[]
}

/** A source that could not be read. */
export interface PlaceFailure {
  /** The file or the address. */
  place: string
  error: Failure
}

/** Most candidates in one discovery. */
export const CANDIDATES = 64

/** Findings of some sources. A source that cannot be read is recorded as a failure and does not affect others. */
export class Findings {
  readonly findings: Finding[] = []
  readonly failures: PlaceFailure[] = []

  /** Reads a source. Undefined if it failed with a Failure, which is recorded. */
  async attempt<T>(place: string, read: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (this.failures.length < CANDIDATES) this.failures.push({ place, error })
      return undefined
    }
  }

  /** Adds other findings, up to CANDIDATES. */
  add({ findings, failures }: Findings): void {
    this.findings.push(...findings.slice(0, CANDIDATES - this.findings.length))
    this.failures.push(...failures.slice(0, CANDIDATES - this.failures.length))
  }
}

/**
 * Merges findings by priority, so that each endpoint and each name appears once. For a command, runnable findings come
 * first: a finding of the network must not replace what a person has written.
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

/** The transport that a word in a document means; undefined if unknown. */
export function transportNamed(word: unknown): CandidateTransport | undefined {
  if (typeof word !== 'string') return undefined
  if (/^(?:https?|streamable[-_ ]?https?|stream(?:able)?)$/i.test(word)) return 'http'
  return /^(?:stdio|sse)$/i.test(word) ? (word.toLowerCase() as CandidateTransport) : undefined
}

/** Whether a text from the network may be part of an entry: it has no `${…}` and no invisible characters. */
export function isPlain(text: string): boolean {
  return text.length <= 2_048 && !text.includes('${') && !DECEPTIVE.test(text)
}
