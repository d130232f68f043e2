/**
 * From what a person asks for to servers with a verdict: locate, fetch, verify, shake hands, compare, judge. How each of
 * these is done is given; here is the order, and what follows from what.
 */

import { Failure } from '../net/failure.js'
import type { ToolList } from '../ports/trust-status.js'
import { printable } from '../printable.js'
import { LEGACY, MODERN } from '../protocol/eras.js'
import { Fault } from '../protocol/fault.js'
import { type Candidate, type Findings, merge, type PlaceFailure } from './candidate.js'
import type { FetchDocument } from './documents.js'
import { canonical } from './endpoint.js'
import { failure, type Reason } from './failure.js'
import type { ManifestServer } from './manifest.js'
import { MANIFEST_PATH } from './sources/well-known.js'
import { difference, type Facts, type Handshake, namesEndpoint, type Verdict } from './trust/judge.js'
import type { Verification } from './trust/jws.js'

/** A step on the way to a verdict. What is asked for is located once; the rest is done for each candidate. */
export type Step = 'locate' | 'manifest' | 'signature' | 'handshake' | 'trust'

/** A step has been taken. */
export interface Progress {
  /** What was asked for, or the name of a candidate. */
  about: string
  step: Step
  ms: number
  ok: boolean
  message: string
}

/** What came of speaking to a server. */
export interface Meeting {
  era: 'modern' | 'legacy'
  transport: 'stdio' | 'http' | 'sse'
  /** How it is known what it speaks. */
  why: string
  handshake: Handshake
  tools: ToolList
  /** The tools for people: texts as the server gave them. */
  listing: readonly { name: string; title?: string; description?: string }[]
}

/** A manifest that says something of a candidate. */
export interface Vouched {
  url: string
  verification: Verification
  server: ManifestServer | undefined
}

/** How it is done. */
export interface Parts {
  locate(target: string): Promise<Findings>
  fetch: FetchDocument
  /** Has a document fetched again the next time. */
  forget(url: string): void
  verify(fetched: { url: string; bytes: Uint8Array; jws: Uint8Array | undefined }): Promise<Verification>
  pinsOf(origin: string): readonly string[] | undefined
  /** Speaks to a server, under these pins if there are any. */
  meet(candidate: Candidate, pins: readonly string[] | undefined): Promise<Meeting>
  judge(facts: Facts): Verdict
  /** Milliseconds, of a clock that is never set. */
  now?: (() => number) | undefined
}

/** A candidate, what is known of it, and what follows from that. */
export interface Examined {
  candidate: Candidate
  facts: Facts
  verdict: Verdict
  manifest?: Vouched | undefined
  meeting?: Meeting | undefined
  /** Why it could not be met. */
  failure?: Failure | undefined
  /** Whether there is a manifest could not be found out. */
  unread: boolean
  steps: readonly Progress[]
}

export interface Discovered {
  servers: readonly Examined[]
  /** What could not be read. */
  failures: readonly PlaceFailure[]
  /** Candidates that were too many. */
  leftOut: number
}

type Told = (progress: Progress) => void

const KNOWN: readonly string[] = [...MODERN, ...LEGACY]
const NONE = 'There is none'

/** Finds what the targets name, and examines each. `own` is what the configuration names by itself. */
export async function discover(
  targets: readonly string[],
  parts: Parts,
  told: Told = () => {},
  own?: Findings,
): Promise<Discovered> {
  const { candidates, failures, leftOut } = await locate(targets, parts, told, own)
  const servers = await Promise.all(candidates.map((candidate) => examine(candidate, parts, told)))
  return { servers, failures, leftOut }
}

/** Finds what the targets name, each server once. Never rejects: what cannot be read is a failure of its own. */
export async function locate(targets: readonly string[], parts: Parts, told: Told = () => {}, own?: Findings) {
  const { now = () => performance.now() } = parts
  const located = await Promise.all(
    targets.map(async (target): Promise<Pick<Findings, 'findings' | 'failures'>> => {
      const began = now()
      const tell = (ok: boolean, message: string) =>
        told({ about: target, step: 'locate', ms: now() - began, ok, message })
      try {
        const found = await parts.locate(target)
        const { length } = found.findings
        const [first] = found.failures
        tell(length > 0, length > 0 ? `${length} named` : (first?.error.message ?? 'It names no servers'))
        return found
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        tell(false, error.message)
        return { findings: [], failures: [{ place: target, error }] }
      }
    }),
  )
  const all = own ? [own, ...located] : located
  return { ...merge(all.map(({ findings }) => findings)), failures: all.flatMap((one) => one.failures) }
}

