/**
 * Decides how far a server is trusted. A server is trusted if it is in the operator's configuration, if a publisher
 * whose key is in the trust store has signed its manifest, if its origin has a pinned key, or if a person has approved
 * its tools. Otherwise it is in quarantine. A server that shows a key other than the pinned one is refused.
 */

import { printable } from '../../../base/texts/printable.js'
import { ownCommand } from '../../../base/texts/shell.js'
import { canonical, httpEndpoint, stdioEndpoint } from '../../../config/endpoint.js'
import type { ToolList, TrustStatus } from '../../../mcp/ports/trust-status.js'
import type { CardClaim } from '../candidate.js'
import type { ManifestServer } from '../manifest.js'
import { LEEWAY, type Untrusted, type Verification } from './jws.js'
import type { Approval, KeptList, SeenTools, Trust } from './store.js'

/** What is known of a candidate. */
export interface Facts {
  /** Its name here and in commands. */
  name: string
  kind: 'http' | 'stdio'
  /** The canonical key of its endpoint. */
  endpoint: string
  /** Scheme, host and port, if it is reached over TLS. */
  origin?: string | undefined
  /** A person has put it into the bridge's configuration, or has given this command on its command line. */
  configured: boolean
  manifest?: { verification: Verification; server: ManifestServer | undefined } | undefined
  /** What its server card says. */
  card?: CardClaim | undefined
  /** The pins of its connection, and whether its key was one of them. */
  pin?: { pins: readonly string[]; matched: boolean } | undefined
  handshake?: StatedHandshake | undefined
  /** Its current tools. */
  tools?: ToolList | undefined
}

/** What a server states in its handshake. */
export interface StatedHandshake {
  name: string
  version: string
  /** The negotiated revision. */
  revision: string
  /** The names of its capabilities. */
  capabilities: readonly string[]
}

/** How far a server is trusted, and why. */
export interface TrustVerdict extends TrustStatus {
  by: 'configuration' | 'signature' | 'pin' | 'approval' | undefined
  /** The key or the pins that an approval is bound to. */
  bound: string
  /** The approval or first look that the tools no longer match. It stays invalid until a person approves again. */
  broken?: Pick<Approval, 'endpoint' | 'since'> | undefined
  /** It is trusted for its key, and its tools have not been recorded yet. */
  unseen?: boolean | undefined
}

/** With these results a manifest counts as absent, not as a sign against the server. */
const HARMLESS: ReadonlySet<Untrusted> = new Set(['unsigned', 'unknown-publisher'])
/** What an approval is bound to without a key or a pin. */
const UNBOUND = 'none'
const MAX_NAMED_CHANGES = 5
/** Defaults of hints (MCP, ToolAnnotations). */
const DEFAULT_HINTS: Readonly<Record<string, boolean>> = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
}

