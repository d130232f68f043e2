/** The upstream half of the legacy era: answers calls of the middle out of sessions with a legacy server. */
import type { Call, Handler, Reply } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { checkParamHeaders } from '../protocol/headers.js'
import { decodeReply, discoverResult, encodeParams, offers } from '../protocol/legacy-server.js'
import { withoutEnvelope } from '../protocol/meta.js'
import { atLeast, isLogLevel, methodTraits } from '../protocol/methods.js'
import type { Params, Response } from '../rpc/message.js'
import { EMPTY, edit, objectIn, payloadAt, raw, value, write } from '../rpc/splice.js'
import type { ChannelError } from './channel.js'
import type { Exchange } from './exchange.js'
import { answerOf, Contradiction, callFault, pause, sessionGone, worthRepeating } from './failure.js'
import type { Lease } from './pool.js'
import type { LegacySession } from './session.js'
import type { ToolFacts } from './tools.js'

/**
 * `acquire` lends a session; where it finds out that the server has none any more, `elsewhere` answers the call, of which
 * nothing has been sent.
 */
export function legacyHandler(acquire: (call: Call) => Promise<Lease>, elsewhere: Handler): Handler {
  return async function* answerFromSession(call) {
    for (let attempt = 0; ; attempt++) {
      const lease = await acquire(call).catch((error: unknown) => {
        if (error instanceof Contradiction) return undefined
        throw error
      })
      if (!lease) {
        yield* elsewhere(call)
        return
      }
      try {
        yield* ask(lease.session, call)
        return
      } catch (error) {
        const wait = worthAnotherTry(error, call, lease.session)
        if (sessionGone(error) || !lease.session.alive) lease.discard()
        if (attempt > 0 || wait === undefined || call.signal.aborted) throw callFault(error)
        await pause(wait, call.signal)
      } finally {
        lease.release()
      }
    }
  }
}

async function* ask(session: LegacySession, call: Call): AsyncGenerator<Reply> {
  const { handshake } = session
  session.lastUsed = Date.now()
  call.log.note({ serverEra: 'legacy', serverRevision: handshake.revision, serverTransport: session.transport })
  if (call.method === 'server/discover') {
    yield { kind: 'result', result: discoverResult(handshake, { receives: false }), server: handshake.serverInfo }
    return
  }
  const { eras } = methodTraits(call.method)
  if (eras === 'modern' || call.method.startsWith('tasks/') || !offers(handshake, call.method)) throw notFound(call)
  const wait = toPrepare(session, call)
  if (wait) await wait()

  const exchange = session.begin(call)
  const hangUp = () => session.finish(exchange)
  call.signal.addEventListener('abort', hangUp, { once: true })
  try {
    call.signal.throwIfAborted()
    exchange.send(call.method, encodeParams(call, handshake.revision, call.progress ? exchange.id : undefined))
    for (;;) {
      const arrival = await exchange.next().catch((error: unknown) => answerOf(error, asSessionGone))
      if (arrival.kind === 'response') {
        const last = answer(session, call, exchange, arrival)
        if (call.caller.logLevel !== undefined && session.trailing > 0) yield* trailing(session, call, exchange)
        yield last
        return
      }
      const reply = relayed(call, arrival.method, arrival.params)
      if (reply) yield reply
    }
  } finally {
    // The reader may stop at any yield; a call that nobody reads is hung up on.
    call.signal.removeEventListener('abort', hangUp)
    session.finish(exchange)
  }
}

/** Log messages that were sent before the answer, but on another connection. */
async function* trailing(session: LegacySession, call: Call, exchange: Exchange): AsyncGenerator<Reply> {
  for (;;) {
    const arrival = await exchange.nextWithin(session.trailing)
    if (arrival?.kind !== 'notification') return
    const reply = relayed(call, arrival.method, arrival.params)
    if (reply) yield reply
  }
}

/** What has to be so before the server hears of the call; undefined where there is nothing to wait for, as usual. */
function toPrepare(session: LegacySession, call: Call): (() => Promise<void>) | undefined {
  const { logLevel } = call.caller
  const listens = methodTraits(call.method).asks && session.receives === undefined
  const mirrors = call.method === 'tools/call' && call.paramHeaders !== undefined
  if (mirrors && session.tools.knowsAll) checkMirrored(session.tools.known(toolOf(call)), call)
  const looksUp = mirrors && !session.tools.knowsAll
  if (!listens && !looksUp && logLevel === undefined) return undefined
  return async () => {
    if (listens) await session.settled()
    if (logLevel !== undefined) await session.logAt(logLevel)
    if (looksUp) checkMirrored(await session.tools.find(toolOf(call)), call)
  }
}

function checkMirrored(tool: ToolFacts | undefined, call: Call): void {
  if (!tool || tool.annotations.length === 0 || !call.paramHeaders) return
  checkParamHeaders(tool.annotations, objectIn(call.params, 'arguments'), call.paramHeaders)
}

function toolOf(call: Call): string {
  return String(value(call.params, 'name'))
}

/** A refusal that says nothing about the call: the session is gone. */
function asSessionGone(error: ChannelError): Error | undefined {
  return sessionGone(error) ? error : undefined
}

function answer(session: LegacySession, call: Call, exchange: Exchange, response: Response): Reply {
  const reply = decodeReply(call, response, session.handshake.serverInfo, session.lift)
  if (reply.kind === 'result' && call.method === 'tools/list') {
    const { source, member } = response.outcome
    const page = payloadAt(source, member)
    if (page) session.tools.learn(page, raw(call.params, 'cursor'))
  }
  if (reply.kind !== 'error') return reply
  const refused = session
    .refusedDuring(exchange)
    .filter(({ certain, said }) => certain || reply.error.message.includes(said))
  if (refused.length > 0) {
    const names = [...new Set(refused.map(({ name }) => name))].join(', ')
    const requiredCapabilities = write(
      edit(EMPTY, Object.fromEntries(refused.map(({ name, needed }) => [name, needed]))),
    )
    throw new Fault('missingCapability', `The server needs client capabilities that were not declared: ${names}`, {
      data: { requiredCapabilities },
    })
  }
  if (reply.error.code === -32601 && methodTraits(call.method).capability === undefined)
    throw new Fault('methodNotFound', reply.error.message)
  return reply
}

/** A notification that came during the call, if the caller wants it. */
function relayed(call: Call, method: string, params: Params): Reply | undefined {
  const payload = typeof params === 'string' ? EMPTY : params
  switch (method) {
    case 'notifications/progress':
      return call.progress ? { kind: 'notification', method, params: withoutEnvelope(payload) } : undefined
    case 'notifications/message': {
      const level = value(payload, 'level')
      const wanted = call.caller.logLevel
      if (wanted === undefined || !isLogLevel(level) || !atLeast(level, wanted)) return undefined
      return { kind: 'notification', method, params: withoutEnvelope(payload) }
    }
    default:
      return undefined
  }
}

/** Seconds after which the call may be sent once more without any risk of doing a thing twice; undefined for never. */
function worthAnotherTry(error: unknown, call: Call, session: LegacySession): number | undefined {
  return sessionGone(error) ? 0 : worthRepeating(error, repeatable(call, session))
}

function repeatable(call: Call, session: LegacySession): boolean {
  if (methodTraits(call.method).idempotent) return true
  if (call.method !== 'tools/call') return false
  return session.tools.known(toolOf(call))?.repeatable ?? false
}

function notFound({ method }: Call): Fault {
  return new Fault('methodNotFound', `Method not found: the server does not offer ${method}`)
}
