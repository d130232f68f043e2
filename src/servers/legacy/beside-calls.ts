/** Asks connected clients what a legacy server asks beside their calls, so that no call waits for their answers. */

import { EMPTY, edit, objectIn, parseObject } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import type { AskedClient } from '../../mcp/protocol/call.js'
import { Unanswered } from '../../mcp/protocol/input.js'
import { PROGRESS_EVERY, type ServerQuestion } from './question.js'

/** The name of the only question in `inputRequests`. */
const KEY = 'asked'

/** Asks a client. Its answer goes to the server. Calls `moveOn` if the client has gone. */
export async function askBeside(question: ServerQuestion, client: AskedClient, moveOn: () => void): Promise<void> {
  const over = new HangUp()
  question.onWithdrawn = () => over.abort()
  let progress = 0
  const tell = () => question.sendProgress(++progress)
  const timer = question.progressToken === undefined ? undefined : setInterval(tell, PROGRESS_EVERY).unref()
  try {
    const inputRequests = `{"${KEY}":${question.lifted(parseObject(client.caller.capabilities))}}`
    const { responses } = await client.ask(edit(EMPTY, { inputRequests }), over)
    const answer = objectIn(parseObject(responses ?? '{}'), KEY)
    if (answer) question.answer(answer)
    else question.decline('rebuilt')
  } catch (error) {
    if (over.aborted) return
    if (client.isGone) moveOn()
    else if (error instanceof Unanswered) question.respond({ code: error.code, message: error.message })
    else question.decline()
  } finally {
    clearInterval(timer)
  }
}
