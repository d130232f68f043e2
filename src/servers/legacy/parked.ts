/**
 * Parked calls: calls that wait for answers of their modern clients, and how long they may (MCP 2026-07-28,
 * basic/patterns/mrtr). The client is asked by a result and answers by calling again. Meanwhile the request stays open
 * at the legacy server, and the client keeps a sealed state that identifies it.
 */

import { digest } from '../../base/crypto/digest.js'
import { randomId } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import { Bound } from '../../base/limits/bound.js'
import { BoundedMap } from '../../base/limits/bounded.js'
import { MAX_ROUNDS } from '../../base/limits/constants.js'
import type { Reservation } from '../../base/limits/memory.js'
import { canonical } from '../../base/rpc/canonical.js'
import { EMPTY, edit, keys, type Payload, parseObject, sizeOf } from '../../base/rpc/splice.js'
import { Deadline } from '../../base/time/time.js'
import type { Call, Final } from '../../mcp/protocol/call.js'
import { CALL_TOOL } from '../../mcp/protocol/methods.js'
import { callFault, cancelReason } from '../failure.js'
import type { ServerOptions } from '../options.js'
import { weightOfWaiting } from '../waiting-call.js'
import { type AskedCall, noRoom, validAnswers } from './asked-call.js'
import { PROGRESS_EVERY } from './question.js'
import { keyed, type RequiredUrl, UrlElicitation, urlAnswers, urlRequests } from './required-urls.js'
import { invalid, type RetryState, RetryStates } from './retry-state.js'
import type { LegacySession } from './session.js'

type ParkedOptions = Pick<ServerOptions, 'name' | 'parked' | 'share' | 'memory' | 'observe' | 'replicas'>

/** The reply to a round, stored for a client that repeats its request. */
interface Answered {
  round: number
  responses: string
  reply: Final
  at: number
  reservation: Reservation
}

/** What is parked: an open call, or a call to repeat after the client has accepted to open these URLs. */
type Waiting = { kind: 'call'; running: AskedCall } | WaitingForUrls

interface WaitingForUrls {
  kind: 'urls'
  session: LegacySession
  /** By their keys in `inputRequests`. */
  open: Map<string, RequiredUrl>
  accepted: readonly RequiredUrl[]
}

class Parked {
  readonly id = randomId()
  /** The number of the call for the inspector. */
  readonly call: number | undefined
  readonly principal: string
  readonly waiting: Waiting
  round = 0
  /** A retry is in progress. */
  busy = false
  readonly since = performance.now()
  timer: Deadline | undefined
  progressTimer: NodeJS.Timeout | undefined
  last: Answered | undefined
  /** The reservation for the kept parts of the call. */
  readonly reservation: Reservation

  constructor({ log, principal }: Call, waiting: Waiting, reservation: Reservation) {
    this.call = log.recorder?.number
    this.principal = principal
    this.waiting = waiting
    this.reservation = reservation
  }
}

/** Milliseconds for which a reply is stored for a repeated request. */
const REPLAY = 60_000
/** Milliseconds after which a call is cancelled, even if its client has answered every round. */
const AT_MOST = 3_600_000

export class ParkedCalls {
  readonly #options: ParkedOptions
  readonly #states: RetryStates
  readonly #parked = new Map<string, Parked>()
  /** Final replies of ended calls, by their ids, oldest first. */
  readonly #finished: BoundedMap<string, Answered>
  readonly #bound: Bound
  readonly #leave: () => void
  #closed = false

  constructor(options: ParkedOptions) {
    this.#options = options
    this.#states = new RetryStates(options)
    const { max } = options.parked
    this.#bound = new Bound({ max })
    this.#finished = new BoundedMap(max, ({ reservation }) => reservation.end())
    this.change()
    this.#leave = options.memory.addKeeper((bytes, principal) => this.#giveUp(bytes, principal))
  }

  get size(): number {
    return this.#parked.size
  }

