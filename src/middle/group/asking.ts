/**
 * Sends requests to the servers of a group, and waits for each only up to a time limit. After a server has exceeded it,
 * callers wait less or not at all until the server answers. Late answers are not lost.
 */

import { Fault } from '../../base/fault/fault.js'
import { MAX_MEMBER_CURSOR } from '../../base/limits/constants.js'
import { EMPTY, edit, type Json, NO_PARAMS, type Payload, raw } from '../../base/rpc/splice.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'
import { within } from '../../base/time/time.js'
import { type Call, type Final, ignoreNotifications } from '../../mcp/protocol/call.js'
import { nextCursor } from '../../mcp/protocol/listed.js'
import { whoOf } from '../policy/who.js'
import { GROUP_LISTS, groupList, hasList } from './list-page.js'
import type { Member } from './member.js'
import type { Missing } from './missing.js'
import { type PartsEnd, partLog } from './part-log.js'

/** The answer of a server, or why there is none in time. */
export type Asked = { kind: 'answer'; reply: Final & { kind: 'result' } } | { kind: 'none' } | Missing

/** A server, and where in its list to begin: at the start without a cursor. */
export interface ListStart {
  member: Member
  cursor?: Json | undefined
}

/** One request to one server. */
export interface MemberQuestion {
  member: Member
  call: Call
  /** The caller, as of `whoOf`. */
  who: string
}

export interface AskingOptions {
  /** Milliseconds to wait for a server in total, once it has been late for a caller. */
  patience(): number
  /** Called with the answer of each server. */
  heard(question: MemberQuestion, asked: Asked): void
  /** Called with each answer that comes after its caller has stopped waiting. */
  came(question: MemberQuestion, asked: Asked): void
}

/** Most calls that continue after their callers have stopped waiting. Further ones are cancelled. */
const MAX_LATE = 1_000

interface Running {
  answer: Promise<Asked>
  since: number
  hangUp: HangUp
}

export class Asking {
  readonly #late = new Map<string, Running>()
  /** When waiting for a late server began, by caller and server. */
  readonly #since = new Map<string, number>()
  readonly #options: AskingOptions

  constructor(options: AskingOptions) {
    this.#options = options
  }

