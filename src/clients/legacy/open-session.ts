/** Opens the session of a legacy client: a direct one with a legacy server, or one that the bridge translates. */

import { Fault } from '../../base/fault/fault.js'
import { error as errorMessage, type Id, type Request, result } from '../../base/rpc/message.js'
import { EMPTY } from '../../base/rpc/splice.js'
import { bridgeCall } from '../../mcp/protocol/bridge-call.js'
import type { Caller, Final, Sender } from '../../mcp/protocol/call.js'
import type { Encoded } from '../../mcp/protocol/encoded.js'
import { decodeInitialize } from '../../mcp/protocol/legacy-client.js'
import type { AnsweredInitialize, DirectSession, LegacyRoute } from '../../mcp/protocol/upstream.js'
import { CallLogEntry } from '../call-log.js'
import { DirectClientSession, type DirectClientSessionOptions } from './direct-session.js'
import { callerOf, TranslatedSession } from './half.js'
import type { Opened, OpenOptions } from './session.js'

/** Answers `initialize` and opens the session. Never rejects: a failure is the answer. */
export async function openSession(request: Request, options: OpenOptions): Promise<Opened> {
  const { upstream, log, transport } = options
  const session = log.telemetry?.recorder && crypto.randomUUID()
  const whose = { principal: options.sender.principal, session, trace: options.trace }
  const fields = { clientEra: 'legacy', clientTransport: transport, method: request.method } as const
  const record = new CallLogEntry(log, fields, whose, request)
  const sender: Sender = { ...options.sender, caller: { revision: '', capabilities: '{}' } }
  record.recorder?.began(request, undefined, options.headers)
  try {
    const route = await upstream.legacyRoute(sender)
    // Over Streamable HTTP a lost session needs no reopening: the client gets 404 and opens another session itself.
    const connecting = { reopens: transport !== 'http', call: record.recorder?.number, forwarded: options.forwarded }
    const direct = route === 'translate' ? undefined : await connect(route, request, sender, connecting, record)
    if (route === 'translate' || !direct) return await TranslatedSession.open(request, { ...options, session }, record)
    const { revision } = direct
    const { transport: serverTransport } = route
    const opening = openingIn(request)
    const answered = direct.opened(request.id)
    const { text, origin } = revision
      ? await asOffered(answered, request.id, direct, callerOf(opening), options)
      : answered
    const { http } = answered
    record.note({ serverEra: 'legacy', serverTransport, ...(revision && { clientRevision: revision }) })
    record.recorder?.sent(text, origin)
    record.answered(revision ? 'ok' : 'error', undefined)
    const last = { status: 200, ...http }
    if (revision === undefined) return { text, last }
    return {
      text,
      last,
      session: new DirectClientSession(direct, revision, { ...options, session, serverTransport, opening }),
    }
  } catch (error) {
    const fault = Fault.from(error)
    const text = errorMessage(request.id, fault.toRpcError())
    record.failed({ fault }, text)
    return { text, last: { status: 200, fault } }
  }
}

/** Connects, in a span of its own. Rejects with a Fault. */
async function connect(
  route: Exclude<LegacyRoute, 'translate'>,
  request: Request,
  sender: Sender,
  connecting: Parameters<typeof route.connect>[2],
  record: CallLogEntry,
): Promise<DirectSession | undefined> {
  const { trace: { traceparent, tracestate } = {}, over } = record.handedOver()
  const inSpan = { ...(traceparent && { traceparent }), ...(tracestate !== undefined && { tracestate }) }
  const forwarded = connecting.forwarded && { ...connecting.forwarded, ...inSpan }
  try {
    const direct = await route.connect(request, sender, { ...connecting, forwarded })
    over({ kind: 'result', result: EMPTY })
    return direct
  } catch (error) {
    over(Fault.from(error))
    throw error
  }
}

/**
 * The server's answer to `initialize`, in which policies leave out what they leave out of one to `server/discover`. Rejects with
 * a Fault.
 */
async function asOffered(
  opened: AnsweredInitialize,
  id: Id,
  direct: DirectSession,
  caller: Caller,
  { upstream, sender }: OpenOptions,
): Promise<Encoded> {
  if (!opened.result) return opened
  const said: Final = { kind: 'result', result: opened.result }
  try {
    const discovering = bridgeCall('server/discover', { caller, ...sender })
    const last = await upstream.handle({ ...discovering, inBand: true, link: { ask: async () => said } })
    if (last.kind !== 'result' || last.result === said.result) return opened
    return { text: result(id, last.result), origin: last.result }
  } catch (error) {
    direct.close()
    throw error
  }
}

/** What the client says in `initialize`; undefined if that is invalid: the server may take it. */
function openingIn(request: Request): DirectClientSessionOptions['opening'] {
  try {
    return decodeInitialize(request)
  } catch {
    return undefined
  }
}