/** The verdict on a server, by the facts, the trust store and the time (milliseconds since 1970). */
export function judge(facts: Facts, trust: Trust, now: number): TrustVerdict {
  const { name, endpoint, origin, manifest, pin, tools } = facts
  // A name alone does not say where the server is found. A query may be secret.
  const server = facts.kind === 'http' && !endpoint.includes('?') ? endpoint : name
  const approving = ownCommand('trust', 'approve', server)
  const pins = origin === undefined ? undefined : trust.pinsOf(origin)
  const signed = manifest?.verification.trusted ? manifest.verification : undefined
  const bound = signed
    ? `key ${signed.publisher} ${signed.keyId}`
    : pins === undefined
      ? UNBOUND
      : `pins ${[...pins].sort().join(' ')}`
  const verdict = (state: TrustVerdict['state'], reason: string, more: Partial<TrustVerdict> = {}): TrustVerdict => ({
    ...{ state, reason, bound, by: undefined, dependsOnTools: false, missing: '', remedy: '' },
    ...more,
  })
  const quarantined = (reason: string, missing: string, more?: Partial<TrustVerdict>) =>
    verdict('quarantined', reason, { missing, ...more })

  if (pin?.matched === false)
    return verdict('refused', `${origin} shows another key than the pinned one: it may be another server`, {
      missing: 'a connection to the pinned key',
      remedy: ownCommand('trust', 'pin', origin ?? server),
    })
  if (facts.configured) return verdict('trusted', 'it is in the configuration', { by: 'configuration' })
  if (facts.kind === 'stdio')
    return verdict('refused', 'it is a program, and nobody at this machine has chosen to run it', {
      missing: 'an entry in the configuration of the bridge, after a review of the command',
    })
  if (trust.refusal !== undefined)
    return quarantined(trust.refusal, 'a valid trust store: repair the file, or move it away')
  if (pins && !pin)
    return quarantined('its origin is pinned, but it has not been connected to yet', 'a connection to it')
  if (pins && pin && !same(pins, pin.pins))
    return quarantined('the pins of its origin have changed since the last connection', 'a connection under these pins')

  const problem = manifestProblem(facts, trust, now)
  if (problem)
    return quarantined(problem.reason, 'a manifest with a valid signature of its publisher', { remedy: problem.remedy })
  const differs = manifest?.server && difference(facts, manifest.server)
  if (differs !== undefined)
    return quarantined(`it differs from its manifest: ${differs}`, 'a manifest that agrees with the server')
  // A card is not signed, so it counts for nothing. Against the server it counts like a manifest without a signature.
  const denied = signed ? undefined : cardDifference(facts)
  if (denied !== undefined)
    return quarantined(`it differs from its server card: ${denied}`, 'a server card that agrees with the server')

  const by = signed ? 'signature' : pins ? 'pin' : undefined
  const approval = trust.approvalOf(endpoint)
  const lapse = approval && lapseOfApproval(approval, bound, now)
  const approved = lapse === undefined ? approval : undefined
  if (!tools && (by || approved))
    return quarantined('its tools have not been listed yet', 'a list of its tools', { dependsOnTools: true })

  const seen = trust.seenOf(endpoint)
  const noted = seen?.bound === bound ? seen : undefined
  const decided = Math.max(approved?.since ?? 0, (by && noted?.since) ?? 0)
  if (tools?.at !== undefined && tools.at < decided)
    return quarantined('its tools have not been listed since they were approved', 'a list of its tools', {
      dependsOnTools: true,
    })
  const changed = by && tools && noted && changeOf(noted, tools, 'first seen')
  if (by && changed === undefined) {
    const reason = signed ? `its manifest is signed by ${signed.publisher}` : 'it has the pinned key'
    return verdict('trusted', reason, { by, dependsOnTools: true, unseen: noted === undefined })
  }
  const changedSince = approved && tools && changeOf(approved, tools, 'approved')
  if (approved && changedSince === undefined)
    return verdict('trusted', `it was approved on ${dayOf(approved.since)}`, {
      by: 'approval',
      dependsOnTools: true,
      only: approved.tools.includes('*') ? undefined : approved.tools,
      missing: 'an approval of this tool',
      remedy: approving,
    })
  const reason = changedSince ?? changed
  if (reason !== undefined) {
    const consent = changedSince === undefined ? noted : approved
    const broken = consent?.withdrawn === undefined ? consent : undefined
    return quarantined(reason, 'an approval of its current tools', { remedy: approving, broken })
  }
  const unproven = manifest?.verification.trusted === false ? manifest.verification.message : undefined
  return quarantined(
    lapse ??
      (unproven === undefined
        ? 'no signature, pin or approval vouches for it'
        : `no signature, pin or approval vouches for it (its manifest: ${unproven})`),
    'a signature by a publisher whose key is in the trust store, a pin of its origin, or an approval',
    { remedy: approving },
  )
}

/** Why a manifest counts against its server. */
function manifestProblem(
  { endpoint, manifest }: Facts,
  trust: Trust,
  now: number,
): { reason: string; remedy: string } | undefined {
  if (!manifest) return undefined
  const { verification, server } = manifest
  const because = (what: string, remedy = '') => ({ reason: `its manifest cannot be trusted: ${what}`, remedy })
  if (!verification.trusted) {
    const { reason, message } = verification
    if (HARMLESS.has(reason)) return undefined
    const publisher = verification.manifest?.publisher ?? '<publisher>'
    return because(message, reason === 'unknown-key' ? ownCommand('trust', 'key', 'add', publisher, '<file>') : '')
  }
  const { publisher, keyId, expires } = verification
  if (!trust.keysOf(publisher).some(({ id }) => id === keyId))
    return because(`its signing key is no longer a key of ${publisher}`)
  if (expires < now - LEEWAY) return because(`it expired on ${new Date(expires).toISOString()}`)
  // The signature must cover this very entry, and the entry this endpoint.
  if (!server || !verification.manifest.servers.includes(server) || !namesEndpoint(server, endpoint))
    return because('it does not cover this address')
  return undefined
}

/** Whether an entry of a manifest covers this endpoint. */
export function namesEndpoint({ transports }: ManifestServer, endpoint: string): boolean {
  return transports.some((one) => {
    const { type } = one
    return canonical(type === 'stdio' ? stdioEndpoint(one.command, one.args) : httpEndpoint(one.url)) === endpoint
  })
}

