/** One call of a legacy client with a modern server: as many requests as the server needs, with what the client is asked between. */

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

/** What happens on the way to the answer. */
export type CallStep = { kind: 'notification'; reply: Notice } | { kind: 'question'; text: Wire }
/** How a call ends: no legacy client can be left with a question, or with a task. */
export type Outcome = Extract<Reply, { kind: 'result' | 'error' }>

type Notice = Extract<Reply, { kind: 'notification' }>
type Final = Exclude<Reply, Notice>

export interface CallContext {
  handle: Handler
  questions: Questions
  /** Who calls, as it is now: the level of log messages may be set anew while the client is asked. */
  caller(): Caller
  /** Milliseconds that a server may have itself called again without asking anything. */
  answerWithin: number
  /** Begins a loan for what the client answers. */
  borrow(): Loan
  /** What questions say in their `_meta` that they are about. */
  about?: Json | undefined
}

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

/** A call, with what is lent for what its client has answered. */
interface Running extends CallContext {
  loan: Loan
}

async function* untilAnswered(call: Call, context: Running): AsyncGenerator<CallStep, Outcome> {
  const rounds = new Rounds(context.answerWithin)
  let { capabilities } = call.caller
  for (let answers: Answers | undefined; ; ) {
    const leg: Call = { ...call, answers, caller: { ...context.caller(), capabilities } }
    const reply = yield* oneLeg(leg, context)
    if (wantsTasks(reply) && !knowsTasks(capabilities)) {
      capabilities = withTasks(capabilities)
    } else if (reply.kind === 'result' && reply.type === 'task' && knowsTasks(capabilities)) {
      return yield* waitedFor(leg, reply.result, context)
    } else if (reply.kind === 'input') {
      if (!methodTraits(call.method).asks)
        throw new Fault(
          'upstreamProtocol',
          `The server asks something in the middle of ${printable(call.method, ECHOED)}`,
        )
      await rounds.next(reply.result, call.signal)
      answers = yield* asked(reply.result, call.signal, context)
    } else {
      return reply
    }
  }
}

async function* oneLeg(leg: Call, { handle }: CallContext): AsyncGenerator<CallStep, Final> {
  for await (const reply of handle(leg)) {
    if (reply.kind !== 'notification') return reply
    yield { kind: 'notification', reply }
  }
  throw new Fault('internalUnknown', 'The call ended without an answer')
}

/** Waits for a task as if it were the call. What it says of itself is progress. */
async function* waitedFor(call: Call, created: Payload, context: Running): AsyncGenerator<CallStep, Outcome> {
  const steps = drive(context.handle, call, created)
  try {
    return yield* followed(steps, call, context)
  } finally {
    // Whoever does not come to the end gives the task up.
    await steps.return()
  }
}

async function* followed(
  steps: ReturnType<typeof drive>,
  call: Call,
  context: Running,
): AsyncGenerator<CallStep, Outcome> {
  let said = 0
  for (let next = await steps.next(); !next.done; ) {
    const step = next.value
    if (step.kind === 'ends') {
      if (step.reply.kind === 'result' || step.reply.kind === 'error') return step.reply
      throw new Fault('upstreamProtocol', 'The server asks something where it has to say how a task stands')
    }
    if (step.kind === 'asks') {
      next = await steps.next(yield* asked(step.input, call.signal, context))
      continue
    }
    const params = edit(EMPTY, { progress: String(++said), message: step.message })
    if (call.progress)
      yield { kind: 'notification', reply: { kind: 'notification', method: 'notifications/progress', params } }
    next = await steps.next()
  }
  throw new Fault('internalUnknown', 'The task ended without an answer')
}

/** Asks the client. */
async function* asked(
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
    // The reader may stop at any yield: then nobody waits for the client's answers any more.
    if (!next?.done) await asking.return(undefined as never)
  }
}

/** How a call ends whose question nobody has answered: a tool has failed, anything else has not been done. */
function outcomeOf(method: string, { code, message }: Unanswered): Outcome {
  if (method === 'tools/call') {
    const text = `{"content":[{"type":"text","text":${JSON.stringify(message)}}],"isError":true}`
    return { kind: 'result', result: parseObject(text) }
  }
  const reserved = code <= -32000 && code >= -32099
  return { kind: 'error', error: { code: reserved ? -32603 : code, message } }
}
