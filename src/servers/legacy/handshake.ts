/** Performs the handshake with a legacy server: sends `initialize`, and falls back to older revisions. */

import { type Id, type Response, response as responseMessage } from '../../base/rpc/message.js'
import { cut, weightOf } from '../../base/rpc/source.js'
import { edit, type Json, objectIn, type Payload, value } from '../../base/rpc/splice.js'
import {
  isLater,
  isModern,
  LEGACY,
  type LegacyRevision,
  legacyRevision,
  NEWEST_LEGACY,
} from '../../mcp/protocol/eras.js'
import { decodeHandshake, type Handshake, initializeParams, speaksOnly } from '../../mcp/protocol/legacy-server.js'
import type { AnsweredInitialize } from '../../mcp/protocol/upstream.js'
import { errorIn } from '../failure.js'
import type { Peer } from '../peer.js'
import { ChannelError } from '../transport/channel.js'

/** Maximum bytes of the answer to `initialize`, which is stored as long as the session. */
const MAX_HANDSHAKE = 1024 * 1024
/** HTTP statuses with which servers refuse an unknown revision. They have not opened a session then. */
const REVISION_REFUSED: ReadonlySet<number> = new Set([400, 406, 422, 426, 500])

/**
 * Sends `initialize` with the newest legacy revision. If the server refuses it, tries the first one that the server names,
 * or else all older ones. `timeout` is for each attempt, `start` for the start of a program, in milliseconds. Rejects with
 * a ChannelError, or with a Fault if the server and the bridge have no revision in common.
 */
export async function shakeHands(
  peer: Peer,
  { clientInfo, capabilities }: { clientInfo: Json; capabilities: Json },
  timeout: number,
  start?: number,
): Promise<Handshake> {
  const offers: LegacyRevision[] = [NEWEST_LEGACY]
  for (let i = 0; ; i++) {
    const params = initializeParams(offers[i] as LegacyRevision, clientInfo, capabilities)
    const { answer, refused } = await outcomeOf(peer.call('initialize', params, timeout, { start }))
    if (answer && !refused) {
      const result = resultOf(answer, 'initialize')
      if (weightOf(result.source) > MAX_HANDSHAKE)
        throw new ChannelError(`The answer to initialize is larger than ${MAX_HANDSHAKE / 1024} KiB`, {
          protocol: true,
        })
      return decodeHandshake(result, legacyRevision(value(result, 'protocolVersion')))
    }
    if (i === 0) offers.push(...alternatives(answer))
    if (i + 1 >= offers.length) throw refused
  }
}

/**
 * Sends a client's `initialize` with `send`. If the server refuses its revision by HTTP alone, tries older ones: clients
 * accept an older revision in the answer. Rejects with a ChannelError.
 */
export async function sendOpening(
  params: Payload | undefined,
  send: (params: Payload | undefined) => Promise<Response>,
): Promise<Response> {
  const asked = params && legacyRevision(value(params, 'protocolVersion'))
  const older = params ? LEGACY.slice(asked === undefined ? 0 : LEGACY.indexOf(asked) + 1) : []
  for (let next = params; ; ) {
    try {
      return await send(next)
    } catch (error) {
      const revision = older.shift()
      if (!params || !revision || !refusesRevision(error) || errorIn(error.refusal)) throw error
      next = edit(params, { protocolVersion: JSON.stringify(revision) })
    }
  }
}

/** The outcome of `initialize`: a result, or a refusal. Rejects with a ChannelError that is not about the revision. */
async function outcomeOf(
  answering: Promise<Response>,
): Promise<{ answer: Response | undefined; refused?: ChannelError }> {
  try {
    const answer = await answering
    if (answer.outcome.kind === 'result') return { answer }
    const { source, start, end } = answer.outcome
    const said = cut(source, start, end).slice(0, 300)
    return { answer, refused: new ChannelError(`The server refused to open a session: ${said}`) }
  } catch (error) {
    if (!refusesRevision(error)) throw error
    return { answer: errorIn(error.refusal), refused: error }
  }
}

function refusesRevision(error: unknown): error is ChannelError & { refusal: NonNullable<ChannelError['refusal']> } {
  return error instanceof ChannelError && error.refusal !== undefined && REVISION_REFUSED.has(error.refusal.status)
}

/** The revisions to try after a refusal. Throws a Fault if the server names only later ones. */
function alternatives(refusal: Response | undefined): readonly LegacyRevision[] {
  const older = LEGACY.slice(1)
  const error = refusal?.outcome.payload
  const data = error && objectIn(error, 'data')
  const supported: unknown = data && value(data, 'supported')
  if (!Array.isArray(supported)) return older
  const first = supported.map(legacyRevision).find((revision) => revision !== undefined)
  if (first) return [first]
  if (supported.length > 0 && supported.every(isLater)) throw speaksOnly(supported)
  // A server that names only modern revisions opens no session with any revision.
  return supported.some((version) => isModern(version)) ? [] : older
}

/** The result in an answer; undefined if it is an error, or no object. */
export function resultIn({ outcome: { kind, payload } }: Response): Payload | undefined {
  return kind === 'result' ? payload : undefined
}

/** The answer to `initialize`, with the id of another client. */
export function answeredWith(answer: Response, id: Id): AnsweredInitialize {
  return { text: responseMessage(id, answer), origin: answer.outcome.source, result: resultIn(answer) }
}

/** The result of an answer, which has to be an object. Throws a ChannelError. */
export function resultOf(answer: Response, method: string): Payload {
  const result = resultIn(answer)
  if (!result) throw new ChannelError(`The server did not answer ${method} with a result`, { protocol: true })
  return result
}
