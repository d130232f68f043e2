/** Has a person decide at the bridge's own page, where the person proves who they are: not the client brings the answer. */

import { Fault } from '../../../base/fault/fault.js'
import { EMPTY, edit, type Json, objectIn, parseObject } from '../../../base/rpc/splice.js'
import { pause } from '../../../base/time/pause.js'
import type { Call, Final } from '../../../mcp/protocol/call.js'
import { stringIn } from '../unambiguous.js'
import type { PageChoice, PageQuestion, PageQuestions } from './page-questions.js'
import type { Approved, Passes } from './passes.js'
import { canAsk, QUESTION, urlOf } from './question.js'

export interface ApprovalPage {
  questions: PageQuestions
  /** The address of a question; undefined if the page is not served. */
  addressOf(name: string): string | undefined
}

/** What becomes of a call: a choice, an answer to the client, or why there is neither. */
export type AtPage =
  | { chosen: PageChoice }
  | Exclude<Said, 'accepted'>
  | 'expired'
  | 'used'
  | { isNew: boolean; final: Final }
  | { isNew: boolean; address: string }

/** Milliseconds that a call waits for the person before its client has to come again, and between two looks. */
const WAITS = 8_000
const LOOKS = 250

/** What the client has said to the address, when it comes again. */
type Said = 'accepted' | 'refused' | 'cancelled'

/** Asks at the page, or looks what the person has chosen there. `pass`: the client comes again, and whether that is too late. */
export async function decideAtPage(
  { questions, addressOf }: ApprovalPage,
  {
    passes,
    call,
    approved,
    pass,
    question,
  }: {
    passes: Passes
    call: Call
    approved: Approved
    pass: { isOver: boolean } | undefined
    question: PageQuestion
  },
): Promise<AtPage> {
  const { principal } = approved
  const name = passes.nameAtPage(approved)
  const address = addressOf(name)
  if (address === undefined) throw new Fault('internal', 'The page where people approve calls is not served')
  const said = pass ? saidIn(call.answers?.responses) : undefined
  if (said === 'refused' || said === 'cancelled') {
    await questions.drop(name, principal)
    return said
  }
  const chosen = said ? await waited(questions, name, call) : await questions.take(name, principal)
  if (chosen !== undefined && chosen !== 'open') return { chosen }
  if (pass && chosen === undefined) return pass.isOver ? 'expired' : 'used'
  const requestState = passes.mark(approved, question.until)
  // It comes again in a while (MCP 2026-07-28, basic/patterns/mrtr).
  if (said) return { isNew: false, final: { kind: 'input', result: edit(EMPTY, { requestState }) } }
  const isNew = chosen === undefined && (await questions.ask(name, principal, question))
  if (!canAsk(call, 'url')) return { isNew, address }
  const inputRequests = urlOf(question, address)
  return { isNew, final: { kind: 'input', result: edit(EMPTY, { inputRequests, requestState }) } }
}

/** Waits a while for the choice. */
async function waited(
  questions: PageQuestions,
  name: string,
  { principal, signal }: Call,
): ReturnType<PageQuestions['take']> {
  for (let left = WAITS; ; left -= LOOKS) {
    const chosen = await questions.take(name, principal)
    if (chosen !== 'open' || left <= 0) return chosen
    await pause(LOOKS, signal)
    signal.throwIfAborted()
  }
}

/** What the client has said. Without an answer to this question, it has said it before. */
function saidIn(responses: Json | undefined): Said {
  const answer = objectIn(parseObject(responses ?? '{}'), QUESTION)
  const action = answer && stringIn(answer, 'action')
  if (!answer || action === 'accept') return 'accepted'
  return action === 'decline' ? 'refused' : 'cancelled'
}
