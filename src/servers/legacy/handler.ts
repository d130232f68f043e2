/** The upstream half of the legacy era: answers calls through sessions with a legacy server. */

import { Fault } from '../../base/fault/fault.js'
import { type Id, type Response, response as responseMessage } from '../../base/rpc/message.js'
import { objectIn, type Payload, raw, stringUnder, textUnder } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { pause } from '../../base/time/pause.js'
import type { Call, Final, Handler, ReceivedReply } from '../../mcp/protocol/call.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { checkParamHeaders } from '../../mcp/protocol/headers.js'
import { decodeReply, discoverResult, encodeParams, offers } from '../../mcp/protocol/legacy-server.js'
import { CALL_TOOL, LISTEN, methodTraits } from '../../mcp/protocol/methods.js'
import { hasReserved } from '../../mcp/protocol/reserved.js'
import { knowsTasks } from '../../mcp/protocol/tasks.js'
import type { Arrival, Exchange } from '../exchange.js'
import { Contradiction, callFault, cancelReason, repeatable, worthRepeating } from '../failure.js'
import type { ServerOptions } from '../options.js'
import { throwIfRefused } from '../refusals.js'
import type { Revision } from '../revision.js'
import { SessionLost } from '../session-loss.js'
import type { ToolFacts } from '../tools.js'
import { AskedCall, answerIn, type Decode, notifyOf, settle } from './asked-call.js'
import { listen } from './listen.js'
import type { ParkedCalls } from './parked.js'
import { requiredUrls, StillRequired, UrlElicitation, type WhenRequired } from './required-urls.js'
import type { LegacySession } from './session.js'
import type { LegacySessions } from './sessions.js'
import type { LegacyTasks } from './tasks.js'

const TASK_METHODS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel'])

/** What is known of a call before it is sent, if it is not a usual one. */
interface Prepared {
  /** The params of a call that is sent as a task. */
  asTask?: Payload
  decode?: Decode
}

interface Parts {
  sessions: LegacySessions
  parked: ParkedCalls
  tasks: LegacyTasks
  revision: Pick<Revision, 'shared'>
  options: ServerOptions
}

export class LegacyHandler {
  readonly #parts: Parts
  /** The URLs that the client of the call has accepted; undefined in the handler of all calls. */
  readonly #elicitation: UrlElicitation | undefined

  constructor(parts: Parts, elicitation?: UrlElicitation) {
    this.#parts = parts
    this.#elicitation = elicitation
  }

