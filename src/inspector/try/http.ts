/** Messages of MCP over Streamable HTTP, for clients of both eras. */

import { whole } from '../../base/rpc/source.js'
import { SseDecoder } from '../../base/rpc/sse.js'
import { isRecord } from '../record.js'
import { type JsonRecord, type TryClient, TryError, type TryQuestion, type TryResponse } from './types.js'

/** Most bytes of an answer. */
const MAX_TRIED_ANSWER = 32 * 1024 * 1024
const utf8 = new TextDecoder()

/** The messages of an answer, in their order. Throws a TryError for a status of an error whose body is no JSON-RPC error. */
export async function* messagesIn({ status, headers, body }: TryResponse, onId?: (id: string) => void) {
  if (headers.get('content-type')?.startsWith('text/event-stream') && body) {
    const decoder = new SseDecoder(MAX_TRIED_ANSWER)
    for await (const chunk of chunksOf(body))
      for (const { data, id } of decoder.push(chunk)) {
        if (id !== undefined) onId?.(id)
        if (data.length > 0) yield parsed(utf8.decode(whole(data)), status)
      }
    return
  }
  const pieces: Uint8Array[] = []
  let length = 0
  if (body)
    for await (const chunk of chunksOf(body)) {
      length += chunk.length
      if (length > MAX_TRIED_ANSWER) throw new TryError('The answer is too large', undefined, status)
      pieces.push(chunk)
    }
  const text = utf8.decode(whole(pieces))
  if (text !== '') yield parsed(text, status)
  else if (status >= 400) throw new TryError(`HTTP ${status}`, undefined, status)
}

/** The server of a handshake, as it describes itself. */
export function serverIn({ capabilities, instructions }: JsonRecord, info: unknown): TryClient['server'] {
  return {
    ...(isRecord(info) && { info }),
    capabilities: isRecord(capabilities) ? capabilities : {},
    ...(typeof instructions === 'string' && { instructions }),
  }
}

/** The question in a request of a server. `call`: the call that it belongs to, as far as the client knows. */
export function questionIn({ method, params }: JsonRecord, call: number | undefined): TryQuestion {
  return { method: String(method), params: isRecord(params) ? params : {}, call }
}

/** The result in a response. Throws a TryError for an error. */
export function resultOf({ result, error }: JsonRecord, status: number): JsonRecord {
  if (!isRecord(error)) return isRecord(result) ? result : {}
  const { message, code, data } = error
  throw new TryError(String(message), typeof code === 'number' ? code : undefined, status, data)
}

/** Not every browser can iterate over a stream. */
async function* chunksOf(body: ReadableStream<Uint8Array>) {
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

function parsed(text: string, status: number): JsonRecord {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new TryError(`HTTP ${status}: the answer is not JSON`, undefined, status, text.slice(0, 1_000))
  }
  if (!isRecord(value)) throw new TryError('The answer is no JSON-RPC message', undefined, status)
  return value
}
