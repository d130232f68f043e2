/**
 * Reads messages of clients, strictly and within bounds, decides for each which era the client uses, and refuses an unsupported
 * revision with a list of those that are supported. The body decides; the version header can only confirm or contradict it (MCP 2026-07-28, basic/versioning and streamable-http,
 * server validation). Stateless.
 */

import { Fault } from '../../base/fault/fault.js'
import { type Id, type Message, parseMessage, type Request } from '../../base/rpc/message.js'
import { JsonBoundError, JsonError } from '../../base/rpc/scan.js'
import { cut, sourceOf, sourceOfBytes } from '../../base/rpc/source.js'
import { EMPTY, objectIn, type Payload } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { LOOKS_ABSENT, withoutAbsent } from './absent.js'
import { isModern, LEGACY, type LegacyRevision, legacyRevision, looksModern, MODERN, traits } from './eras.js'
import { CLIENT_CAPABILITIES, PROTOCOL_VERSION } from './meta.js'
import { methodTraits } from './methods.js'
import { type Envelope, envelopeIn } from './modern-client.js'

/** Most characters of a message that are searched for members that are absent. */
const SEARCHED = 16 * 1024
/** Requests of the protocol have a few members on their own levels; `arguments` and other data may have any number. */
const BOUNDS = { strict: true, maxDepth: 64, maxValues: 200_000, maxListed: 4_000 }

/**
 * Parses one message, without members that are absent in another way than by being left out. Throws a Fault that states what is
 * invalid in the JSON; an invalid JSON-RPC message is returned as such.
 */
export function readMessage(bytes: readonly Uint8Array[]): Message {
  try {
    const source = sourceOfBytes(bytes)
    const message = parseMessage(source, BOUNDS)
    // Most have nothing to leave out. In a long one, the few members are looked up at once.
    const { text } = source
    return text.length > SEARCHED || LOOKS_ABSENT.test(text) ? withoutAbsent(message) : message
  } catch (cause) {
    if (cause instanceof JsonBoundError) throw new Fault('invalidRequest', cause.message, { cause })
    if (cause instanceof JsonError) throw new Fault('notJson', `Not JSON: ${cause.message}`, { cause })
    throw new Fault('notJson', 'Not UTF-8', { cause })
  }
}

/** The `_meta` of a request that has not been decoded yet. */
export function metaOf({ params }: Request): Payload {
  return (typeof params === 'string' ? undefined : objectIn(params, '_meta')) ?? EMPTY
}

/** The id for the answer to a message; undefined if the message has no valid id or needs no answer. */
export function idToAnswer(message: Message | undefined): Id | undefined {
  return message?.kind === 'request' || message?.kind === 'invalid' ? message.id : undefined
}

/** As `idToAnswer`, for the unparsed body of an HTTP request; undefined if it cannot be parsed. */
export function idIn(body: unknown): Id | undefined {
  return idToAnswer(messageIn(body))
}

/** The message in the unparsed body of an HTTP request; undefined if it cannot be parsed. */
function messageIn(body: unknown): Message | undefined {
  if (!(body instanceof Uint8Array)) return undefined
  try {
    return readMessage([body])
  } catch {
    return undefined
  }
}

/**
 * The session that a message's `Mcp-Session-Id` names. `gone`: the id is unknown, expired or belongs to another
 * principal.
 */
export type SessionState = 'none' | 'gone' | { revision: LegacyRevision }

/** Deviations from the specification that the operator allows. */
export interface Compat {
  /** Answer a `server/discover` that has neither envelope nor version header, as typed by hand. */
  bareDiscover: boolean
  /** Accept a version header that differs from the negotiated revision, if it names a legacy revision. */
  ignoreVersionSkew: boolean
  /** Answer with the error codes of the drafts of 2026-07-28. */
  draftErrorCodes: boolean
}

/** The era of a message, and how to handle it. */
export type Classification =
  /** It has an envelope, and the header agrees. Only a notification may have none. */
  | { era: 'modern'; envelope?: Envelope }
  /** `server/discover` without an envelope. */
  | { era: 'modern'; bare: true }
  | { era: 'legacy'; as: 'initialize' | 'message' | 'batch'; skew?: string }

/**
 * Classifies a message that was posted to the MCP endpoint. `version` is the header's value. Throws a Fault if it is
 * refused.
 */
