/** Sends one request over Streamable HTTP without a channel, for example in the session of a relayed client. */
import type { Account } from '../../protocol/account.js'
import { type Id, parseMessage, type Response, request as requestMessage, type Sent } from '../../rpc/message.js'
import { sourceOf } from '../../rpc/source.js'
import { mediaType } from '../../texts/headers.js'
import { Deadline } from '../../time/time.js'
import { type BodyKind, bodyKindOf, type ResponseHeaders, refused, textIn } from './answers.js'
import { ChannelError } from './channel.js'
import type { HttpRequest, Origin } from './origin.js'

interface Asking extends Pick<HttpRequest, 'path' | 'principal' | 'headers' | 'cookies'> {
  params?: Sent
  account?: Account | undefined
}

/** Sends a request and waits for its answer. Rejects with a ChannelError, or with a Fault if the account has no credential. */
export async function askOnce(
  origin: Origin,
  method: string,
  { params, account, ...to }: Asking,
  timeout: number,
): Promise<Response> {
  const id = JSON.stringify(crypto.randomUUID()) as Id
  let answer: Response | undefined
  let abort = () => {}
  const take = (body: readonly Uint8Array[]) => {
    const message = parsed(Buffer.concat(body).toString())
    if (message?.id === id || message?.id === undefined) answer ??= message
  }
  const late = new Deadline(timeout, () => abort())
  const reader = {
    onStart: (end: () => void) => {
      abort = end
    },
    onHead: (status: number, answerHeaders: ResponseHeaders): BodyKind =>
      status >= 300
        ? 'whole'
        : (bodyKindOf(answerHeaders) ?? (mediaType(answerHeaders).startsWith('text/') ? 'beginning' : 'nothing')),
    onEvent: ({ data }: { data: readonly Uint8Array[] }) => {
      take(data)
      if (answer) abort()
    },
  }
  try {
    const asked = await origin.askOrigin(
      { method: 'POST', ...to, body: requestMessage(id, method, params) },
      reader,
      account,
    )
    if (asked.status >= 300) throw refused(asked)
    if (asked.kind === 'whole') take(asked.body)
    if (!answer && asked.kind !== 'events')
      throw new ChannelError('The body of the answer is not a JSON-RPC response to the request', {
        protocol: true,
        said: textIn(asked),
      })
  } catch (error) {
    // A stream that has brought the answer has been aborted.
    if (!answer) throw error
  } finally {
    late.clear()
  }
  if (!answer) throw new ChannelError(`No answer to ${method} in ${timeout} ms`)
  return answer
}

function parsed(text: string): Response | undefined {
  try {
    const message = parseMessage(sourceOf(text))
    return message.kind === 'response' ? message : undefined
  } catch {
    return undefined
  }
}
