/**
 * Decides how far a server is trusted. Trust comes from the operator's own configuration, from a signature of a publisher
 * whose key is in the trust store, from a pinned key of the origin, or from a person who has approved the server as it was.
 * What has none of these is in quarantine; what shows a key that it must not have is refused.
 */

import type { Standing, ToolList } from '../../ports/trust-status.js'
import { printable } from '../../printable.js'
import { canonical, httpEndpoint, stdioEndpoint } from '../endpoint.js'
import type { ManifestServer } from '../manifest.js'
import type { Untrusted, Verification } from './jws.js'
import type { Approval, KeptList, Seen, Trust } from './store.js'

/** What is known of a candidate. */
export interface Facts {
  /** What it is called here, in commands as well. */
  name: string
  kind: 'http' | 'stdio'
  /** The one spelling of its endpoint. */
  endpoint: string
  /** Scheme, host and port of an address that is reached over TLS. */
  origin?: string | undefined
  /** A person has put it into the configuration of this bridge, or has given this very command on its command line. */
  configured: boolean
  manifest?: { verification: Verification; server: ManifestServer | undefined } | undefined
  /** The pins under which its connections are made, and whether the key that it showed was one of them. */
  pin?: { pins: readonly string[]; matched: boolean } | undefined
  handshake?: Handshake | undefined
  /** Its tools, as they are listed now. */
  tools?: ToolList | undefined
}

/** What a server has said of itself when it was reached. */
export interface Handshake {
  name: string
  version: string
  /** What was agreed on. */
  revision: string
  /** Names of what it offers. */
  capabilities: readonly string[]
}

export interface Verdict extends Standing {
  by: 'configuration' | 'signature' | 'pin' | 'approval' | undefined
  /** The key or the pins that an approval of it is bound to. */
  bound: string
  /** What does not hold any longer because the tools are others: it takes a person to make it hold again. */
  broken?: Pick<Approval, 'endpoint' | 'since'> | undefined
  /** It is trusted for its key, and nobody has noted yet which tools it has. */
  unseen?: boolean | undefined
}

/** A manifest that could not be verified for these says nothing against the server: it is as if there were none. */
const HARMLESS: ReadonlySet<Untrusted> = new Set(['unsigned', 'unknown-publisher'])
/** What an approval is bound to where there is neither key nor pin. */
const UNBOUND = 'none'
/** Milliseconds by which clocks may differ. */
const LEEWAY = 60_000
const MOST_NAMES = 5
/** What hints are where a tool says nothing of them (MCP, ToolAnnotations). */
const DEFAULT_HINTS: Readonly<Record<string, boolean>> = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
}

export function judge(facts: Facts, trust: Trust, now: number): Verdict {
  const { name, endpoint, origin, manifest, pin, tools } = facts
  const approving = `mcp-bridge trust approve ${quoted(name)}`
  const pins = origin === undefined ? undefined : trust.pinsOf(origin)
  const signed = manifest?.verification.trusted ? manifest.verification : undefined
  const bound = signed
    ? `key ${signed.publisher} ${signed.keyId}`
    : pins === undefined
      ? UNBOUND
      : `pins ${[...pins].sort().join(' ')}`
  const verdict = (state: Verdict['state'], reason: string, more: Partial<Verdict> = {}): Verdict => ({
    ...{ state, reason, bound, by: undefined, dependsOnTools: false, missing: '', remedy: '' },
    ...more,
  })
  const quarantined = (reason: string, missing: string, more?: Partial<Verdict>) =>
    verdict('quarantined', reason, { missing, ...more })

  if (pin?.matched === false)
    return verdict('refused', `${origin} shows another key than the pinned one, so that it may be somebody else`, {
      missing: 'a connection to the pinned key',
      remedy: `mcp-bridge trust pin ${quoted(name)}`,
    })
  if (facts.configured) return verdict('trusted', 'it is in the configuration', { by: 'configuration' })
  if (facts.kind === 'stdio')
    return verdict('refused', 'it is a program that nobody at this machine has chosen to run', {
      missing: 'an entry in the configuration of the bridge, made by somebody who has looked at the command',
    })
  if (trust.refusal !== undefined)
    return quarantined(trust.refusal, 'a trust store that can be used: repair the file, or move it away')
  if (pins && !pin)
    return quarantined('its origin is pinned, and it has not been connected to yet', 'a connection to it')
  if (pins && pin && !same(pins, pin.pins))
    return quarantined('its origin has been pinned anew since it was connected to', 'a connection under these pins')

  const doubt = doubtful(facts, trust, now)
  if (doubt) return quarantined(doubt.reason, 'a manifest that its publisher stands by', { remedy: doubt.remedy })
  const differs = manifest?.server && difference(facts, manifest.server)
  if (differs !== undefined)
    return quarantined(`it is not what its manifest says: ${differs}`, 'a manifest that agrees with the server')

  const by = signed ? 'signature' : pins ? 'pin' : undefined
  const approval = trust.approvalOf(endpoint)
  const lapse = approval && lapseOf(approval, bound, now)
  const approved = lapse === undefined ? approval : undefined
  if (!tools && (by || approved))
    return quarantined('its tools have not been listed yet', 'a list of its tools', { dependsOnTools: true })

  const seen = trust.seenOf(endpoint)
  const noted = seen?.bound === bound ? seen : undefined
  const changed = by && tools && noted && changeOf(noted, tools, 'first seen')
  if (by && changed === undefined) {
    const reason = signed ? `its manifest is signed by ${signed.publisher}` : 'it has the key that is pinned'
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
    return quarantined(reason, 'an approval of its tools as they are now', { remedy: approving, broken })
  }
  const unproven = manifest?.verification.trusted === false ? manifest.verification.message : undefined
  return quarantined(
    lapse ?? (unproven === undefined ? 'nobody vouches for it' : `nobody vouches for it: of its manifest, ${unproven}`),
    'a signature by a publisher whose key is in the trust store, a pin of its origin, or an approval',
    { remedy: approving },
  )
}