  /** Applies the bounds of the options, which may have changed. Calls that are parked keep their time. */
  change(): void {
    const { parked, share = 1 } = this.#options
    Object.assign(this.#bound, { max: parked.max, share })
    this.#finished.max = parked.max
  }

  /** Throws OwnedByReplica if the state of a retry is valid and another replica owns its call. */
  checkOwner(call: Call): void {
    this.#states.checkOwner(call)
  }

  /**
   * Runs a leg of a call: the first one, or another one of a parked call. `said` is the digest of the answers with which
   * it continues.
   */
  async run(running: AskedCall, call: Call, parked?: Parked, said?: string): Promise<Final> {
    const hangUp = () => running.end(cancelReason(call.signal))
    call.signal.addEventListener('abort', hangUp, { once: true })
    let waits = false
    try {
      call.signal.throwIfAborted()
      const mayAsk = () => parked !== undefined || this.#hasRoom(call)
      const end = await running.leg(call, mayAsk)
      if (end.kind !== 'asks') {
        running.end()
        if (parked) this.#finish(parked, said, end)
        return end
      }
      const record = parked ?? this.#add(call, { kind: 'call', running })
      const asking = this.#ask(record, call, running.inputRequests(call.caller.capabilities), running.session)
      waits = true
      this.#remember(record, said, asking)
      return asking
    } catch (error) {
      if (!parked) throw error
      const fault = callFault(error)
      this.#forget(parked)
      throw fault
    } finally {
      call.signal.removeEventListener('abort', hangUp)
      if (!waits && !running.over) {
        running.end()
        if (parked) this.#forget(parked)
      }
    }
  }

  /**
   * Parks a call until the client has accepted to open these URLs; then the call is repeated. `accepted`: URLs that it has
   * accepted before. Returns the result that asks the client.
   */
  afterElicitation(
    session: LegacySession,
    call: Call,
    urls: readonly RequiredUrl[],
    accepted: readonly RequiredUrl[] = [],
  ): Final {
    if (!this.#hasRoom(call)) throw noRoom()
    session.completedElicitations.forget(urls.map(({ id }) => id))
    const open = keyed(urls)
    const requests = urlRequests(open)
    const parked = this.#add(call, { kind: 'urls', session, open, accepted }, requests.length)
    return this.#ask(parked, call, requests, session)
  }

  /**
   * Continues the call that a retry belongs to. Undefined if the call has to start from the beginning: the retry has no
   * state, or the call is lost and is not `tools/call`. A UrlElicitation if the call has to be repeated because the client has
   * accepted all URLs. Throws a Fault for an invalid state, before anything is sent to the server.
   */
  async resume(call: Call): Promise<Final | UrlElicitation | undefined> {
    const { answers } = call
    if (answers?.state === undefined) return undefined
    const state = this.#states.open(answers.state, call)
    const parked = this.#parked.get(state.x)
    const finished = this.#finished.get(state.x)
    if (!parked && !finished) {
      // Calls that are parked in this process have a timer. Only for others does the wall clock decide.
      if (state.exp <= Date.now()) throw invalid('requestState has expired')
      this.#tell('lost', call.log.recorder?.number)
      if (this.#closed) throw new Fault('suspendedCallLost', 'The bridge has shut down, which ended this call')
      if (call.method !== CALL_TOOL) return undefined
      throw invalid('The call of this requestState has ended or was lost: call the tool again')
    }
    if (answers.responses !== undefined && !answers.responses.startsWith('{'))
      throw new Fault('invalidParams', 'inputResponses has to be an object')
    const said = digest(canonical(answers.responses ?? '{}'))
    // For an ended call and for an earlier round, only the last reply can be fetched again.
    if (!parked || state.r !== parked.round) return replayed(finished ?? parked?.last, state, said)
    if (parked.busy) throw invalid('requestState is in use by another request')
    const responses = parseObject(answers.responses ?? '{}')
    if (parked.waiting.kind === 'urls') return this.#accept(parked, parked.waiting, call, responses, said)
    const { running } = parked.waiting
    const given = wellFormedAnswers(running, responses)
    this.#consume(parked)
    for (const [key, answer] of given) running.answer(key, answer)
    return this.run(running, call, parked, said)
  }

  /** Ends all calls, and cancels their requests. */
  close(): void {
    this.#closed = true
    this.#leave()
    for (const id of [...this.#finished.keys()]) this.#forgetAnswer(id)
    for (const parked of [...this.#parked.values()]) {
      if (!parked.busy) this.#tell('lost', parked.call)
      this.#expire(parked)
    }
  }

  /** Begins a round: returns the result that asks, with a new state. Throws a Fault beyond MAX_ROUNDS or AT_MOST. */
  #ask(parked: Parked, call: Call, inputRequests: string, session: LegacySession): Final {
    const { ttl } = this.#options.parked
    const left = AT_MOST - (performance.now() - parked.since)
    if (parked.round >= MAX_ROUNDS || left <= 0) {
      this.#expire(parked)
      const why = left <= 0 ? 'within 1 hour' : `after ${MAX_ROUNDS} rounds of questions`
      throw new Fault('upstreamProtocol', `The server did not answer ${why}`)
    }
    parked.round++
    parked.busy = false
    const lifetime = Math.min(ttl, left)
    parked.timer?.clear()
    const late = () => {
      this.#tell('expired', parked.call)
      this.#expire(parked)
    }
    parked.timer = new Deadline(lifetime, late).unref()
    this.#tell('parked', parked.call, parked.round)
    let progress = 0
    const { waiting } = parked
    if (waiting.kind === 'call')
      parked.progressTimer = setInterval(() => waiting.running.sendProgress(++progress), PROGRESS_EVERY).unref()
    const requestState = this.#states.seal(call, { id: parked.id, round: parked.round, lifetime })
    const result = edit(EMPTY, { inputRequests, requestState })
    const over = waiting.kind === 'call' ? waiting.running.moot : undefined
    return { kind: 'input', result, server: session.handshake.serverInfo, over }
  }

  /**
   * Takes answers about URLs, and asks again about URLs without an answer. If one was declined, returns a failed result,
   * or throws a Fault.
   */
  #accept(
    parked: Parked,
    waiting: WaitingForUrls,
    call: Call,
    responses: Payload,
    said: string,
  ): Final | UrlElicitation {
    const { session, open } = waiting
    const answers = urlAnswers(open, responses)
    this.#consume(parked)
    if ([...answers.values()].includes(false)) {
      this.#forget(parked)
      return declined(call, session)
    }
    waiting.accepted = [...waiting.accepted, ...[...answers.keys()].flatMap((key) => open.get(key) ?? [])]
    for (const key of answers.keys()) open.delete(key)
    if (open.size === 0) {
      this.#forget(parked)
      return new UrlElicitation(waiting.accepted)
    }
    const asking = this.#ask(parked, call, urlRequests(open), session)
    this.#remember(parked, said, asking)
    return asking
  }

  #add(call: Call, waiting: Waiting, bytes = 0): Parked {
    const { principal } = call
    const reservation = this.#options.memory.mustReserve(principal, weightOfWaiting(call) + bytes)
    const parked = new Parked(call, waiting, reservation)
    this.#parked.set(parked.id, parked)
    this.#bound.occupy(principal)
    return parked
  }

  #hasRoom({ principal, log: { recorder } }: Call): boolean {
    const { maxPerPrincipal } = this.#options.parked
    const room = !this.#bound.reached(principal) && this.#bound.heldBy(principal) < maxPerPrincipal
    if (!room) this.#tell('refused', recorder?.number)
    return room
  }

  #tell(what: 'parked' | 'answered' | 'expired' | 'refused' | 'lost', call?: number, round?: number): void {
    this.#options.observe?.({ kind: 'question', server: this.#options.name, what, call, round })
  }

  #consume(parked: Parked): void {
    this.#tell('answered', parked.call, parked.round)
    parked.busy = true
    parked.timer?.clear()
    clearInterval(parked.progressTimer)
  }

