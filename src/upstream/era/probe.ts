/**
 * Finds out which era a server speaks, by `server/discover` and never by a real call (MCP 2026-07-28, basic/versioning,
 * backward compatibility). Only positive evidence decides; what proves nothing leads to an attempt to `initialize`.
 */
import type { Account } from '../../protocol/account.js'
import { isModern, legacyRevision, NEWEST_MODERN } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { discoverParams } from '../../protocol/modern-server.js'
import type { Response } from '../../rpc/message.js'
import { EMPTY, type Json, objectIn, type Payload, payloadAt, textUnder, value } from '../../rpc/splice.js'
import type { Exchange } from '../exchange.js'
import { errorIn } from '../failure.js'
import { Peer, type PeerLog } from '../peer.js'
import { ChannelError, type Transport } from '../transport/channel.js'

export interface Probing {
  transport: Transport
  /** The bridge's own Implementation: nobody in particular is asking. */
  clientInfo: Json
  /** Milliseconds for the answer. */
  timeout: number
  /** A channel that is open already. */
  peer?: Peer
  /** Credentials of whoever wants to know. */
  headers?: Readonly<Record<string, string>>
  /** In whose name it is asked, where the bridge signs in to it. */
  account?: Account | undefined
  log: PeerLog
}

/** What was found, and how, in words that go on after "because". */
export type Finding =
  | {
      era: 'modern'
      why: string
      peer: Peer
      /** It names revisions of the other era as well. */
      alsoLegacy: boolean
      /**
       * It has refused another revision, and none that it names instead is legacy. The answer to server/discover does not
       * show that: with SDK v2 it names modern revisions only, whatever `initialize` would be answered with.
       */
      modernOnly: boolean
    }
  | {
      era: 'legacy'
      why: string
      /** Open still, and fit for `initialize`. */
      peer: Peer | undefined
      /** It said so in JSON-RPC, so that whatever it speaks, it speaks it in this way. */
      spoke: boolean
      /** It did not say so: should it not take `initialize` either, it is worth asking again. */
      weak: boolean
      /** The probe, where a program has not answered it and still may: it may be slow to start. */
      unanswered?: Exchange
    }

/** HTTP statuses that say nothing about what the server speaks: it, or something before it, has other worries. */
const NO_EVIDENCE: ReadonlySet<number> = new Set([401, 403, 407, 408, 425, 429, 502, 503, 504])
const WEAK_EVIDENCE: ReadonlySet<number> = new Set([500])
/** Nothing can be posted there, whatever the body says: an HTTP+SSE stream answers so, and may be MCP's own. */
const METHOD_REFUSED: ReadonlySet<number> = new Set([405, 501])
/** Errors that only servers of the modern era give. */
const HEADER_MISMATCH = -32020
const MISSING_CAPABILITY = -32021
const UNSUPPORTED_REVISION = -32022

/** Asks. Rejects with a ChannelError where the server cannot be asked, and with a Fault where it cannot be used. */
export async function probe(probing: Probing): Promise<Finding> {
  const finding = await probeOnce(probing)
  if (finding !== 'headers refused') return finding
  const again = await probeOnce(probing)
  if (again !== 'headers refused') return again
  throw new Fault(
    'upstreamIncompatible',
    'The server speaks 2026-07-28, but says that the request headers and body differ: something on the way strips or rewrites headers',
  )
}

async function probeOnce({
  transport,
  clientInfo,
  timeout,
  peer: open,
  headers = {},
  account,
  log,
}: Probing): Promise<Finding | 'headers refused'> {
  const peer = open ?? new Peer(await transport.open(), log)
  peer.headers = { ...headers, 'mcp-protocol-version': NEWEST_MODERN, 'mcp-method': 'server/discover' }
  const exchange = peer.begin()
  exchange.account = account
  exchange.send('server/discover', discoverParams(clientInfo))
  peer.headers = {}
  try {
    const answer = await exchange.answerWithin(timeout)
    // A program may be starting still. It is asked to initialize as it is: the answers differ by their ids.
    if (!answer && transport.kind === 'stdio') return { ...legacy(SILENT, peer, { weak: true }), unanswered: exchange }
    exchange.drop()
    if (answer) return readAnswer(answer, peer)
    await peer.channel.close()
    return legacy(SILENT, undefined, { weak: true })
  } catch (error) {
    exchange.drop()
    if (error instanceof ChannelError) return unanswered(error, peer)
    throw error
  }
}

/** What an answer to the probe says. */
export function readAnswer({ outcome: { kind, source, member } }: Response, peer: Peer): Finding | 'headers refused' {
  const object = payloadAt(source, member) ?? EMPTY
  if (kind === 'error') return readError(object, peer)
  const versions = value(object, 'supportedVersions')
  if (!Array.isArray(versions))
    return legacy('it answered server/discover with something that is no DiscoverResult', peer, { spoke: true })
  if (versions.some((version) => isModern(version))) {
    const alsoLegacy = versions.some(isLegacy)
    return { era: 'modern', why: 'it answered server/discover', peer, alsoLegacy, modernOnly: false }
  }
  return legacy(`its answer to server/discover lists only ${versions.join(', ') || 'no version'}`, peer, {
    spoke: true,
  })
}

function readError(error: Payload, peer: Peer): Finding | 'headers refused' {
  const code = value(error, 'code')
  const supported = supportedIn(error)
  if (code === UNSUPPORTED_REVISION) {
    if (!supported.some(isModern))
      return legacy(`it says that it supports ${supported.join(', ') || 'no version'}`, peer, { spoke: true })
  } else if (code === HEADER_MISMATCH && peer.channel.transport === 'http') {
    return 'headers refused'
  } else if (code !== MISSING_CAPABILITY && code !== HEADER_MISMATCH) {
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
  // Drafts of the specification had another name for it.
  const listed = data && (value(data, 'supported') ?? value(data, 'supportedVersions'))
  return Array.isArray(listed) ? listed.filter((version): version is string => typeof version === 'string') : []
}

async function unanswered(error: ChannelError, peer: Peer): Promise<Finding | 'headers refused'> {
  if (error.refusal) {
    const { status } = error.refusal
    if (status < 400 || NO_EVIDENCE.has(status)) throw error
    const answered = METHOD_REFUSED.has(status) ? undefined : errorIn(error.refusal)
    if (answered) return readAnswer(answered, peer)
    return legacy(`it answered server/discover with HTTP ${status}`, peer, { weak: WEAK_EVIDENCE.has(status) })
  }
  if (error.delivered === 'no') throw error
  if (peer.end === undefined && error.protocol && peer.channel.transport === 'stdio')
    return legacy('it answered server/discover with something that cannot be read', peer, { weak: true })
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
): Finding & { era: 'legacy' } {
  return { era: 'legacy', why, peer, spoke, weak }
}
