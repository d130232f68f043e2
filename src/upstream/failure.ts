/** What a failure of a channel means to the caller whose call it was. */
import { Fault } from '../protocol/fault.js'
import { type Message, parseMessage, type Response } from '../rpc/message.js'
import { sourceOf } from '../rpc/source.js'
import { payloadAt, value } from '../rpc/splice.js'
import { ChannelError, type Refusal } from './channel.js'

/** A failure before anything of the call was sent: the server could not be reached, or would not open a session. */
export function openingFault(error: unknown, name: string): Fault {
  if (error instanceof Fault) return error
  if (!(error instanceof ChannelError)) return Fault.from(error)
  if (error.refusal) return refusalFault(error, error.refusal)
  return new Fault('upstreamUnavailable', `The server "${name}" is not available: ${error.message}`, { cause: error })
}

/** A failure after the call was handed to the channel. */
export function callFault(error: unknown): Fault {
  if (!(error instanceof ChannelError)) return Fault.from(error)
  if (error.refusal) return refusalFault(error, error.refusal)
  if (error.delivered === 'no') return new Fault('upstreamUnavailable', error.message, { cause: error })
  if (error.protocol) return new Fault('upstreamProtocol', error.message, { cause: error })
  return new Fault('upstreamClosed', `${error.message}; whether it acted on the call is unknown`, { cause: error })
}

function refusalFault(cause: ChannelError, { status, retryAfter }: Refusal): Fault {
  const options = { cause, data: { httpStatus: String(status) }, ...(retryAfter !== undefined && { retryAfter }) }
  switch (status) {
    case 401:
    case 403:
      return new Fault(
        'upstreamAuthRequired',
        `The server wants other credentials than the bridge has (HTTP ${status})`,
        options,
      )
    case 429:
    case 503:
      return new Fault('upstreamBusy', `The server is busy (HTTP ${status})`, { ...options, status })
    case 504:
      return new Fault('upstreamGatewayTimeout', 'The server did not answer its gateway in time (HTTP 504)', options)
    default:
      return new Fault('upstreamRefused', `The server refused the request (HTTP ${status})`, options)
  }
}

/** The JSON-RPC error in the body of a refusal, where there is one. */
export function errorIn({ body }: Refusal): (Response & { code: number; message: string }) | undefined {
  let message: Message
  try {
    message = parseMessage(sourceOf(body))
  } catch {
    return undefined
  }
  if (message.kind !== 'response' || message.outcome.kind !== 'error') return undefined
  const error = payloadAt(message.outcome.source, message.outcome.member)
  if (!error) return undefined
  const code = value(error, 'code')
  const said = value(error, 'message')
  return typeof code === 'number' ? { ...message, code, message: typeof said === 'string' ? said : '' } : undefined
}

/**
 * Whether a refusal says that the server has forgotten the session (MCP 2025-11-25, basic/transports): 404, or the 400
 * of a widely copied example. Either way nothing has been done for the request.
 */
export function sessionGone(error: unknown): boolean {
  if (!(error instanceof ChannelError) || !error.refusal) return false
  const { status } = error.refusal
  const answered = errorIn(error.refusal)
  if (status === 404) return answered?.code !== -32601
  if (status !== 400 || !answered) return false
  return [-32000, -32001, -32600].includes(answered.code) && /session|initiali[sz]/i.test(answered.message)
}