  #remember(parked: Parked, said: string | undefined, reply: Final): void {
    if (said === undefined) return
    parked.last?.reservation.end()
    parked.last = this.#answered(parked, { round: parked.round - 1, responses: said, reply })
  }

  /** Stores a reply that the client may not have received, if there is memory for it. */
  #answered({ principal }: Parked, answered: Omit<Answered, 'at' | 'reservation'>): Answered | undefined {
    const { reply } = answered
    const reservation = this.#options.memory.reserve(principal)
    if (reservation.resize(reply.kind === 'error' ? (reply.error.data?.length ?? 0) : sizeOf(reply.result)))
      return undefined
    return { ...answered, at: performance.now(), reservation }
  }

  /** Discards stored replies, oldest first, until `bytes` are free. */
  #giveUp(bytes: number, principal: string | undefined): void {
    let given = 0
    for (const [id, { reservation }] of this.#finished) {
      if (principal !== undefined && reservation.principal !== principal) continue
      given += reservation.bytes
      this.#forgetAnswer(id)
      if (given >= bytes) return
    }
  }

  #forgetAnswer(id: string): void {
    this.#finished.get(id)?.reservation.end()
    this.#finished.delete(id)
  }

  #finish(parked: Parked, said: string | undefined, reply: Final): void {
    this.#forget(parked)
    if (said === undefined) return
    const answered = this.#closed ? undefined : this.#answered(parked, { round: parked.round, responses: said, reply })
    if (!answered) return
    const { id } = parked
    this.#finished.set(id, answered)
    // The timer must not keep the call itself in memory.
    setTimeout(() => this.#forgetAnswer(id), REPLAY).unref()
  }

  #expire(parked: Parked): void {
    this.#forget(parked)
    if (parked.waiting.kind === 'call') parked.waiting.running.end('The client did not answer in time')
  }

  #forget(parked: Parked): void {
    parked.timer?.clear()
    clearInterval(parked.progressTimer)
    if (!this.#parked.delete(parked.id)) return
    parked.reservation.end()
    parked.last?.reservation.end()
    this.#bound.vacate(parked.principal)
  }
}

function declined(call: Call, session: LegacySession): Final {
  if (call.method !== CALL_TOOL)
    throw new Fault('upstreamRefused', 'The server requires URL elicitation first, which was declined', { status: 200 })
  const text = 'The server requires the user to open a URL first, which was declined'
  const result = parseObject(`{"content":[{"type":"text","text":${JSON.stringify(text)}}],"isError":true}`)
  return { kind: 'result', result, server: session.handshake.serverInfo }
}

/** The valid answers to open questions. Throws a Fault if all answers are invalid. */
function wellFormedAnswers(running: AskedCall, responses: Payload): [string, Payload][] {
  const given = validAnswers(running, responses)
  if (given.length === 0 && keys(responses).some((key) => running.questions.has(key)))
    throw new Fault('invalidParams', 'inputResponses contains no valid answer to any request in inputRequests')
  return given
}

/**
 * The reply that the client got before for the same round and the same answers. Throws a Fault if there is none.
 */
function replayed(last: Answered | undefined, { r }: RetryState, said: string): Final {
  if (last && last.round === r && last.responses === said && performance.now() - last.at < REPLAY) return last.reply
  throw invalid('requestState has been used already')
}