  /** Rejects with a Contradiction if the server turns out to be modern; then no call was sent. */
  readonly answerFromSession: Handler = async (retry) => {
    const { sessions, parked, tasks, options } = this.#parts
    const resumed = retry.answers && (await parked.resume(retry))
    if (resumed && !(resumed instanceof UrlElicitation)) return resumed
    if (TASK_METHODS.has(retry.method) && options.tasks !== 'off') return tasks.answer(retry)
    if (retry.method === LISTEN) return listen(sessions, retry, tasks)
    const call: Call = retry.answers ? { ...retry, answers: undefined } : retry
    if (resumed) return new LegacyHandler(this.#parts, resumed).answerFromSession(call)
    const { signal } = call
    for (let attempt = 0; ; attempt++) {
      const opening = sessions.use(call)
      const session = opening instanceof Promise ? await sessions.opened(call, opening) : opening
      let exchange: Exchange | undefined
      let decode = this.#decode
      let next: number | Final
      const hangUp = () => {
        const reason = cancelReason(signal)
        // Unread questions are answered, or given to another call.
        if (exchange?.unread) new AskedCall(session, exchange, { decode }).end(reason)
        else if (exchange) session.link.peer.release(exchange, reason)
      }
      try {
        const preparing = this.#prepare(session, call)
        const prepared = preparing && (await preparing)
        if (prepared && 'kind' in prepared) return prepared
        decode = prepared?.decode ?? decode
        // Questions that have waited for a call are answered before it is sent.
        const mayHaveQuestions = session.serverRequests.held.size > 0
        exchange = session.beginCall(call)
        signal.addEventListener('abort', hangUp, { once: true })
        signal.throwIfAborted()
        const params =
          prepared?.asTask ?? encodeParams(call, session.handshake.revision, call.progress ? exchange.id : undefined)
        let asked: AskedCall | undefined
        if (mayHaveQuestions && exchange.unread)
          asked = new AskedCall(session, exchange, { decode }).send(call.method, params)
        else session.link.peer.send(exchange, call.method, params)
        while (!asked) {
          let arrival: Arrival
          try {
            arrival = await exchange.nextArrival()
          } catch (error) {
            arrival = await answerIn(error, session, exchange, call)
          }
          if (arrival.kind === 'response') {
            const last = decode(call, arrival, exchange, session)
            if (last.kind === 'error' || session.serverRequests.hadNoRoom || call.caller.logLevel !== undefined)
              await settle(session, exchange, call, arrival, last)
            session.link.peer.release(exchange)
            return last
          }
          // Once the server asks, it is an asked call, which may be parked.
          if (arrival.kind === 'question')
            asked = new AskedCall(session, exchange, { decode, question: arrival.question })
          else if (arrival.kind === 'notification') {
            const held = notifyOf(call, arrival)
            if (held) await held
          }
        }
        signal.removeEventListener('abort', hangUp)
        exchange = undefined
        return await parked.run(asked, call)
      } catch (error) {
        hangUp()
        if (this.#elicitation && error instanceof StillRequired) {
          await this.#elicitation.wait(error.urls, session.completedElicitations, signal)
          attempt = -1
          continue
        }
        next = this.#afterFailure(error, session, call, attempt)
      } finally {
        signal.removeEventListener('abort', hangUp)
        session.unuse()
      }
      if (typeof next === 'object') return next
      await pause(next, signal)
    }
  }

  /**
   * What has to be done before a call is sent in a session; undefined if that is nothing, as usual. Resolves to an answer if the call
   * is not sent. Throws or rejects with a Fault.
   */
  #prepare(session: LegacySession, call: Call): Promise<Final | Prepared> | undefined {
    const { handshake, tools } = session
    call.log.note(session.described)
    if (call.method === 'server/discover') return this.#discover(session)
    const { eras, asks, isUnknown } = methodTraits(call.method)
    if (eras === 'modern' || call.method.startsWith('tasks/') || !offers(handshake, call.method)) throw notFound(call)
    if (isUnknown) session.hasTraces = true
    const isTool = call.method === CALL_TOOL
    const mirrors = isTool && call.paramHeaders !== undefined
    const name = mirrors && tools.knowsAll ? stringUnder(call.params, 'name') : undefined
    const tool = typeof name === 'string' ? tools.known(name) : undefined
    if (tool && tool.annotations.length > 0) checkMirrored(tool, call)
    const looksUp = mirrors && !tools.knowsAll
    const mayBeTask = isTool && session.makesTasks && this.#parts.options.tasks !== 'off'
    const isReady = !(asks && session.receives === undefined) && call.caller.logLevel === undefined
    return isReady && !looksUp && !mayBeTask ? undefined : this.#prepared(session, call, looksUp, mayBeTask)
  }

  /**
   * Waits until it is known whether the server can ask, sets the level of its log, looks up a tool whose arguments are mirrored
   * into headers, and makes the call a task if its tool requires that.
   */
  async #prepared(session: LegacySession, call: Call, looksUp: boolean, mayBeTask: boolean): Promise<Final | Prepared> {
    const { logLevel, capabilities } = call.caller
    if (methodTraits(call.method).asks && session.receives === undefined) await session.settled()
    if (logLevel !== undefined) await session.logAt(logLevel)
    if (looksUp) checkMirrored(await session.tools.find(textUnder(call.params, 'name')), call)
    const support = mayBeTask ? await taskSupportOf(session, call) : undefined
    // A tool may require to be called as a task, or allow it: then the configuration and the client decide.
    const isTask =
      support === 'required' ||
      (support === 'optional' && this.#parts.options.tasks === 'async' && knowsTasks(capabilities))
    return isTask ? this.#asTask(session, call) : {}
  }

  async #discover(session: LegacySession): Promise<Final> {
    const { handshake } = session
    await session.settled()
    const receives = session.receives !== false && !session.alone
    const result = discoverResult(handshake, { receives, tasks: this.#parts.options.tasks !== 'off' })
    return { kind: 'result', result, server: handshake.serverInfo }
  }

  async #asTask(session: LegacySession, call: Call): Promise<Final | Prepared> {
    const { tasks, parked } = this.#parts
    const required = this.#parkIfRequired
    session.hasTraces = true
    if (knowsTasks(call.caller.capabilities)) {
      // The server may send requests before it creates the task.
      const decode: Decode = (leg, response) =>
        required(leg, response, session) ?? tasks.answered(leg, session, response)
      return { decode, asTask: tasks.augmented(call, session) }
    }
    const created = await tasks.create(call, session, required)
    return 'kind' in created ? created : parked.run(tasks.drive(call, session, created, required), call)
  }