  /**
   * Sends a call to several servers, or joins equal calls in progress, and waits for each at most `most` milliseconds, by
   * default as long as its patience.
   * Resolves to the answers in the same order. Rejects only if the call is cancelled.
   */
  async ask(
    call: Call,
    places: readonly ListStart[],
    { most = Number.POSITIVE_INFINITY }: { most?: number } = {},
  ): Promise<{ question: MemberQuestion; asked: Asked }[]> {
    if (call.signal.aborted) throw call.signal.reason
    if (places.length === 0) return []
    const who = whoOf(call)
    const { log, over } = partLog(call.log)
    const questions = places.map(({ member, cursor }) => {
      return { member, who, call: { ...call, params: edit(call.params, { cursor }), log } }
    })
    let how: PartsEnd = 'cancelled'
    try {
      const wait = Math.min(this.#options.patience(), most)
      const answers = await Promise.all(questions.map((question) => this.#answer(question, wait, call.signal)))
      how = answers.some(({ asked }) => asked.kind !== 'missing' || asked.isLate) ? 'answered' : 'failed'
      for (const { question, asked } of answers) this.#options.heard(question, asked)
      return answers
    } finally {
      over(how)
    }
  }

  /** Sends a request, or joins an equal one in progress, and waits for the answer. */
  async #answer(
    question: MemberQuestion,
    wait: number,
    signal: Signal,
  ): Promise<{ question: MemberQuestion; asked: Asked }> {
    const { member, call } = question
    // Usually no server is late.
    const known = this.#late.size === 0 ? undefined : this.#late.get(idOf(question))
    const since = this.#since.size === 0 ? undefined : this.#since.get(keyOf(question))
    const left = since === undefined ? wait : Math.max(0, since + wait - performance.now())
    const running = known ?? begin(member, call)
    try {
      const answer = await within(running.answer, left, undefined, signal)
      if (answer) return { question, asked: answer }
    } catch (error) {
      if (!known) running.hangUp.abort(signal.reason)
      throw error
    }
    if (!known) this.#continueCall(question, running)
    return {
      question,
      asked: missing(new Fault('upstreamTimeout', `${member.server} has not answered yet`), true),
    }
  }

  /** Cancels everything in progress. */
  close(): void {
    for (const { hangUp } of [...this.#late.values()]) hangUp.abort()
  }

  #continueCall(question: MemberQuestion, running: Running): void {
    if (this.#late.size >= MAX_LATE) return running.hangUp.abort()
    const key = keyOf(question)
    const id = idOf(question)
    this.#late.set(id, running)
    if (!this.#since.has(key)) this.#since.set(key, running.since)
    running.answer.then(
      (asked) => {
        this.#late.delete(id)
        // The server answers again, or fails fast.
        this.#since.delete(key)
        this.#options.heard(question, asked)
        this.#options.came(question, asked)
      },
      () => {
        this.#late.delete(id)
        this.#since.delete(key)
      },
    )
  }
}

function keyOf({ member, who }: MemberQuestion): string {
  return `${who} ${member.server}`
}

function idOf(question: MemberQuestion): string {
  const { method, params } = question.call
  return `${keyOf(question)} ${method} ${raw(params, 'cursor') ?? ''}`
}

/** Sends the call to the server. The promise never rejects. */
function begin(member: Member, call: Call): Running {
  const hangUp = new HangUp()
  const abort = (reason?: unknown) => hangUp.abort(reason)
  const asked: Call = {
    ...call,
    progress: false,
    patient: () => true,
    notify: ignoreNotifications,
    signal: hangUp,
    abort,
  }
  const answer = member.upstream.handle(asked).then(
    (reply) => askedOf(reply, asked, member),
    (error: unknown) => ofFault(hangUp.aborted && hangUp.reason instanceof Fault ? hangUp.reason : Fault.from(error)),
  )
  return { answer, since: performance.now(), hangUp }
}

function askedOf(reply: Final, { method }: Call, { server }: Member): Asked {
  if (reply.kind === 'result' && reply.type === undefined) {
    const wrong = GROUP_LISTS.has(method) ? wrongIn(method, reply.result) : undefined
    if (wrong === undefined) return { kind: 'answer', reply }
    return missing(new Fault('upstreamProtocol', `${server} answered ${method} with ${wrong}`), false)
  }
  if (reply.kind !== 'error')
    return missing(new Fault('upstreamProtocol', 'The server did not answer with a result'), false)
  return ofError(reply.error.code, () => new Fault('upstreamProtocol', reply.error.message))
}

/** What is wrong with a page as a whole, in words. */
function wrongIn(method: string, result: Payload): string | undefined {
  if (!hasList(method, result)) return `${groupList(method).key} that are no list`
  const length = nextCursor(result)?.length ?? 0
  return length > MAX_MEMBER_CURSOR ? `a cursor of ${length} characters: the most is ${MAX_MEMBER_CURSOR}` : undefined
}

function ofFault(fault: Fault): Asked {
  return ofError(fault.row.code, () => fault)
}

/** An error as an answer. A server that does not know the method has no items. */
function ofError(code: number, why: () => Fault): Asked {
  return code === -32601 ? { kind: 'none' } : missing(why(), false)
}

function missing(why: Fault, isLate: boolean): Missing {
  return { kind: 'missing', why, isLate }
}

const NO_HEADERS: ReadonlyMap<string, string> = new Map()

/** A call of the same caller without the content of the original call, which is meant for one server. */
export function unaddressed(call: Call, method: string): Call {
  const { paramHeaders } = call
  const headers = paramHeaders && { paramHeaders: NO_HEADERS }
  return { ...call, method, params: NO_PARAMS, answers: undefined, meta: EMPTY, ...headers }
}
