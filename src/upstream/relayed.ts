/** Gives the relay everything that it needs to pass messages unchanged to a server over Streamable HTTP. */

import { methodTraits } from '../protocol/methods.js'
import type { HttpRefusal } from '../protocol/refusal.js'
import type { BodyFlow, BodySink, Relayed, RelayedAnswer, RelayedAsked, RelayedSent } from '../protocol/upstream.js'
import type { Signal } from '../time/hang-up.js'
import type { Detection } from './era/detection.js'
import { callFault, contradicts, errorIn, refusedCall, worthRepeating } from './failure.js'
import type { Access } from './half.js'
import { ASK_WITHIN } from './lanes.js'
import { SessionCheck } from './session-check.js'
import { doubtIn } from './session-loss.js'
import { channelError, overLimit, undecodedIn } from './transport/answers.js'
import { ChannelError } from './transport/channel.js'
import { Cookies } from './transport/cookies.js'
import type { HttpTransport } from './transport/http.js'
import { askOnce } from './transport/once.js'
import type { Origin, OriginHeaders, Reader } from './transport/origin.js'

/** The highest HTTP status. */
const MAX_STATUS = 599

/** Describes a server to the relay: its address, its era, and what its failures mean. */
export function relayedBy(
  transport: HttpTransport,
  detection: Detection,
  { tasks, revision }: Pick<Access, 'tasks' | 'revision'>,
): Relayed {
  const { origin } = transport
  const { url, dispatcher, lanes } = origin
  return {
    url,
    dispatcher,
    send: (request, signal, open) => send(origin, request, signal, open),
    tasks,
    revising: (principal, request) => revision.of(principal, request),
    get bodyLimit() {
      return origin.bodyLimit
    },
    takeTurn: (call, go) => {
      if (!lanes) {
        go()
        return () => {}
      }
      return lanes.take(call, go, () => askOnce(origin, 'ping', sentTo(origin, call.another()), ASK_WITHIN))
    },
    cookies: () => new Cookies(url),
    speaks: () => {
      const verdict = detection.currentVerdict
      return verdict?.transport === transport ? verdict.era : undefined
    },
    turned: async (sender) => {
      if (detection.currentVerdict?.era === 'legacy') detection.forget()
      const verdict = await detection.known(sender).catch(() => undefined)
      return verdict?.era === 'modern'
    },
    failed: (error) => callFault(channelError(error)),
    mayRepeat: (error, method) => worthRepeating(channelError(error), methodTraits(method).idempotent === true) === 0,
    unusable: (headers, bytes) => {
      const { bodyLimit } = origin
      const error = undecodedIn(headers) ?? (bytes > bodyLimit ? overLimit(bodyLimit) : undefined)
      return error && callFault(error)
    },
    refused: (refusal) => {
      const { status } = refusal
      const answered = status >= 400 && status !== 401 && status !== 403 && errorIn(refusal) !== undefined
      return answered ? undefined : refusedCall(refusal)
    },
    contradicts: (refusal) => contradicts(refusal, 'legacy'),
    hasLostSession: async (answer, method, another) => {
      const failure = 'kind' in answer ? answer : failureOf(answer)
      const doubt = doubtIn(failure, method)
      if (!doubt) return undefined
      // In the same session, a refusal of credentials cannot be distinguished from a refusal of the session.
      const isOfCredentials = 'status' in answer && (answer.status === 401 || answer.status === 403)
      if (doubt !== 'lost' && !doubt.speaks && isOfCredentials) return undefined
      const { capability, idempotent } = methodTraits(method)
      const check = new SessionCheck(
        { hasServed: true },
        (look, timeout) => askOnce(origin, look, sentTo(origin, another()), timeout),
        // A client asks for what the server offers.
        (look) => capability !== undefined && methodTraits(look).capability === capability,
      )
      const loss = await check.lossBehind(failure, method)
      if (!loss) return undefined
      return 'status' in answer || loss === 'unacted' || idempotent ? 'lost' : 'later'
    },
  }
}

function failureOf(answer: HttpRefusal | { said: string }): ChannelError {
  if ('said' in answer)
    return new ChannelError('The body of the answer is not a JSON-RPC response to the request', {
      protocol: true,
      said: answer.said,
    })
  return new ChannelError(`The server answered with HTTP ${answer.status}`, { refusal: answer })
}

/** Sends a request of a client, and gives its answer as soon as the head has arrived. */
async function send<Sink extends BodySink>(
  origin: Origin,
  { method, body, ...request }: RelayedSent,
  signal: Signal,
  open: (flow: BodyFlow) => Sink,
): Promise<RelayedAnswer<Sink>> {
  const { account } = request
  let abort = () => {}
  let stream: Sink | undefined
  const reader: Reader = {
    onStart: (end) => {
      abort = end
      if (signal.aborted) end()
    },
    onHead: (status) => {
      if (status > MAX_STATUS) throw new ChannelError(`The server answered with HTTP ${status}`)
      return status < 300 ? 'passed' : 'beginning'
    },
    onBody: (flow) => {
      stream = open(flow)
      return stream
    },
  }
  signal.addEventListener('abort', () => abort())
  const sent = { ...sentTo(origin, request), method, body, follows: true }
  const answer = await origin.askOrigin(sent, reader, account, signal)
  const { status, headers } = answer
  return { status, headers, path: reader.path as string, stream, beginning: Buffer.concat(answer.body) }
}

/** A request of a client with the headers that every request to the server has. */
function sentTo({ headers: own }: Origin, { headers, ...request }: RelayedAsked) {
  // A header of a client may have several values.
  return { ...request, headers: { ...headers, ...own } as OriginHeaders }
}
