/**
 * Determines the era of a server with `server/discover`, never with a real call (MCP 2026-07-28, basic/versioning,
 * backward compatibility). Only positive evidence makes a server modern; without it, `initialize` is tried.
 */

import { Fault } from '../../base/fault/fault.js'
import { faults } from '../../base/fault/faults.js'
import type { Response } from '../../base/rpc/message.js'
import { EMPTY, objectIn, type Payload, textUnder, value } from '../../base/rpc/splice.js'
import type { Account } from '../../mcp/protocol/account.js'
import { isLater, isModern, legacyRevision, NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { speaksOnly } from '../../mcp/protocol/legacy-server.js'
import { discoverParams } from '../../mcp/protocol/modern-server.js'
import type { Exchange } from '../exchange.js'
import { errorIn } from '../failure.js'
import type { ServerOptions } from '../options.js'
import { Peer } from '../peer.js'
import { ChannelError } from '../transport/channel.js'

export interface Probing {
  /** Milliseconds for the answer; `timeouts.probe` by default. */
  timeout?: number
  /** Milliseconds that a program may take to start, as long as it writes to stdout or stderr. */
  start?: number | undefined
  peer?: Peer
  /** Credentials of the caller whose request needs the verdict. */
  headers?: Readonly<Record<string, string>>
  /** The account that the bridge uses, if it signs in to the server. */
  account?: Account | undefined
}

/** The result of a probe. `why` completes a sentence after "because". */
export type ProbeResult =
  | {
      era: 'modern'
      why: string
      peer: Peer
      /** It also lists legacy revisions. */
      alsoLegacy: boolean
      /**
       * It refused the revision of the probe, and lists no legacy revision as supported. A successful answer does not
       * show this: with @modelcontextprotocol/server 2.x it lists modern revisions only, even if the server accepts
       * `initialize`.
       */
      modernOnly: boolean
    }
  | {
      era: 'legacy'
      why: string
      /** Still open and usable for `initialize`; undefined if there is no such channel. */
      peer: Peer | undefined
      /** It answered in JSON-RPC, which confirms its transport. */
      spoke: boolean
      /** Its answer does not show its era: if it also refuses `initialize`, the probe may be repeated. */
      weak: boolean
      /** The probe, if a program has not answered it yet: it may be slow to start. */
      unanswered?: Exchange
    }

/** HTTP statuses about credentials, load or a gateway. They do not show the era, so the probe fails. */
const NO_EVIDENCE: ReadonlySet<number> = new Set([401, 403, 407, 408, 425, 429, 502, 503, 504])
/** HTTP statuses that a modern server may send by mistake, so the verdict is weak. */
const WEAK_EVIDENCE: ReadonlySet<number> = new Set([500])
/** HTTP statuses of an address that accepts no POST, such as that of an HTTP+SSE stream. Their body is ignored. */
const METHOD_REFUSED: ReadonlySet<number> = new Set([405, 501])

/**
 * Probes a server. Rejects with a ChannelError if it is unreachable or refuses the probe without evidence, and with a
 * Fault if it is unusable.
 */
export async function probe(server: ServerOptions, probing: Probing): Promise<ProbeResult> {
  const finding = await probeOnce(server, probing)
  if (finding !== 'headers refused') return finding
  const again = await probeOnce(server, probing)
  if (again !== 'headers refused') return again
  throw new Fault(
    'upstreamIncompatible',
    'The server supports 2026-07-28, but reports that request headers and body differ: check the proxies in between, which may strip or rewrite headers',
  )
}

async function probeOnce(
  { transport, clientInfo, timeouts, log, recorder }: ServerOptions,
  { timeout = timeouts.probe, start, peer: open, headers = {}, account }: Probing,
): Promise<ProbeResult | 'headers refused'> {
  const peer = open ?? new Peer(await transport.open({ credential: headers }), log, recorder)
  peer.headers = { ...headers, 'mcp-protocol-version': NEWEST_MODERN, 'mcp-method': 'server/discover' }
  const exchange = peer.beginExchange()
  exchange.account = account
  // It belongs to no client.
  peer.send(exchange, 'server/discover', discoverParams(clientInfo))
  peer.headers = {}
  const orThrow = async (finding: ProbeResult | 'headers refused' | Fault) => {
    if (!(finding instanceof Fault)) return finding
    if (!open) await peer.channel.close()
    throw finding
  }
  try {
    const answer = await peer.answerIn(exchange, timeout, start)
    // The program may still be starting. `initialize` can be sent all the same: the ids distinguish the two answers.
    if (!answer && transport.kind === 'stdio') return { ...legacy(SILENT, peer, { weak: true }), unanswered: exchange }
    peer.forgo(exchange)
    if (answer) return orThrow(readAnswer(answer, peer))
    await peer.channel.close()
    return legacy(SILENT, undefined, { weak: true })
  } catch (error) {
    peer.forgo(exchange)
    if (error instanceof ChannelError) return orThrow(await unanswered(error, peer))
    throw error
  }
}

/** Interprets an answer to the probe: a Fault if server and bridge have no revision in common. */
export function readAnswer(
  { outcome: { kind, payload } }: Response,
  peer: Peer,
): ProbeResult | 'headers refused' | Fault {
  const object = payload ?? EMPTY
  if (kind === 'error') return readError(object, peer)
  const versions = value(object, 'supportedVersions')
  if (!Array.isArray(versions))
    return legacy('its answer to server/discover is not a DiscoverResult', peer, { spoke: true })
  if (versions.some((version) => isModern(version))) {
    const alsoLegacy = versions.some(isLegacy)
    return { era: 'modern', why: 'it answered server/discover', peer, alsoLegacy, modernOnly: false }
  }
  if (versions.length > 0 && versions.every(isLater)) return speaksOnly(versions)
  return legacy(`its answer to server/discover lists only ${versions.join(', ') || 'no version'}`, peer, {
    spoke: true,
  })
}

function readError(error: Payload, peer: Peer): ProbeResult | 'headers refused' | Fault {
  const code = value(error, 'code')
  const supported = supportedIn(error)
  if (code === faults.unsupportedRevision.code) {
    if (supported.length > 0 && supported.every(isLater)) return speaksOnly(supported)
    if (!supported.some(isModern))
      return legacy(`it supports ${supported.join(', ') || 'no version'}`, peer, { spoke: true })
  } else if (code === faults.headerMismatch.code && peer.channel.transport === 'http') {
    return 'headers refused'
  } else if (code !== faults.missingCapability.code && code !== faults.headerMismatch.code) {
    return legacy(`it answered server/discover with the error ${textUnder(error, 'code')}`, peer, { spoke: true })
  }
  return {
    era: 'modern',
    why: `it answered server/discover with the modern error ${textUnder(error, 'code')}`,
    peer,
    alsoLegacy: supported.some(isLegacy),
    modernOnly: supported.length > 0 && !supported.some(isLegacy),
  }
}

function isLegacy(version: unknown): boolean {
  return legacyRevision(version) !== undefined
}

function supportedIn(error: Payload): readonly string[] {
  const data = objectIn(error, 'data')
  // Drafts of the specification named it `supportedVersions`.
  const listed = data && (value(data, 'supported') ?? value(data, 'supportedVersions'))
  return Array.isArray(listed) ? listed.filter((version): version is string => typeof version === 'string') : []
}

async function unanswered(error: ChannelError, peer: Peer): Promise<ProbeResult | 'headers refused' | Fault> {
  if (error.refusal) {
    const { status } = error.refusal
    if (status < 400 || NO_EVIDENCE.has(status)) throw error
    const answered = METHOD_REFUSED.has(status) ? undefined : errorIn(error.refusal)
    if (answered) return readAnswer(answered, peer)
    return legacy(`it answered server/discover with HTTP ${status}`, peer, { weak: WEAK_EVIDENCE.has(status) })
  }
  if (error.delivered === 'no') throw error
  if (peer.end === undefined && error.protocol && peer.channel.transport === 'stdio')
    return legacy('its answer to server/discover is not valid JSON-RPC', peer, { weak: true })
  const ended = peer.end !== undefined
  await peer.channel.close()
  if (ended) return legacy('it exited when it was sent server/discover', undefined)
  return legacy('it did not answer server/discover', undefined, { weak: true })
}

const SILENT = 'it did not answer server/discover in time'

function legacy(
  why: string,
  peer: Peer | undefined,
  { spoke = false, weak = false } = {},
): ProbeResult & { era: 'legacy' } {
  return { era: 'legacy', why, peer, spoke, weak }
}
