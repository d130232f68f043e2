/**
 * From targets to servers with a verdict: locate, fetch, verify, connect, compare, judge. `Parts` does each step; this
 * file determines the order and what each step uses.
 */

import { Fault } from '../../base/fault/fault.js'
import { Failure } from '../../base/net/failure.js'
import { printable } from '../../base/texts/printable.js'
import { canonical } from '../../config/endpoint.js'
import type { ToolList } from '../../mcp/ports/trust-status.js'
import type { SignInExplanation } from '../../mcp/protocol/account.js'
import { LEGACY, MODERN } from '../../mcp/protocol/eras.js'
import { type Attestation, attestationOf, forgetManifest, type ManifestParts } from './attestation.js'
import { type Candidate, type CardClaim, type Findings, merge, type PlaceFailure } from './candidate.js'
import { failure, type Reason } from './failure.js'
import type { ManifestServer } from './manifest.js'
import type { Progress, Step } from './progress.js'
import { cardOf } from './sources/server-card.js'
import { cardDifference, difference, type Facts, type StatedHandshake, type TrustVerdict } from './trust/judge.js'

/** What was learned by connecting to a server. */
export interface IntrospectedServer {
  era: 'modern' | 'legacy'
  transport: 'stdio' | 'http' | 'sse'
  /** How its era was detected. */
  why: string
  handshake: StatedHandshake
  tools: ToolList
  /** The tools as listed, for people: texts of the server. */
  listing: readonly { name: string; title?: string; description?: string }[]
}

/** How to sign in to a server that requires it. */
export interface SignInNeeded {
  explanation: SignInExplanation
  /** The argument of `mcp-bridge login` for the server. */
  loginName: string
}

/** The implementation of the steps. */
export interface DiscoveryParts extends ManifestParts {
  locate(target: string): Promise<Findings>
  pinsOf(origin: string): readonly string[] | undefined
  /** Connects to a server, under these pins if there are any. */
  meet(candidate: Candidate, pins: readonly string[] | undefined): Promise<IntrospectedServer>
  /** Reads how to sign in to a server, after `meet` has failed with the reason `sign-in`. Rejects with a Failure. */
  explainSignIn(failed: Failure): Promise<SignInNeeded>
  judge(facts: Facts): TrustVerdict
  /** Milliseconds of a monotonic clock. */
  now?: (() => number) | undefined
}

/** A candidate, the facts about it, and its verdict. */
export interface Examined {
  candidate: Candidate
  facts: Facts
  verdict: TrustVerdict
  manifest?: Attestation | undefined
  introspected?: IntrospectedServer | undefined
  /** Why the connection failed. */
  failure?: Failure | undefined
  /** Set if it failed because the server requires a sign-in. */
  signIn?: SignInNeeded | undefined
  /** Whether a manifest exists is unknown, because reading it failed. */
  unread: boolean
  steps: readonly Progress[]
}

/** The result of a discovery. */
export interface Discovered {
  servers: readonly Examined[]
  /** Sources that could not be read. */
  failures: readonly PlaceFailure[]
  /** Number of candidates above the limit. */
  leftOut: number
}

type Report = (progress: Progress) => void

const KNOWN: readonly string[] = [...MODERN, ...LEGACY]

/** Finds the servers that the targets name, and examines each. `own` are those of the bridge's configuration. */
export async function discover(
  targets: readonly string[],
  parts: DiscoveryParts,
  report: Report = () => {},
  own?: Findings,
): Promise<Discovered> {
  const { candidates, failures, leftOut } = await locate(targets, parts, report, own)
  const servers = await Promise.all(candidates.map((candidate) => examine(candidate, parts, report)))
  return { servers, failures, leftOut }
}

/**
 * Finds the servers that the targets name, each once. Never rejects: sources that cannot be read are recorded as
 * failures.
 */
