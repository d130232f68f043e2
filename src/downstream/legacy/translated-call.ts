/**
 * Makes one call of a legacy client to a modern server: repeats it with the client's answers until the server has a result.
 */

import { Fault } from '../../fault/fault.js'
import type { Reservation } from '../../limits/memory.js'
import type { Answers, Call, Caller, Final, Handler } from '../../protocol/call.js'
import { CALL_TOOL, methodTraits } from '../../protocol/methods.js'
import { knowsTasks, withTasks } from '../../protocol/tasks.js'
import type { Wire } from '../../rpc/source.js'
import { edit, type Json, OWN, type Payload, parseObject } from '../../rpc/splice.js'
import { ECHOED, printable } from '../../texts/printable.js'
import type { Signal } from '../../time/hang-up.js'
import type { CallLogEntry } from '../call-log.js'
import { type Questions, Unanswered } from './questions.js'
import { Rounds } from './rounds.js'
import { drive, wantsTasks } from './task-driver.js'

/** The end of a call. Legacy clients cannot get an input request or a task of the modern era as the answer. */
export type TranslatedOutcome = Extract<Final, { kind: 'result' | 'error' }>

/** What a session gives to its calls. */
export interface CallContext {
  handle: Handler
  questions: Questions
  /** Sends a request to the client. Applies backpressure like a `Tell`. */
  send(text: Wire): Promise<void> | undefined
  /** The current caller: its log level may change while the client is asked. */
  caller(): Caller
  /** Milliseconds for which a server may postpone its answer without requesting input. */
  answerWithin: number
  /** Begins a reservation for the client's answers. */
  reserve(): Reservation
  /** `_meta` of the requests to the client. */
  about?: Json | undefined
  /** Records the messages between the call and its client, for the inspector. */
  record: Pick<CallLogEntry, 'recorder'>
}

/**
 * Continues a call after a first reply that does not end it: asks the client for the requested input and repeats the call,
 * or waits for the server's task. Rejects with a Fault.
 */
export async function goOn(call: Call, first: Final, context: CallContext): Promise<TranslatedOutcome> {
  const reservation = context.reserve()
  try {
    return await untilAnswered(call, first, { ...context, reservation })
  } catch (error) {
    if (!(error instanceof Unanswered) || call.signal.aborted) throw error
    return outcomeOf(call.method, error)
  } finally {
    reservation.end()
  }
}

/** The context of a running call, with the reservation for the client's answers. */
interface Running extends CallContext {
  reservation: Reservation
}

async function untilAnswered(call: Call, first: Final, context: Running): Promise<TranslatedOutcome> {
  const rounds = new Rounds(context.answerWithin)
  let { capabilities } = call.caller
  let answers: Answers | undefined
  let attempt = call
  for (let reply = first; ; reply = await context.handle(attempt)) {
    if (wantsTasks(reply) && !knowsTasks(capabilities)) {
      capabilities = withTasks(capabilities)
    } else if (reply.kind === 'result' && reply.type === 'task' && knowsTasks(capabilities)) {
      return waitForTask(attempt, reply.result, context)
    } else if (reply.kind === 'input') {
      if (!methodTraits(call.method).asks)
        throw new Fault(
          'upstreamProtocol',
          `The server requested input during ${printable(call.method, ECHOED)}, which does not allow it`,
        )
      await rounds.next(reply.result, call.signal)
      answers = await askClient(reply.result, call.signal, context)
    } else {
      return reply
    }
    attempt = { ...call, answers, caller: { ...context.caller(), capabilities } }
  }
}

/** Waits for a task in place of the call. Its status messages become progress. */
async function waitForTask(call: Call, created: Payload, context: Running): Promise<TranslatedOutcome> {
  let progress = 0
  const last = await drive(context.handle, call, created, {
    ask: (input) => askClient(input, call.signal, context),
    say: (message) => {
      const params = edit(OWN, { progress: String(++progress), message })
      return call.progress ? call.tell({ kind: 'notification', method: 'notifications/progress', params }) : undefined
    },
  })
  if (last.kind !== 'input') return last
  throw new Fault('upstreamProtocol', 'The server requested input in its answer to tasks/get')
}

/** Sends the requests to the client. Resolves to its answers. */
function askClient(input: Payload, signal: Signal, context: Running): Promise<Answers> {
  const { questions, send, about, reservation, record } = context
  return questions.ask(input, { signal, send, about, reservation, record })
}

/** The end of a call whose client did not answer: a failed tool for a tool call, an error for other calls. */
function outcomeOf(method: string, { code, message }: Unanswered): TranslatedOutcome {
  if (method === CALL_TOOL) {
    const text = `{"content":[{"type":"text","text":${JSON.stringify(message)}}],"isError":true}`
    return { kind: 'result', result: parseObject(text) }
  }
  const reserved = code <= -32000 && code >= -32099
  return { kind: 'error', error: { code: reserved ? -32603 : code, message } }
}