export function classify(
  message: Message,
  version: string | undefined,
  session: SessionState,
  compat: Compat,
): Classification {
  if (message.kind === 'invalid') throw new Fault('invalidRequest', message.why)
  if (message.kind === 'batch') return classifyBatch(message, version, session)
  const envelope = message.kind === 'response' ? undefined : envelopeIn(message.params)
  // A notification may come without the header: 2026-07-28 defines none for it.
  if (envelope?.known && envelope.claim === version) return { era: 'modern', envelope }
  if (envelope)
    return classifyEnvelope(envelope, version ?? (message.kind === 'notification' ? envelope.claim : undefined))
  const isOfSession = typeof session === 'object' && version === session.revision
  if (isOfSession && !(message.kind === 'request' && message.method === 'initialize'))
    return { era: 'legacy', as: 'message' }
  const modernHeader = version !== undefined && looksModern(version)
  if (message.kind === 'response') {
    if (modernHeader || session === 'none')
      throw new Fault('invalidRequest', 'Unexpected JSON-RPC response: in this revision servers send no requests')
  } else if (modernHeader) {
    if (message.kind === 'notification') return { era: 'modern' }
    if (message.method === 'initialize')
      throw new Fault(
        'headerMismatch',
        `initialize belongs to ${LEGACY.join(', ')}, not to ${printable(version, ECHOED)}`,
      )
    throw missingEnvelope()
  }
  if (version !== undefined && legacyRevision(version) === undefined)
    throw new Fault('invalidRequest', `Unsupported MCP-Protocol-Version "${version.slice(0, 64)}"`, {
      data: { supported: [...MODERN, ...LEGACY] },
    })

  if (message.kind === 'request' && message.method === 'initialize') return { era: 'legacy', as: 'initialize' }
  if (session === 'gone') throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
  if (session === 'none') {
    if (message.kind === 'request' && methodTraits(message.method).eras === 'modern') {
      if (message.method === 'server/discover' && version === undefined && compat.bareDiscover)
        return { era: 'modern', bare: true }
      throw missingEnvelope()
    }
    throw new Fault('invalidRequest', 'Session required: call initialize first, or send the envelope of 2026-07-28')
  }
  if (version === undefined || legacyRevision(version) === session.revision) return { era: 'legacy', as: 'message' }
  if (compat.ignoreVersionSkew) return { era: 'legacy', as: 'message', skew: version }
  throw new Fault(
    'invalidRequest',
    `MCP-Protocol-Version is "${printable(version, ECHOED)}", but ${session.revision} was negotiated`,
  )
}

/** The only session on stdio. `failed`: its last `initialize` was answered with an error. */
export type ProcessSession = 'none' | 'opening' | 'failed' | { revision: LegacyRevision }

/**
 * Classifies a line of stdio, where there are no headers and at most one session. While that is `opening`, its messages
 * wait, and are classified again afterwards.
 */
export function classifyLine(
  message: Message,
  session: ProcessSession,
  compat: Pick<Compat, 'bareDiscover'>,
): Classification {
  if (message.kind === 'invalid') throw new Fault('invalidRequest', message.why)
  if (message.kind === 'batch') {
    if (session === 'opening') return { era: 'legacy', as: 'batch' }
    if (typeof session === 'object' && traits[session.revision].batches) return { era: 'legacy', as: 'batch' }
    throw new Fault('invalidRequest', 'This revision has no batches: send one message per line')
  }
  const envelope = message.kind === 'response' ? undefined : envelopeIn(message.params)
  if (envelope?.known) return { era: 'modern', envelope }
  if (envelope) return classifyEnvelope(envelope, envelope.claim)
  // Hosts that reach a program through a tunnel open one session after another on its pipe.
  if (message.kind === 'request' && message.method === 'initialize') return { era: 'legacy', as: 'initialize' }
  const isOpen = session === 'opening' || typeof session === 'object'
  if (isOpen || message.kind !== 'request' || message.method === 'ping') return { era: 'legacy', as: 'message' }
  if (message.method === 'server/discover' && compat.bareDiscover) return { era: 'modern', bare: true }
  if (methodTraits(message.method).eras === 'modern') throw missingEnvelope()
  // The answer to this message says why there is no session.
  if (session === 'failed') return { era: 'legacy', as: 'message' }
  throw new Fault('invalidRequest', 'Session required: call initialize first, or send the envelope of 2026-07-28')
}

/** `version` is the header's value, or the version that counts as the header. */
function classifyEnvelope(envelope: Envelope, version: unknown): Classification {
  const { claim } = envelope
  if (typeof claim !== 'string')
    throw new Fault('invalidEnvelope', `${PROTOCOL_VERSION} has to be a string`, { data: missingData() })
  if (version === undefined) throw new Fault('headerMismatch', 'Header MCP-Protocol-Version is missing')
  if (version !== claim)
    throw new Fault('headerMismatch', 'Header MCP-Protocol-Version and the version in the body differ')
  if (isModern(claim)) return { era: 'modern', envelope }
  const hint = legacyRevision(claim) ? ': this revision starts with initialize' : ''
  throw new Fault('unsupportedRevision', `Unsupported protocol version${hint}`, {
    data: { supported: MODERN, requested: printable(claim, ECHOED) },
  })
}

function classifyBatch(
  { source, elements }: Message & { kind: 'batch' },
  version: string | undefined,
  session: SessionState,
): Classification {
  const refused = (why: string) => new Fault('invalidRequest', why)
  if (elements.length === 0) throw refused('An empty array is not a valid message')
  const messages = elements.map(({ start, end }) => parseMessage(sourceOf(cut(source, start, end))))
  const claimed = messages.some((one) => 'params' in one && envelopeIn(one.params) !== undefined)
  if (claimed || (version !== undefined && looksModern(version)))
    throw refused('This revision has no batches: send one message per request')
  if (session === 'gone') throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
  if (messages.some((one) => one.kind === 'request' && one.method === 'initialize'))
    throw refused('initialize cannot be part of a batch')
  if (session === 'none') throw refused('Session required: call initialize first')
  if (!traits[session.revision].batches) throw refused(`${session.revision} has no batches`)
  return { era: 'legacy', as: 'batch' }
}

function missingData() {
  return { missing: [PROTOCOL_VERSION, CLIENT_CAPABILITIES], supported: MODERN }
}

function missingEnvelope(): Fault {
  return new Fault(
    'invalidEnvelope',
    `params._meta lacks ${PROTOCOL_VERSION} and ${CLIENT_CAPABILITIES}, which are required in every request of ${MODERN[0]}`,
    { data: missingData() },
  )
}