/** Whether a person at this machine has put it there: into a configuration, or as a command on a command line. */
export function isConfigured({ source, endpoint, runnable }: Candidate): boolean {
  return runnable && (source === 'config' || (source === 'address' && endpoint.kind === 'stdio'))
}

/** Looks at one candidate from all sides. */
export async function examine(candidate: Candidate, parts: Parts, told: Told = () => {}): Promise<Examined> {
  const { name, endpoint, runnable } = candidate
  const { now = () => performance.now() } = parts
  const steps: Progress[] = []
  const step = async <T>(what: Step, work: () => T | Promise<T>, say: (value: T) => [ok: boolean, message: string]) => {
    const began = now()
    const tell = (ok: boolean, message: string) => {
      const progress = { about: name, step: what, ms: now() - began, ok, message }
      steps.push(progress)
      told(progress)
    }
    try {
      const value = await work()
      tell(...say(value))
      return { value }
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      tell(false, error.message)
      return { failed: error }
    }
  }

  const configured = isConfigured(candidate)
  const origin = originOf(candidate)
  const pins = origin === undefined ? undefined : parts.pinsOf(origin)
  // In commands a server is called by its address, which means the same wherever they are run.
  const called = endpoint.kind === 'http' ? endpoint.url : name
  const facts: Facts = { name: called, kind: endpoint.kind, endpoint: canonical(endpoint), origin, configured }
  const judged = async (more: Partial<Facts>, rest: Pick<Examined, 'manifest' | 'meeting' | 'failure'> = {}) => {
    const known = { ...facts, ...more }
    const { value } = await step(
      'trust',
      () => parts.judge(known),
      ({ state, reason }) => [state === 'trusted', `${state}: ${reason}`],
    )
    const unread = steps.some(({ step, ok }) => step === 'manifest' && !ok)
    return { candidate, facts: known, verdict: value as Verdict, unread, steps, ...rest }
  }
  // What the network has named as a program is shown to people, and that is all.
  if (!runnable) return judged({})

  const manifest = configured ? undefined : await vouchedFor(candidate, parts, step)
  const known: Partial<Facts> = { manifest }
  const met = await step(
    'handshake',
    () => {
      checkRevisions(manifest?.server)
      return parts.meet(candidate, pins)
    },
    ({ era, handshake }) => [
      true,
      `${era} ${handshake.revision}, ${printable(handshake.name)} ${printable(handshake.version)}`,
    ],
  )
  if (met.failed) {
    const mismatched = pins && met.failed.phase === 'tls' && met.failed.reason === 'pin'
    const pin = mismatched ? { pins, matched: false } : undefined
    return judged({ ...known, pin }, { manifest, failure: met.failed })
  }
  const { handshake, tools } = met.value
  Object.assign(known, { handshake, tools, pin: pins && { pins, matched: true } })
  // What does not describe the server is not kept until it would be too old.
  if (manifest?.server && difference({ ...facts, ...known }, manifest.server) !== undefined)
    forgetManifest(manifest.url, parts)
  return judged(known, { manifest, meeting: met.value })
}

export function forgetManifest(url: string, { forget }: Pick<Parts, 'forget'>): void {
  forget(url)
  forget(signatureOf(url))
}

/** What an error of the bridge says of a server that could not be met. */
export function handshakeFailure(error: unknown, isProgram: boolean): Failure {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (cause instanceof Failure) return cause
  const { fault, message, data } = Fault.from(error)
  // A program is not started again and again.
  const reason = isProgram ? 'program' : (REASONS[fault] ?? 'protocol')
  const ours = data['supported'] === undefined ? '' : `; it speaks ${KNOWN.join(', ')}`
  return failure('handshake', reason, printable(message + ours, 1_000), { cause: error })
}