/** Why a manifest speaks against its server, or does not speak for it though it is signed. */
function doubtful(
  { endpoint, manifest }: Facts,
  trust: Trust,
  now: number,
): { reason: string; remedy: string } | undefined {
  if (!manifest) return undefined
  const { verification, server } = manifest
  const because = (what: string, remedy = '') => ({ reason: `its manifest is not to be trusted: ${what}`, remedy })
  if (!verification.trusted) {
    const { reason, message } = verification
    if (HARMLESS.has(reason)) return undefined
    const publisher = quoted(verification.manifest?.publisher ?? '<publisher>')
    return because(message, reason === 'unknown-key' ? `mcp-bridge trust key add ${publisher} '<file>'` : '')
  }
  const { publisher, keyId, expires } = verification
  if (!trust.keysOf(publisher).some(({ id }) => id === keyId))
    return because(`the key that it is signed with is not one of ${publisher} any more`)
  if (expires < now - LEEWAY) return because(`it held until ${new Date(expires).toISOString()}`)
  // The signature is over this very entry, and over nothing that was found in another way.
  if (!server || !verification.manifest.servers.includes(server) || !namesEndpoint(server, endpoint))
    return because('it says nothing of this address')
  return undefined
}

/** Whether a manifest means this endpoint by what it says of a server. */
export function namesEndpoint({ transports }: ManifestServer, endpoint: string): boolean {
  return transports.some((one) => {
    const { type } = one
    return canonical(type === 'stdio' ? stdioEndpoint(one.command, one.args) : httpEndpoint(one.url)) === endpoint
  })
}

/** Why an approval does not hold, whatever the tools are. */
function lapseOf({ since, until, bound }: Approval, now: string, at: number): string | undefined {
  const given = `the approval of ${dayOf(since)}`
  if (bound !== now) return `${given} was for a server with another key, or with none`
  if (at >= until) return `${given} was until ${dayOf(until)}`
  // Where the clock has been set back, nobody knows for how long.
  return at < since - LEEWAY ? `${given} is of the future` : undefined
}

/** What has changed since somebody looked; once something has, only looking again makes up for it. */
function changeOf({ list, since, withdrawn }: Seen, tools: ToolList, what: string): string | undefined {
  if (withdrawn !== undefined) return withdrawn
  if (list.digest === tools.digest) return undefined
  return `its tools have changed since they were ${what} on ${dayOf(since)}: ${changes(list, tools)}`
}

/** What is different between two lists, for people: names come from the server. */
export function changes(before: KeptList, { tools }: ToolList): string {
  const known = new Map(before.tools)
  const added = [...tools.keys()].filter((name) => !known.has(name))
  const changed = [...tools].flatMap(([name, { digest }]) =>
    known.has(name) && known.get(name) !== digest ? [name] : [],
  )
  const gone = [...known.keys()].filter((name) => !tools.has(name))
  const parts = Object.entries({ added, changed, gone }).filter(([, names]) => names.length > 0)
  return parts.map(([what, names]) => `${what} ${enumerated(names)}`).join('; ')
}

/** How a server differs from what its manifest says of it, if it does. */
export function difference({ handshake, tools }: Facts, server: ManifestServer): string | undefined {
  if (handshake) {
    const expected = server.serverName ?? server.name
    if (handshake.name !== expected) return differing('its name', handshake.name, expected)
    if (handshake.version !== server.version) return differing('its version', handshake.version, server.version)
    if (!server.protocolRevisions.includes(handshake.revision))
      return differing('its revision', handshake.revision, server.protocolRevisions.join(', '))
    const said = server.capabilities && Object.keys(server.capabilities).sort()
    const offered = [...handshake.capabilities].sort()
    if (said && said.join(' ') !== offered.join(' '))
      return differing('what it offers', offered.join(', '), said.join(', '))
  }
  if (!tools || server.tools === 'runtime') return undefined
  const listed = new Map(server.tools.map((tool) => [tool.name, tool]))
  const unlisted = [...tools.tools.keys()].filter((name) => !listed.has(name))
  if (unlisted.length > 0) return `it has tools that are not in it: ${enumerated(unlisted)}`
  for (const [name, { hints }] of tools.tools) {
    // What is left out is vouched for by nobody, and so is what it would mean.
    const promised = listed.get(name)?.annotations
    const other = promised && Object.keys(DEFAULT_HINTS).find((hint) => saying(promised, hint) !== saying(hints, hint))
    if (other !== undefined) return `"${printable(name)}" has another ${other} than it says`
  }
  return undefined
}

function saying(hints: Readonly<Record<string, unknown>>, hint: string): unknown {
  return hints[hint] ?? DEFAULT_HINTS[hint]
}

function differing(what: string, is: string, said: string): string {
  return `${what} is "${printable(is)}" and not "${printable(said, 200)}"`
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return [...one].sort().join(' ') === [...other].sort().join(' ')
}

function enumerated(names: readonly string[]): string {
  const some = names.slice(0, MOST_NAMES).map((name) => `"${printable(name)}"`)
  return some.join(', ') + (names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : '')
}

function dayOf(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10)
}

/** As a shell takes it. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
