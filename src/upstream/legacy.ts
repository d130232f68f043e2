/** The upstream half of the legacy era: answers calls of the middle out of sessions with a legacy server. */
import type { Call, Handler, Reply } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { checkParamHeaders } from '../protocol/headers.js'
import { decodeReply, discoverResult, encodeParams, offers } from '../protocol/legacy.js'
import { withoutEnvelopeKeys, writeMeta } from '../protocol/meta.js'
import { atLeast, isLogLevel, methodTraits } from '../protocol/methods.js'
import type { Params, Response } from '../rpc/message.js'
import { EMPTY, edit, objectIn, type Payload, payloadAt, value, write } from '../rpc/splice.js'
import { ChannelError } from './channel.js'
import type { Exchange } from './exchange.js'
import { callFault, errorIn, sessionGone } from './failure.js'
import type { Lease } from './pool.js'
import type { LegacySession } from './session.js'
import type { ToolFacts } from './tools.js'

/** A refusal that asks to be patient for no longer than this many seconds is waited out. */
const PATIENCE = 5

export function legacyHandler(acquire: (call: Call) => Promise<Lease>): Handler {
  return async function* answerFromSession(call) {
    for (let attempt = 0; ; attempt++) {
      const lease = await acquire(call)
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
      const arrival = await arrives(exchange)
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

/** A refusal may bring the answer in its body: what the server said in JSON-RPC counts, whatever the status. */
async function arrives(exchange: Exchange) {
  try {
    return await exchange.next()
  } catch (error) {
    if (!(error instanceof ChannelError) || !error.refusal || sessionGone(error)) throw error
    const { status } = error.refusal
    const said = status === 401 || status === 403 ? undefined : errorIn(error.refusal)
    if (!said) throw error
    return said
  }
}

function answer(session: LegacySession, call: Call, exchange: Exchange, response: Response): Reply {
  const reply = decodeReply(call, response, session.handshake.serverInfo, session.lift)
  if (reply.kind === 'result' && call.method === 'tools/list' && value(call.params, 'cursor') === undefined) {
    const { source, member } = response.outcome
    const page = payloadAt(source, member)
    if (page) session.tools.learn(page)
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

function withoutEnvelope(params: Payload): Payload {
  const meta = objectIn(params, '_meta')
  return meta ? edit(params, { _meta: writeMeta(withoutEnvelopeKeys(meta)) }) : params
}

/** Seconds after which the call may be sent once more without any risk of doing a thing twice; undefined for never. */
function worthAnotherTry(error: unknown, call: Call, session: LegacySession): number | undefined {
  if (!(error instanceof ChannelError) || error.protocol) return undefined
  if (sessionGone(error)) return 0
  if (error.refusal) {
    const { status, retryAfter } = error.refusal
    const busy = status === 429 || status === 503
    const patient = busy && retryAfter !== undefined && retryAfter <= PATIENCE
    return patient && methodTraits(call.method).idempotent ? retryAfter : undefined
  }
  if (error.delivered === 'no') return 0
  return repeatable(call, session) ? 0 : undefined
}

function repeatable(call: Call, session: LegacySession): boolean {
  if (methodTraits(call.method).idempotent) return true
  if (call.method !== 'tools/call') return false
  return session.tools.known(toolOf(call))?.repeatable ?? false
}

function notFound({ method }: Call): Fault {
  return new Fault('methodNotFound', `Method not found: the server does not offer ${method}`)
}

function pause(seconds: number, signal: AbortSignal): Promise<void> {
  if (seconds === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(done, seconds * 1000)
    function done() {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
  })
}
