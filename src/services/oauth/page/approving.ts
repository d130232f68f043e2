/** Where a person decides on the page whether a call goes to its server. */

import type { BrowserAnswer } from '../../../mcp/ports/browser.js'
import type { Decisions } from '../../../middle/policy/approval/decisions.js'
import { isChoice, type PageQuestions } from '../../../middle/policy/approval/page-questions.js'
import { shown } from './answer.js'
import { approval, message, type PageContext } from './html.js'
import type { Visitor } from './visitors.js'

/** A question, and who looks at it. */
interface AskedVisitor {
  questions: PageQuestions
  name: string
  visitor: Visitor
  cookie?: string
}

/** Shows the question, if it is for this person and open. */
export async function showQuestion(
  { questions, name, visitor, cookie }: AskedVisitor,
  context: PageContext,
): Promise<BrowserAnswer> {
  const asked = await questions.find(name, visitor.principal)
  if (!asked || asked.chosen !== undefined) return nothing(context, 404, cookie)
  return shown(approval(name, asked, context), context, 200, cookie)
}

/** Takes the choice of the person who has sent the form. */
export async function answerQuestion(
  { questions, name, visitor, decided }: AskedVisitor & { decided: Decisions },
  choice: string | null,
  context: PageContext,
): Promise<BrowserAnswer> {
  const asked = await questions.find(name, visitor.principal)
  const isOffered = asked && isChoice(choice) && (choice !== 'window' || asked.window !== undefined)
  if (!isOffered || !(await questions.choose(name, visitor.principal, choice))) return nothing(context, 400)
  await decided(asked, choice)
  const text = 'You can close this window and go back to your application.'
  return shown(message(choice === 'refused' ? 'It is not run' : 'It is run', text, undefined), context)
}

function nothing(context: PageContext, status: number, cookie?: string): BrowserAnswer {
  const text = 'There is no such question for you: it was answered, it is too old, or it is for somebody else.'
  return shown(message('Nothing to decide', text, undefined), context, status, cookie)
}
