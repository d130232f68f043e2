/** The modern client of `mcp-bridge demo`: it calls tools periodically, and answers questions. */

import { SseDecoder } from '../../base/rpc/sse.js'
import { pause } from '../../base/time/pause.js'
import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { CLIENT_CAPABILITIES, CLIENT_INFO, PROGRESS_TOKEN, PROTOCOL_VERSION } from '../../mcp/protocol/meta.js'
import { CALL_TOOL } from '../../mcp/protocol/methods.js'

type Json = Readonly<Record<string, unknown>>

/** A call of a tool. */
export interface DemoCall {
  name: string
  args: Json
  /** The client asks for progress. */
  progress?: true
}

/** The suggested first call. */
export const SAMPLE: DemoCall = { name: 'legacy__weather', args: { city: 'Oslo' } }

/** The calls, in turn. */
const CALLS: readonly DemoCall[] = [
  SAMPLE,
  { name: 'legacy__weather', args: { city: 'Lisbon' } },
  { name: 'legacy__write_report', args: { subject: 'bridges' }, progress: true },
  { name: 'legacy__weather', args: { city: 'Atlantis' } },
  { name: 'legacy__book_table', args: { guests: 4 } },
  { name: 'legacy__open_safe', args: { safe: 'small', combination: '12-34-56' } },
  { name: 'legacy__weather', args: { city: 'Nairobi' } },
  { name: 'modern__find_train', args: { to: 'Oslo' } },
  { name: 'modern__buy_ticket', args: { to: 'Lisbon' } },
  { name: 'legacy__sell_table', args: {} },
]
/** Milliseconds between two calls. */
const EVERY = 1_000
/** Milliseconds before the client answers a question. */
const THINKS = 2_500
/** Most calls at once: a bridge that does not answer gets no more. */
const MAX_DEMO_CALLS = 8

/** A request of 2026-07-28: its body and its headers. `meta` is added to the required `_meta`. */
export function requestOf(method: string, params: Json, id: number, meta: Json = {}) {
  const { name } = params
  const envelope = { [PROTOCOL_VERSION]: NEWEST_MODERN, [CLIENT_CAPABILITIES]: {}, ...meta }
  return {
    headers: {
      'content-type': 'application/json',
      'mcp-protocol-version': NEWEST_MODERN,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope } }),
  }
}

/** The params of a call of a tool. */
export function paramsOf({ name, args }: DemoCall): Json {
  return { name, arguments: args }
}

/** Calls tools at an address, one a second, until the signal aborts. */
export async function callDemo(url: string, signal: AbortSignal): Promise<void> {
  let open = 0
  let id = 0
  const meta = {
    [CLIENT_INFO]: { name: 'demo-client', version: '1.0.0' },
    [CLIENT_CAPABILITIES]: { elicitation: { form: {} } },
  }

  async function send(method: string, params: Json, { progress }: Pick<DemoCall, 'progress'> = {}): Promise<Json> {
    id++
    const token = progress ? { [PROGRESS_TOKEN]: id } : {}
    const { headers, body } = requestOf(method, params, id, { ...meta, ...token })
    const accept = 'application/json, text/event-stream'
    const response = await fetch(url, { method: 'POST', headers: { ...headers, accept }, body, signal })
    return lastIn(new Uint8Array(await response.arrayBuffer()), response.headers.get('content-type'))
  }
  async function run(call: DemoCall): Promise<void> {
    const { result } = await send(CALL_TOOL, paramsOf(call), call)
    const { resultType, inputRequests, requestState } = (result ?? {}) as Json
    if (resultType !== 'input_required') return
    await pause(THINKS, signal)
    const answer = { action: 'accept', content: { time: '19:30' } }
    const inputResponses = Object.fromEntries(Object.keys(inputRequests as Json).map((key) => [key, answer]))
    await send(CALL_TOOL, { ...paramsOf(call), inputResponses, requestState }, call)
  }

  await send('tools/list', {}).catch(() => {})
  for (let turn = 0; !signal.aborted; turn++) {
    if (open < MAX_DEMO_CALLS) {
      open++
      const over = () => open--
      run(CALLS[turn % CALLS.length] as DemoCall).then(over, over)
    }
    await pause(EVERY, signal)
  }
}

/** The last message of a body, which is the response. */
function lastIn(body: Uint8Array, type: string | null): Json {
  const isStream = type?.startsWith('text/event-stream') ?? false
  const pieces = isStream ? new SseDecoder().push(body).at(-1)?.data : [body]
  return JSON.parse(Buffer.concat(pieces ?? []).toString()) as Json
}
