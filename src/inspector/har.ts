/** Calls in the HTTP Archive format (HAR 1.2): two entries per call, one for each wire. */
import { isAnswer, isMessage } from './recorder/events.js'
import { httpStatus, type MessageRow } from './rows.js'
import type { CallView } from './views.js'
import { shown } from './words.js'

type Hop = MessageRow['hop']

/** One request of a call and its response, as far as they are known. */
interface Exchange {
  call: CallView
  hop: Hop
  began: number
  request: MessageRow | undefined
  answer: MessageRow | undefined
}

/** An archive of calls, in pieces. `withText` adds the text of a message, if it is stored. */
export function* toHar(
  calls: Iterable<CallView>,
  { version, withText }: { version: string; withText: (message: MessageRow) => MessageRow },
): Generator<string, void> {
  const exchanges = [...calls].flatMap((call) => [...exchangesOf(call, 'client'), ...exchangesOf(call, 'server')])
  yield `{"log":{"version":"1.2","creator":${JSON.stringify({ name: 'mcp-bridge', version })},"entries":[`
  let separator = ''
  for (const { request, answer, ...exchange } of exchanges.toSorted((a, b) => a.began - b.began)) {
    const entry = entryOf({ ...exchange, request: request && withText(request), answer: answer && withText(answer) })
    yield separator + JSON.stringify(entry)
    separator = ','
  }
  yield ']}}'
}

/** An exchange for each request of a hop. A call without messages has one for the client. */
function exchangesOf(call: CallView, hop: Hop): Exchange[] {
  const messages = call.events.filter((seen) => isMessage(seen, hop))
  const towards = hop === 'client' ? 'in' : 'out'
  const asked = messages.filter(({ form, dir }) => form === 'request' && dir === towards)
  if (asked.length === 0 && hop === 'client')
    return [{ call, hop, began: call.at, request: undefined, answer: undefined }]
  return asked.map((request) => {
    const answer = messages.find(
      (one) => isAnswer(one) && one.dir !== towards && one.id === request.id && one.seq > request.seq,
    )
    return { call, hop, began: request.at, request, answer }
  })
}

function entryOf({ call, hop, began, request, answer }: Exchange) {
  const time = answer ? Math.max(0, answer.at - began) : request ? 0 : (call.ms ?? 0)
  const side = hop === 'client' ? call.client : call.upstream
  const text = answer?.payload?.text
  // The servers of a group have wires of their own.
  const server = request?.server ?? call.server
  return {
    startedDateTime: new Date(began).toISOString(),
    time,
    request: {
      method: 'POST',
      url: addressOf(call, hop, server),
      httpVersion: side?.transport === 'stdio' ? 'stdio' : 'HTTP/1.1',
      cookies: [],
      headers: headersOf(request),
      queryString: [],
      ...(request?.payload && { postData: { mimeType: 'application/json', text: request.payload.text } }),
      headersSize: -1,
      bodySize: request?.bytes ?? -1,
    },
    response: {
      status: answer ? (httpStatus(answer, call) ?? (hop === 'client' && side?.transport === 'http' ? 0 : 200)) : 0,
      statusText: call.status,
      httpVersion: side?.transport === 'stdio' ? 'stdio' : 'HTTP/1.1',
      cookies: [],
      headers: headersOf(answer),
      content: {
        size: answer?.bytes ?? 0,
        mimeType: 'application/json',
        ...(text !== undefined && { text }),
      },
      redirectURL: '',
      headersSize: -1,
      bodySize: answer?.bytes ?? -1,
    },
    cache: {},
    timings: { send: 0, wait: time, receive: 0 },
    _hop: hop,
    _call: call.id,
    _server: server,
  }
}

/** An address that names server, method and target: `http://orders.invalid/tools/call/book`. */
function addressOf({ method, name = '' }: CallView, hop: Hop, server: string): string {
  const host = hop === 'client' ? 'mcp-bridge' : server.replace(/[^\w.-]+/g, '-') || 'server'
  const path = [...method.split('/'), ...(name === '' ? [] : [name])]
  return `http://${host}.invalid/${path.map((part) => encodeURIComponent(shown(part))).join('/')}`
}

function headersOf(message: MessageRow | undefined): { name: string; value: string }[] {
  return Object.entries(message?.http?.headers ?? {}).map(([name, value]) => ({ name, value }))
}