/** Why an approval is not valid, regardless of the tools. */
function lapseOfApproval({ since, until, bound }: Approval, now: string, at: number): string | undefined {
  const given = `the approval of ${dayOf(since)}`
  if (bound !== now) return `${given} was for a server with another key, or with none`
  if (at >= until) return `${given} expired on ${dayOf(until)}`
  // The clock was set back, so the end of the approval is unknown.
  return at < since - LEEWAY ? `${given} is dated in the future` : undefined
}

/** How the tools differ from those approved or first seen. Once withdrawn, only a new approval helps. */
function changeOf({ list, since, withdrawn }: SeenTools, tools: ToolList, what: string): string | undefined {
  if (withdrawn !== undefined) return withdrawn
  if (list.digest === tools.digest) return undefined
  return `its tools have changed since they were ${what} on ${dayOf(since)}: ${changes(list, tools)}`
}

/** The difference between two lists, for people. The names come from the server. */
function changes(before: KeptList, { tools }: ToolList): string {
  const known = new Map(before.tools)
  const added = [...tools.keys()].filter((name) => !known.has(name))
  const changed = [...tools].flatMap(([name, { digest }]) =>
    known.has(name) && known.get(name) !== digest ? [name] : [],
  )
  const gone = [...known.keys()].filter((name) => !tools.has(name))
  const parts = Object.entries({ added, changed, gone }).filter(([, names]) => names.length > 0)
  return parts.map(([what, names]) => `${what} ${namesIn(names)}`).join('; ')
}

/** How a server differs from its manifest; undefined if it does not. */
export function difference({ handshake, tools }: Facts, server: ManifestServer): string | undefined {
  if (handshake) {
    const expected = server.serverName ?? server.name
    if (handshake.name !== expected) return mismatch('its name', handshake.name, expected)
    if (handshake.version !== server.version) return mismatch('its version', handshake.version, server.version)
    if (!server.protocolRevisions.includes(handshake.revision))
      return mismatch('its revision', handshake.revision, server.protocolRevisions.join(', '))
    const said = server.capabilities && Object.keys(server.capabilities).sort()
    const offered = [...handshake.capabilities].sort()
    if (said && said.join(' ') !== offered.join(' '))
      return mismatch('its list of capabilities', offered.join(', '), said.join(', '))
  }
  if (!tools || server.tools === 'runtime') return undefined
  const listed = new Map(server.tools.map((tool) => [tool.name, tool]))
  const unlisted = [...tools.tools.keys()].filter((name) => !listed.has(name))
  if (unlisted.length > 0) return `it has tools that the manifest does not list: ${namesIn(unlisted)}`
  for (const [name, { hints }] of tools.tools) {
    // Hints that the manifest leaves out have their default values.
    const promised = listed.get(name)?.annotations
    const other = promised && Object.keys(DEFAULT_HINTS).find((hint) => hintOf(promised, hint) !== hintOf(hints, hint))
    if (other !== undefined) return `"${printable(name)}" has another ${other} than in the manifest`
  }
  return undefined
}

/** How a server differs from its card; undefined if it does not. A card may write the name of the server in other ways. */
export function cardDifference({ handshake, card }: Facts): string | undefined {
  if (!handshake || !card) return undefined
  const { name, title = name, version = handshake.version, revisions = [handshake.revision] } = card
  const called = [name, name.replace(/^.*\//s, ''), title].map(bare)
  if (!called.includes(bare(handshake.name))) return mismatch('its name', handshake.name, title)
  if (version !== handshake.version) return mismatch('its version', handshake.version, version)
  if (!revisions.includes(handshake.revision)) return mismatch('its revision', handshake.revision, revisions.join(', '))
  return undefined
}

/** A name without what people write in different ways: case, spaces and punctuation. */
function bare(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

function hintOf(hints: Readonly<Record<string, unknown>>, hint: string): unknown {
  return hints[hint] ?? DEFAULT_HINTS[hint]
}

function mismatch(what: string, is: string, said: string): string {
  return `${what} is "${printable(is)}" and not "${printable(said, 200)}"`
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return [...one].sort().join(' ') === [...other].sort().join(' ')
}

function namesIn(names: readonly string[]): string {
  const some = names.slice(0, MAX_NAMED_CHANGES).map((name) => `"${printable(name)}"`)
  return some.join(', ') + (names.length > MAX_NAMED_CHANGES ? ` and ${names.length - MAX_NAMED_CHANGES} more` : '')
}

function dayOf(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10)
}