const REASONS: Readonly<Partial<Record<Fault['fault'], Reason<'handshake'>>>> = {
  upstreamUnavailable: 'unreachable',
  upstreamBusy: 'unreachable',
  upstreamGatewayTimeout: 'timeout',
  upstreamTimeout: 'timeout',
  upstreamClosed: 'closed',
  upstreamAuthRequired: 'refused',
  upstreamRefused: 'refused',
  upstreamIncompatible: 'no-common-revision',
}

type TakeStep = <T>(
  what: Step,
  work: () => T | Promise<T>,
  say: (value: T) => [ok: boolean, message: string],
) => Promise<{ value: T; failed?: never } | { value?: never; failed: Failure }>

/** What is said of a candidate in a manifest: the one that named it, or the one of its own host. */
async function vouchedFor(candidate: Candidate, parts: Parts, step: TakeStep): Promise<Vouched | undefined> {
  const named = [candidate, ...candidate.alsoFrom].flatMap(({ manifest }) => manifest?.url ?? [])
  const own = candidate.endpoint.kind === 'http' ? [new URL(MANIFEST_PATH, candidate.endpoint.url).href] : []
  const documents = await step(
    'manifest',
    async () => {
      const urls = [...new Set([...named, ...own])]
      const fetched = await Promise.allSettled(urls.map((url) => parts.fetch(url)))
      const found = fetched.flatMap((one, at) =>
        one.status === 'fulfilled' && one.value ? [{ url: urls[at] as string, bytes: one.value.bytes }] : [],
      )
      const failed = fetched.find((one) => one.status === 'rejected')
      if (found.length === 0 && failed) throw failed.reason
      return found
    },
    (found) => (found.length === 0 ? [true, NONE] : [true, found.map(({ url }) => url).join(', ')]),
  )
  if (!documents.value || documents.value.length === 0) return undefined
  const verified = await step(
    'signature',
    () => Promise.all(documents.value.map((one) => verify(one, candidate, parts))),
    (all) => {
      const best = chosen(all, named)
      if (!best) return [true, 'No manifest says anything of it']
      const { verification: it } = best
      return it.trusted ? [true, `by ${it.publisher}, key ${it.keyId}`] : [false, it.message]
    },
  )
  return verified.value && chosen(verified.value, named)
}

async function verify(
  { url, bytes }: { url: string; bytes: Uint8Array },
  { endpoint }: Candidate,
  parts: Parts,
): Promise<Vouched> {
  const jws = await parts.fetch(signatureOf(url), 'application/jose')
  const verification = await parts.verify({ url, bytes, jws: jws?.bytes })
  // One of the two may be older than the other: both are fetched again before anybody is told a second time.
  if (!verification.trusted && verification.reason === 'signature') forgetManifest(url, parts)
  const server = verification.manifest?.servers.find((one) => namesEndpoint(one, canonical(endpoint)))
  return { url, verification, server }
}

/** Of several, the one that can be trusted; then one that says something of it; then what named it, whatever it is now. */
function chosen(all: readonly Vouched[], named: readonly string[]): Vouched | undefined {
  return (
    all.find(({ verification, server }) => verification.trusted && server) ??
    all.find(({ server }) => server) ??
    all.find(({ url }) => named.includes(url))
  )
}

/** Throws a Failure with both lists, where a manifest says that the server speaks nothing that we do. */
function checkRevisions(server: ManifestServer | undefined): void {
  if (!server || server.protocolRevisions.some((one) => KNOWN.includes(one))) return
  throw failure(
    'handshake',
    'no-common-revision',
    `The server speaks ${server.protocolRevisions.join(', ')}, and the bridge ${KNOWN.join(', ')}`,
  )
}

function originOf({ endpoint }: Candidate): string | undefined {
  const { protocol, origin } = new URL(endpoint.kind === 'http' ? endpoint.url : 'stdio:')
  return protocol === 'https:' ? origin : undefined
}

function signatureOf(url: string): string {
  return `${url}.jws`
}
