/** The error message that the client of a failed call received. */
import type { CallView } from './call-views.js'
import { isMessage } from './recorder/events.js'
import { textAt } from './values.js'

/** Path of the message in the answer, by the outcome of the call. */
const PLACES: Readonly<Partial<Record<CallView['status'], string>>> = {
  error: '/error/message',
  fault: '/error/message',
  tool_error: '/result/content/0/text',
}

/** The message of the error or of the failed tool, if the text of the answer is stored. */
export function errorMessage({ status, events }: Pick<CallView, 'status' | 'events'>): string | undefined {
  const at = PLACES[status]
  const answer = events.findLast((seen) => isMessage(seen, 'client', 'out'))
  return at === undefined || !answer?.payload ? undefined : textAt(answer.payload.text, at)
}
