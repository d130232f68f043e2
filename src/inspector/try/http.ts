/** Messages of MCP over Streamable HTTP, and what clients of both eras make of them. */

import { whole } from '../../base/rpc/source.js'
import { SseDecoder } from '../../base/rpc/sse.js'
import { pause } from '../../base/time/pause.js'
import { isRecord } from '../record.js'
import {
  type JsonRecord,
  type TryClient,
  TryError,
  type TryEvent,
  type TryQuestion,
  type TryResponse,
} from './types.js'

/** Most bytes of an answer. */
const MAX_TRIED_ANSWER = 32 * 1024 * 1024
/** Milliseconds between two requests for the state of a task, and the most and least that a server can ask for. */
const USUAL = 1_000
const MOST = 30_000
const LEAST = 100
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

/** The event of a notification; undefined for notifications that are not shown. `call`: the call that it came with. */
export function eventOf({ method, params }: JsonRecord, call: number | undefined): TryEvent | undefined {
  const { progressToken, progress, total, message, level, logger, data } = isRecord(params) ? params : {}
  if (method === 'notifications/progress')
    return {
      kind: 'progress',
      call: typeof progressToken === 'number' ? progressToken : (call ?? 0),
      progress: Number(progress),
      ...(typeof total === 'number' && { total }),
      ...(typeof message === 'string' && { message }),
    }
  if (method === 'notifications/message')
    return { kind: 'log', level: String(level), ...(typeof logger === 'string' && { logger }), data }
  if (/list_changed$|\/updated$/.test(String(method)))
    return { kind: 'changed', method: String(method), params: isRecord(params) ? params : {} }
  return undefined
}

/** Waits for the interval that a server has asked for. Rejects when the signal aborts. */
export async function untilNextPoll(interval: unknown, signal: AbortSignal): Promise<void> {
  await pause(Math.min(Math.max(typeof interval === 'number' ? interval : USUAL, LEAST), MOST), signal)
  signal.throwIfAborted()
}

/** Not every browser can iterate over a stream. */
export async function* chunksOf(body: ReadableStream<Uint8Array>) {
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