export async function locate(
  targets: readonly string[],
  parts: DiscoveryParts,
  report: Report = () => {},
  own?: Findings,
) {
  const { now = () => performance.now() } = parts
  const located = await Promise.all(
    targets.map(async (target): Promise<Pick<Findings, 'findings' | 'failures'>> => {
      const began = now()
      const tell = (ok: boolean, message: string) =>
        report({ about: target, step: 'locate', ms: now() - began, ok, message })
      try {
        const found = await parts.locate(target)
        const { length } = found.findings
        const [first] = found.failures
        tell(length > 0, length > 0 ? `${length} named` : (first?.error.message ?? 'No servers named'))
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

/** Whether a person at this machine has chosen it: in a configuration, or as a command on a command line. */
export function isConfigured({ source, endpoint, runnable }: Candidate): boolean {
  return runnable && (source === 'config' || (source === 'address' && endpoint.kind === 'stdio'))
}

/** Takes one candidate through all steps. */
export async function examine(
  candidate: Candidate,
  parts: DiscoveryParts,
  report: Report = () => {},
): Promise<Examined> {
  const { name, endpoint, runnable } = candidate
  const { now = () => performance.now() } = parts
  const steps: Progress[] = []
  const step = async <T>(what: Step, work: () => T | Promise<T>, say: (value: T) => [ok: boolean, message: string]) => {
    const began = now()
    const tell = (ok: boolean, message: string) => {
      const progress = { about: name, step: what, ms: now() - began, ok, message }
      steps.push(progress)
      report(progress)
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
  // Commands name a server by its address: that is the same in every configuration.
  const called = endpoint.kind === 'http' ? endpoint.url : name
  const facts: Facts = { name: called, kind: endpoint.kind, endpoint: canonical(endpoint), origin, configured }
  const judged = async (
    more: Partial<Facts>,
    rest: Pick<Examined, 'manifest' | 'introspected' | 'failure' | 'signIn'> = {},
  ) => {
    const known = { ...facts, ...more }
    const { value } = await step(
      'trust',
      () => parts.judge(known),
      ({ state, reason }) => [state === 'trusted', `${state}: ${reason}`],
    )
    const unread = steps.some(({ step, ok }) => step === 'manifest' && !ok)
    const about = known.card ? { ...candidate, card: known.card } : candidate
    return { candidate: about, facts: known, verdict: value as TrustVerdict, unread, steps, ...rest }
  }
  // Programs that the network names are shown to people and never run.
  if (!runnable) return judged({})

  const [manifest, card] = configured
    ? []
    : await Promise.all([attestationOf(candidate, parts, step), cardOf(candidate, parts.fetch)])
  const described = card ? { ...candidate, card } : candidate
  if (card) await step('card', () => card, sayCard)
  const known: Partial<Facts> = { manifest, card }
  const met = await step(
    'handshake',
    () => {
      checkRevisions(manifest?.server)
      return parts.meet(described, pins)
    },
    ({ era, handshake }) => [
      true,
      `${era} ${handshake.revision}, ${printable(handshake.name)} ${printable(handshake.version)}`,
    ],
  )
  if (met.failed) {
    const mismatched = pins && met.failed.phase === 'tls' && met.failed.reason === 'pin'
    const pin = mismatched ? { pins, matched: false } : undefined
    const { failed } = met
    const explained =
      failed.reason === 'sign-in'
        ? await step(
            'sign-in',
            () => parts.explainSignIn(failed),
            ({ explanation }) => [true, `with ${printable(explanation.issuer, 200)}`],
          )
        : undefined
    return judged({ ...known, pin }, { manifest, failure: failed, signIn: explained?.value })
  }
  const { handshake, tools } = met.value
  Object.assign(known, { handshake, tools, pin: pins && { pins, matched: true } })
  // A manifest that does not describe the server may be outdated: fetch it again the next time.
  if (manifest?.server && difference({ ...facts, ...known }, manifest.server) !== undefined)
    forgetManifest(manifest.url, parts)
  if (card && cardDifference({ ...facts, ...known }) !== undefined) parts.forget(card.url)
  return judged(known, { manifest, introspected: met.value })
}

function sayCard({ name, version, revisions }: CardClaim): [ok: boolean, message: string] {
  const supported = revisions === undefined ? '' : `, supports ${printable(revisions.join(', '), 200)}`
  return [true, `${printable(name, 200)} ${printable(version ?? '')}${supported}`]
}

/** An error of connecting to a server, as a Failure of discovery. */
export function handshakeFailure(error: unknown, isProgram: boolean): Failure {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (cause instanceof Failure) return cause
  const { fault, message, data } = Fault.from(error)
  // `program` is not transient: a program is not restarted in a loop.
  const reason = isProgram ? 'program' : (REASONS[fault] ?? 'protocol')
  const ours = data['supported'] === undefined ? '' : `; the bridge supports ${KNOWN.join(', ')}`
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
  signInRequired: 'sign-in',
  signInPending: 'sign-in',
  signInRefused: 'sign-in',
}

/** Throws a Failure with both lists if, by the manifest, the server supports no revision that the bridge supports. */
function checkRevisions(server: ManifestServer | undefined): void {
  if (!server || server.protocolRevisions.some((one) => KNOWN.includes(one))) return
  throw failure(
    'handshake',
    'no-common-revision',
    `The server supports ${server.protocolRevisions.join(', ')}; the bridge supports ${KNOWN.join(', ')}`,
  )
}

function originOf({ endpoint }: Candidate): string | undefined {
  const { protocol, origin } = new URL(endpoint.kind === 'http' ? endpoint.url : 'stdio:')
  return protocol === 'https:' ? origin : undefined
}