  /** Parks a call whose client has to open a URL first. Throws StillRequired if it has accepted that and is not done yet. */
  readonly #parkIfRequired: WhenRequired = (call, response, session) => {
    const urls = requiredUrls(call, response)
    if (!urls) return undefined
    const elicitation = this.#elicitation
    const toAsk = elicitation ? elicitation.toAsk(urls, session.completedElicitations) : urls
    if (toAsk.length === 0) throw new StillRequired(urls)
    return this.#parts.parked.afterElicitation(session, call, toAsk, elicitation?.accepted)
  }

  /** Reads the answers to calls that are not tasks. */
  readonly #decode: Decode = (call, response, exchange, session) => {
    const { kind, payload: page } = response.outcome
    const asking = kind === 'error' ? this.#parkIfRequired(call, response, session) : undefined
    if (asking) return asking
    const lists = call.method === 'tools/list'
    const liftList = lists ? session.options.liftList : undefined
    const reply = decodeReply(call, response, session.handshake.serverInfo, liftList)
    const { received } = call
    // What only the bridge may say is taken off.
    if (received?.era === 'legacy' && !(kind === 'result' && page && hasReserved(call.method, page)))
      reply.received = this.#receivedFor(received.id, call, response, reply, session.handshake.revision)
    if (reply.kind === 'result' && lists && page) session.tools.learn(page, raw(call.params, 'cursor'))
    if (exchange.refusals) throwIfRefused(reply, exchange.refusals)
    if (reply.kind !== 'error' || reply.received) return reply
    // If the method names a tool, prompt or resource, -32601 may be about that instead of the method.
    if (reply.error.code === -32601 && methodTraits(call.method).named === undefined)
      throw new Fault('methodNotFound', reply.error.message)
    return reply
  }

  /** The answer for a legacy client with this id, as the server has sent it: it passes unless policies edit the reply. */
  #receivedFor(id: Id, { method }: Call, response: Response, reply: Final, revision: LegacyRevision): ReceivedReply {
    const { outcome } = response
    const { payload, source } = outcome
    const sound = payload && this.#parts.revision.shared(method, payload)
    const message = responseMessage(id, { ...response, outcome: { ...outcome, payload: sound } })
    return { era: 'legacy', id, message, origin: sound?.edits ? sound : source, revision, reply }
  }

  /** The milliseconds after which a call is repeated that has failed, or how it ends: with the server's own error, or a thrown Fault. */
  #afterFailure(error: unknown, session: LegacySession, call: Call, attempt: number): number | Final {
    const isLost = error instanceof SessionLost
    if (isLost || error instanceof Contradiction) {
      session.discard()
      session.forgotten()
    }
    if (error instanceof Contradiction) throw error
    // Without the risk that the server acts on it twice.
    const isRepeatable = repeatable(call, session.tools, this.#parts.options.retry)
    const isUnacted = isLost && (error.loss === 'unacted' || isRepeatable)
    const delay = isLost ? (isUnacted ? 0 : undefined) : worthRepeating(error, isRepeatable)
    if (delay !== undefined && attempt === 0 && !call.signal.aborted) return delay
    if (isLost && error.answer) return error.answer
    throw callFault(isLost ? error.cause : error)
  }
}

/** The tool's `taskSupport`. Lists the tools if they are not known yet. */
async function taskSupportOf({ tools }: LegacySession, call: Call): Promise<unknown> {
  const name = textUnder(call.params, 'name')
  return (tools.known(name) ?? (await tools.find(name)))?.taskSupport
}

function checkMirrored(tool: ToolFacts | undefined, call: Call): void {
  if (!tool || tool.annotations.length === 0 || !call.paramHeaders) return
  checkParamHeaders(tool.annotations, objectIn(call.params, 'arguments'), call.paramHeaders)
}

function notFound({ method }: Call): Fault {
  return new Fault('methodNotFound', `Method not found: the server does not offer ${printable(method, ECHOED)}`)
}
