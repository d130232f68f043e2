/** The handshake with a legacy server: `initialize`, with the revisions to offer. */
import { isModern, type LegacyRevision, legacyRevision, NEWEST_LEGACY } from '../../protocol/eras.js'
import { decodeHandshake, type Handshake, initializeParams } from '../../protocol/legacy-server.js'
import type { Response } from '../../rpc/message.js'
import { cut, weightOf } from '../../rpc/source.js'
import { type Json, objectIn, type Payload, payloadAt, value } from '../../rpc/splice.js'
import type { Peer } from '../peer.js'
import { ChannelError } from '../transport/channel.js'

/** Maximum bytes of the answer to `initialize`, which is kept as long as the session. */
const MAX_HANDSHAKE = 1024 * 1024
/** Revisions to try if a server refuses the newest one without naming others. */
const FALLBACKS: readonly LegacyRevision[] = ['2025-03-26', '2024-11-05']

/**
 * Sends `initialize` with the newest legacy revision. If the server refuses it, tries the first one that it names, else
 * the FALLBACKS. `timeout` is in milliseconds, for each attempt. Rejects with a ChannelError, or with a Fault if server and bridge have no
 * revision in common.
 */
export async function shakeHands(
  peer: Peer,
  { clientInfo, capabilities }: { clientInfo: Json; capabilities: Json },
  timeout: number,
): Promise<Handshake> {
  const offers: LegacyRevision[] = [NEWEST_LEGACY]
  for (let i = 0; ; i++) {
    const answer = await peer.call(
      'initialize',
      initializeParams(offers[i] as LegacyRevision, clientInfo, capabilities),
      timeout,
    )
    if (answer.outcome.kind === 'result') {
      const result = resultOf(answer, 'initialize')
      if (weightOf(result.source) > MAX_HANDSHAKE)
        throw new ChannelError(`The answer to initialize is larger than ${MAX_HANDSHAKE / 1024} KiB`, {
          protocol: true,
        })
      return decodeHandshake(result, legacyRevision(value(result, 'protocolVersion')))
    }
    if (i === 0) offers.push(...alternatives(answer))
    if (i + 1 >= offers.length) {
      const { source, member } = answer.outcome
      throw new ChannelError(
        `The server refused to open a session: ${cut(source, member.start, member.end).slice(0, 300)}`,
      )
    }
  }
}

/** The revisions to try after a refusal. */
function alternatives({ outcome: { source, member } }: Response): readonly LegacyRevision[] {
  const error = payloadAt(source, member)
  const data = error && objectIn(error, 'data')
  const supported: unknown = data && value(data, 'supported')
  if (!Array.isArray(supported)) return FALLBACKS
  const first = supported.map(legacyRevision).find((revision) => revision !== undefined)
  if (first) return [first]
  // A server that names only modern revisions opens no session with any revision.
  return supported.some((version) => isModern(version)) ? [] : FALLBACKS
}

/** The result of an answer, which has to be an object. Throws a ChannelError. */
export function resultOf({ outcome: { kind, source, member } }: Response, method: string): Payload {
  const result = kind === 'result' ? payloadAt(source, member) : undefined
  if (!result) throw new ChannelError(`The server did not answer ${method} with a result`, { protocol: true })
  return result
}
