/** Calls in the HTTP Archive format (HAR 1.2): two entries a call, one for each wire that it passed. */
import type { Seen } from '../ports/seen.js'
import type { Message } from './rows.js'
import type { CallView } from './views.js'

type Hop = Message['hop']

/** An archive of calls. Texts that are missing were not kept. */
export function toHar(calls: Iterable<CallView>, { version }: { version: string }): object {
  const entries = [...calls].flatMap((call) => [...entriesOf(call, 'client'), ...entriesOf(call, 'server')])
  const sorted = entries.toSorted((a, b) => a.startedDateTime.localeCompare(b.startedDateTime))
  return { log: { version: '1.2', creator: { name: 'mcp-bridge', version }, entries: sorted } }
}

/** An entry for each request of a hop with what answered it. A call without messages has one for the client. */
function entriesOf(call: CallView, hop: Hop) {
  const messages = call.events.filter((seen): seen is Message => seen.kind === 'message' && seen.hop === hop)
  const towards = hop === 'client' ? 'in' : 'out'
  const asked = messages.filter(({ form, dir }) => form === 'request' && dir === towards)
  if (asked.length === 0) return hop === 'client' ? [entryOf(call, hop, undefined, undefined)] : []
  return asked.map((request) => {
    const answer = messages.find(
      ({ form, dir, id, seq }) =>
        (form === 'result' || form === 'error') && dir !== towards && id === request.id && seq > request.seq,
    )
    return entryOf(call, hop, request, answer)
  })
}

function entryOf(call: CallView, hop: Hop, request: Message | undefined, answer: Message | undefined) {
  const began = request?.at ?? call.at
  const time = answer ? Math.max(0, answer.at - began) : request ? 0 : (call.ms ?? 0)
  const side = hop === 'client' ? call.client : call.upstream
  const text = answer?.payload?.text
  return {
    startedDateTime: new Date(began).toISOString(),
    time,
    request: {
      method: 'POST',
      url: `http://${encodeURIComponent(hop === 'client' ? 'mcp-bridge' : call.server || 'server')}.invalid/${call.method}`,
      httpVersion: side?.transport === 'stdio' ? 'stdio' : 'HTTP/1.1',
      cookies: [],
      headers: headersOf(request),
      queryString: [],
      ...(request?.payload && { postData: { mimeType: 'application/json', text: request.payload.text } }),
      headersSize: -1,
      bodySize: request?.bytes ?? -1,
    },
    response: {
      status: answer?.http?.status ?? (answer ? 200 : 0),
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
    _server: call.server,
  }
}

function headersOf(message: Message | undefined): { name: string; value: string }[] {
  return Object.entries(message?.http?.headers ?? {}).map(([name, value]) => ({ name, value }))
}

/** Events as JSON, one a line. */
export function toLines(events: Iterable<Seen>): string {
  let text = ''
  for (const seen of events) text += `${JSON.stringify(seen)}\n`
  return text
}
