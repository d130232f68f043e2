/**
 * Makes one call of a legacy client to a modern server: repeats it with the client's answers until the server has a result.
 */

import { Fault } from '../../base/fault/fault.js'
import { SMALL } from '../../base/limits/memory.js'
import { edit, NO_ORIGIN, type Payload, parseObject } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { Answers, Call, Caller, Final } from '../../mcp/protocol/call.js'
import { Unanswered } from '../../mcp/protocol/input.js'
import { CALL_TOOL, methodTraits } from '../../mcp/protocol/methods.js'
import { knowsTasks, withTasks } from '../../mcp/protocol/tasks.js'
import type { ClientAsking, Questions } from './questions.js'
import { Rounds } from './rounds.js'
import type { OpenOptions } from './session.js'
import { drive, wantsTasks } from './task-driver.js'

/** The end of a call. Legacy clients cannot get an input request or a task of the modern era as the answer. */
export type TranslatedOutcome = Extract<Final, { kind: 'result' | 'error' }>

/** What a session gives to its calls. */
export interface CallContext
  extends Pick<OpenOptions, 'upstream' | 'memory' | 'settings'>,
    Omit<ClientAsking, 'reservation'> {
  questions: Pick<Questions, 'ask'>
  /** The current caller: its log level may change while the client is asked. */
  caller(): Caller
}

/** The context of a running call. */
type Running = CallContext & ClientAsking

/**
 * Continues a call after a first reply that does not end it: asks the client for the requested input and repeats the call,
 * or waits for the server's task. Rejects with a Fault.
 */
export async function continueCall(call: Call, first: Final, context: CallContext): Promise<TranslatedOutcome> {
  const reservation = context.memory.reserve(call.principal, SMALL)
  // While the client is asked, and between two requests, nothing of the call is at the server: only this ends it at shutdown.
  const leave = context.settings.begin(call.abort)
  try {
    return await untilAnswered(call, first, { ...context, reservation })
  } catch (error) {
    if (!(error instanceof Unanswered) || call.signal.aborted) throw error
    return outcomeOf(call.method, error)
  } finally {
    leave()
    reservation.end()
  }
}

async function untilAnswered(call: Call, first: Final, context: Running): Promise<TranslatedOutcome> {
  const rounds = new Rounds(context.settings.answerWithin)
  let { capabilities } = call.caller
  let answers: Answers | undefined
  let attempt = call
  for (let reply = first; ; reply = await context.upstream.handle(attempt)) {
    // It passes, whatever it says.
    if (reply.received) return reply as TranslatedOutcome
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
      answers = await context.questions.ask(reply.result, call.signal, { ...context, needless: reply.over })
    } else {
      return reply
    }
    attempt = { ...call, answers, continues: true, caller: { ...context.caller(), capabilities } }
  }
}

/** Waits for a task in place of the call. Its status messages become progress. */
async function waitForTask(call: Call, created: Payload, context: Running): Promise<TranslatedOutcome> {
  let progress = 0
  const last = await drive(context.upstream.handle, call, created, {
    ask: (input) => context.questions.ask(input, call.signal, context),
    say: (message) => {
      const params = edit(NO_ORIGIN, { progress: String(++progress), message })
      return call.progress ? call.notify({ kind: 'notification', method: 'notifications/progress', params }) : undefined
    },
  })
  if (last.kind !== 'input') return last
  throw new Fault('upstreamProtocol', 'The server requested input in its answer to tasks/get')
}

/**
 * The end of a call whose client did not answer, which the modern era cannot report to the server: a failed tool for a tool
 * call, an error for other calls.
 */
function outcomeOf(method: string, { code, message }: Unanswered): TranslatedOutcome {
  if (method === CALL_TOOL) {
    const text = `{"content":[{"type":"text","text":${JSON.stringify(message)}}],"isError":true}`
    return { kind: 'result', result: parseObject(text) }
  }
  const reserved = code <= -32000 && code >= -32099
  return { kind: 'error', error: { code: reserved ? -32603 : code, message } }
}
