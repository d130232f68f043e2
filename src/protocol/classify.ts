/**
 * Decides, message by message, what era a client speaks. The body decides; the version header can only confirm or
 * contradict it (MCP 2026-07-28, basic/versioning and streamable-http, server validation). Nothing here remembers.
 */

import { ECHOED, printable } from '../printable.js'
import { type Message, type Params, parseMessage } from '../rpc/message.js'
import { cut, sourceOf } from '../rpc/source.js'
import { objectIn, type Payload, raw } from '../rpc/splice.js'
import { isModern, LEGACY, type LegacyRevision, legacyRevision, looksModern, MODERN, traits } from './eras.js'
import { Fault } from './fault.js'
import { CLIENT_CAPABILITIES, PROTOCOL_VERSION } from './meta.js'
import { methodTraits } from './methods.js'

/** What the `Mcp-Session-Id` of a message leads to. An id that is unknown, expired or somebody else's is `gone`. */
export type SessionState = 'none' | 'gone' | { revision: LegacyRevision }

export interface Compat {
  /** Answer a `server/discover` that has neither envelope nor version header, as people type it. */
  bareDiscover: boolean
  /** Take a legacy version header that differs from what was negotiated, as long as it names a legacy revision. */
  ignoreVersionSkew: boolean
  /** Give the error codes of the drafts. */
  draftErrorCodes: boolean
}

export type Verdict =
  /** Has its envelope, and the header agrees. */
  | { era: 'modern' }
  /** `server/discover` without anything around it. */
  | { era: 'modern'; bare: true }
  | { era: 'legacy'; as: 'initialize' | 'message' | 'batch'; skew?: string }

/** Classifies what was posted to the MCP endpoint. `version` is the header's value. Throws a Fault for what is refused. */
export function classify(
  message: Message,
  version: string | undefined,
  session: SessionState,
  compat: Compat,
): Verdict {
  const modernHeader = version !== undefined && looksModern(version)
  if (message.kind === 'invalid') throw new Fault('invalidRequest', message.why)
  if (message.kind === 'batch') return classifyBatch(message, version, session)
  const claim = message.kind === 'response' ? undefined : claimOf(message.params)

  if (claim !== undefined) {
    // A notification may come without headers: this revision defines none for it.
    return classifyClaim(claim, version ?? (message.kind === 'notification' ? stringIn(claim) : undefined))
  }
  if (message.kind === 'response') {
    if (modernHeader || session === 'none')
      throw new Fault('invalidRequest', 'A JSON-RPC response has no place here: this revision asks nothing by request')
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
      data: { supported: JSON.stringify([...MODERN, ...LEGACY]) },
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

/** Classifies a line of stdio, where there is no header and at most one session. */
export function classifyLine(
  message: Message,
  session: 'none' | { revision: LegacyRevision },
  compat: Pick<Compat, 'bareDiscover'>,
): Verdict {
  if (message.kind === 'invalid') throw new Fault('invalidRequest', message.why)
  if (message.kind === 'batch') {
    if (session !== 'none' && traits[session.revision].batches) return { era: 'legacy', as: 'batch' }
    throw new Fault('invalidRequest', 'Batches do not exist in this revision')
  }
  const claim = message.kind === 'response' ? undefined : claimOf(message.params)
  if (claim !== undefined) return classifyClaim(claim, stringIn(claim))
  if (message.kind === 'request' && message.method === 'initialize') {
    if (session !== 'none') throw new Fault('invalidRequest', 'The session of this process is open already')
    return { era: 'legacy', as: 'initialize' }
  }
  if (session !== 'none' || message.kind !== 'request' || message.method === 'ping') {
    return { era: 'legacy', as: 'message' }
  }
  if (message.method === 'server/discover' && compat.bareDiscover) return { era: 'modern', bare: true }
  if (methodTraits(message.method).eras === 'modern') throw missingEnvelope()
  throw new Fault('invalidRequest', 'Session required: call initialize first, or send the envelope of 2026-07-28')
}

function stringIn(json: string): string | undefined {
  const value = JSON.parse(json) as unknown
  return typeof value === 'string' ? value : undefined
}

/** A claim is the protocol version inside the body, whatever its value. */
function classifyClaim(claimText: string, version: string | undefined): Verdict {
  const claim = JSON.parse(claimText) as unknown
  if (typeof claim !== 'string')
    throw new Fault('invalidEnvelope', `${PROTOCOL_VERSION} has to be a string`, { data: missingData() })
  if (version === undefined) throw new Fault('headerMismatch', 'Header MCP-Protocol-Version is missing')
  if (version !== claim)
    throw new Fault('headerMismatch', 'Header MCP-Protocol-Version and the version in the body differ')
  if (isModern(claim)) return { era: 'modern' }
  const hint = legacyRevision(claim) ? ': this revision begins with initialize' : ''
  throw new Fault('unsupportedRevision', `Unsupported protocol version${hint}`, {
    data: { supported: JSON.stringify(MODERN), requested: JSON.stringify(printable(claim, ECHOED)) },
  })
}

function classifyBatch(
  { source, elements }: Message & { kind: 'batch' },
  version: string | undefined,
  session: SessionState,
): Verdict {
  const refused = (why: string) => new Fault('invalidRequest', why)
  if (elements.length === 0) throw refused('An empty array is no message')
  const messages = elements.map(({ start, end }) => parseMessage(sourceOf(cut(source, start, end))))
  const claimed = messages.some((one) => 'params' in one && claimOf(one.params) !== undefined)
  if (claimed || (version !== undefined && looksModern(version)))
    throw refused('Batches do not exist in this revision: send one message per request')
  if (session === 'gone') throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
  if (messages.some((one) => one.kind === 'request' && one.method === 'initialize'))
    throw refused('initialize cannot be part of a batch')
  if (session === 'none') throw refused('Session required: call initialize first')
  if (!traits[session.revision].batches) throw refused(`Batches do not exist in ${session.revision}`)
  return { era: 'legacy', as: 'batch' }
}

/** The text of the version that a body claims, if it claims any. Throws a Fault where it could be read in two ways. */
function claimOf(params: Params): string | undefined {
  if (typeof params === 'string') return undefined
  if (twice(params, '_meta')) throw new Fault('invalidRequest', 'The member "_meta" stands twice in the params')
  const meta = objectIn(params, '_meta')
  if (!meta) return undefined
  if (twice(meta, PROTOCOL_VERSION))
    throw new Fault('invalidRequest', `The member "${PROTOCOL_VERSION}" stands twice in "_meta"`)
  return raw(meta, PROTOCOL_VERSION)
}

function twice({ members }: Payload, name: string): boolean {
  let seen = false
  for (const { key } of members) {
    if (key !== name) continue
    if (seen) return true
    seen = true
  }
  return false
}

function missingData() {
  return { missing: JSON.stringify([PROTOCOL_VERSION, CLIENT_CAPABILITIES]), supported: JSON.stringify(MODERN) }
}

function missingEnvelope(): Fault {
  return new Fault(
    'invalidEnvelope',
    `params._meta lacks ${PROTOCOL_VERSION} and ${CLIENT_CAPABILITIES}, which every request of ${MODERN[0]} carries`,
    { data: missingData() },
  )
}
