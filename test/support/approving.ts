/** People who approve calls, at the clients of the matrix. */
import type { Json, Question } from '../matrix/client.js'

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
