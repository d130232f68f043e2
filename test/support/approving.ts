/** People who approve calls, at the clients of the matrix and in browsers. */
import type { Json, Question } from '../matrix/client.js'
import { Browser } from './browser.js'

export const TOKENS = { ada: 'token-of-ada-0123456789', bob: 'token-of-bob-0123456789' }
export type Person = keyof typeof TOKENS
export const as = (who: Person) => ({ authorization: `Bearer ${TOKENS[who]}` })

/** A browser of somebody who has entered the own token. */
export async function browserOf(who: Person, origin: string): Promise<Browser> {
  const browser = new Browser()
  await browser.press(await browser.go(`${origin}/sign-in`), 'Sign in', { token: TOKENS[who] })
  return browser
}

export const RUN: Json = { action: 'accept', content: { answer: 'Run' } }

export const messageOf = ({ params }: Question) => String(params['message'])
export const isApproval = (question: Question) => messageOf(question).includes('Run the tool')

/** A client whose person answers so when a call is to be approved, and otherwise gives a name. */
export function person(said: () => Json | undefined) {
  return {
    capabilities: { elicitation: { form: {}, url: {} } },
    answers: (question: Question): Json | undefined =>
      isApproval(question) ? said() : { action: 'accept', content: { name: 'Zoë' } },
  }
}

export const toolResult = (message: Json) => message['result'] as Json & { content: { text: string }[]; _meta?: Json }
