/**
 * One call of a legacy client at a modern server: repeats the call with the client's answers until the server has a
 * result.
 */

import { ECHOED, printable } from '../../printable.js'
import type { Answers, Call, Caller, Handler, Reply } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import type { Loan } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import { knowsTasks, withTasks } from '../../protocol/tasks.js'
import type { Wire } from '../../rpc/source.js'
import { EMPTY, edit, type Json, type Payload, parseObject } from '../../rpc/splice.js'
import { type Questions, Unanswered } from './questions.js'
import { Rounds } from './rounds.js'
import { drive, wantsTasks } from './task-driver.js'

/** What a call yields before its answer: a notification, or a request to send to the client. */
export type CallStep = { kind: 'notification'; reply: Notice } | { kind: 'question'; text: Wire }
/** How a call ends. Legacy clients cannot get an input request or a task of the modern era as the answer. */
export type Outcome = Extract<Reply, { kind: 'result' | 'error' }>

type Notice = Extract<Reply, { kind: 'notification' }>
type Final = Exclude<Reply, Notice>

/** What a call needs from its session. */
export interface CallContext {
  handle: Handler
  questions: Questions
  /** The caller as of now: its log level may change while the client is asked. */
  caller(): Caller
  /** Milliseconds for which a server may ask to be called again without asking anything else. */
  answerWithin: number
  /** Begins a loan for the client's answers. */
  borrow(): Loan
  /** `_meta` of the requests to the client. */
  about?: Json | undefined
}

/** Makes a call and asks the client what the server requests. Throws a Fault. */
export async function* runCall(call: Call, context: CallContext): AsyncGenerator<CallStep, Outcome> {
  const loan = context.borrow()
  try {
    return yield* untilAnswered(call, { ...context, loan })
  } catch (error) {
    if (!(error instanceof Unanswered) || call.signal.aborted) throw error
    return outcomeOf(call.method, error)
  } finally {
    loan.end()
  }
}

/** The context of a running call, with the loan for the client's answers. */
interface Running extends CallContext {
  loan: Loan
}

async function* untilAnswered(call: Call, context: Running): AsyncGenerator<CallStep, Outcome> {
  const rounds = new Rounds(context.answerWithin)
  let { capabilities } = call.caller
  for (let answers: Answers | undefined; ; ) {
    const attempt: Call = { ...call, answers, caller: { ...context.caller(), capabilities } }
    const reply = yield* callOnce(attempt, context)
    if (wantsTasks(reply) && !knowsTasks(capabilities)) {
      capabilities = withTasks(capabilities)
    } else if (reply.kind === 'result' && reply.type === 'task' && knowsTasks(capabilities)) {
      return yield* waitForTask(attempt, reply.result, context)
    } else if (reply.kind === 'input') {
      if (!methodTraits(call.method).asks)
        throw new Fault(
          'upstreamProtocol',
          `The server requested input during ${printable(call.method, ECHOED)}, which does not allow it`,
        )
      await rounds.next(reply.result, call.signal)
      answers = yield* askClient(reply.result, call.signal, context)
    } else {
      return reply
    }
  }
}

async function* callOnce(call: Call, { handle }: CallContext): AsyncGenerator<CallStep, Final> {
  for await (const reply of handle(call)) {
    if (reply.kind !== 'notification') return reply
    yield { kind: 'notification', reply }
  }
  throw new Fault('internalUnknown', 'The call ended without an answer')
}

/** Waits for a task as if it were the call. Its status messages become progress. */
async function* waitForTask(call: Call, created: Payload, context: Running): AsyncGenerator<CallStep, Outcome> {
  const steps = drive(context.handle, call, created)
  try {
    return yield* followTask(steps, call, context)
  } finally {
    // Cancels the task unless it has ended.
    await steps.return()
  }
}

async function* followTask(
  steps: ReturnType<typeof drive>,
  call: Call,
  context: Running,
): AsyncGenerator<CallStep, Outcome> {
  let progress = 0
  for (let next = await steps.next(); !next.done; ) {
    const step = next.value
    if (step.kind === 'ends') {
      if (step.reply.kind === 'result' || step.reply.kind === 'error') return step.reply
      throw new Fault('upstreamProtocol', 'The server requested input in its answer to tasks/get')
    }
    if (step.kind === 'asks') {
      next = await steps.next(yield* askClient(step.input, call.signal, context))
      continue
    }
    const params = edit(EMPTY, { progress: String(++progress), message: step.message })
    if (call.progress)
      yield { kind: 'notification', reply: { kind: 'notification', method: 'notifications/progress', params } }
    next = await steps.next()
  }
  throw new Fault('internalUnknown', 'The task ended without an answer')
}

/** Yields the requests to the client. Returns its answers. */
async function* askClient(
  input: Payload,
  signal: AbortSignal,
  { questions, about, loan }: Running,
): AsyncGenerator<CallStep, Answers> {
  const asking = questions.ask(input, { signal, about, loan })
  let next: IteratorResult<Wire, Answers> | undefined
  try {
    next = await asking.next()
    for (; !next.done; next = await asking.next()) yield { kind: 'question', text: next.value }
    return next.value
  } finally {
    // The reader may stop at any yield: then the client's answers are no longer needed.
    if (!next?.done) await asking.return(undefined as never)
  }
}

/** How a call ends if the client did not answer: a tool call as a failed tool, any other call as an error. */
function outcomeOf(method: string, { code, message }: Unanswered): Outcome {
  if (method === 'tools/call') {
    const text = `{"content":[{"type":"text","text":${JSON.stringify(message)}}],"isError":true}`
    return { kind: 'result', result: parseObject(text) }
  }
  const reserved = code <= -32000 && code >= -32099
  return { kind: 'error', error: { code: reserved ? -32603 : code, message } }
}
