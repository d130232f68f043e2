/** A modern client of few words: it sends what a test says, and gives back what came, unread by any SDK. */
import { request as httpRequest } from 'node:http'

export const VERSION = 'io.modelcontextprotocol/protocolVersion'
export const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
export const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo'
export const LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
export const SERVER_INFO = 'io.modelcontextprotocol/serverInfo'

type Json = Record<string, unknown>

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The body to the letter. */
  text: string
  /** Every message in it, from JSON or from events. */
  messages: Json[]
  /** The last of them, which answers. */
  message: Json & { result?: Json; error?: { code: number; message: string; data?: Json } }
}

export function envelope(extra: Json = {}): Json {
  return { [VERSION]: '2026-07-28', [CAPABILITIES]: {}, [CLIENT_INFO]: { name: 'test', version: '1' }, ...extra }
}

/** Headers that a modern request has to have. */
export function headersFor(method: string, params: Json = {}): Record<string, string> {
  const name = method === 'resources/read' ? params['uri'] : (params['name'] ?? params['taskId'])
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
  }
}

export interface CallOptions {
  id?: unknown
  meta?: Json
  headers?: Record<string, string | string[] | undefined> | undefined
  signal?: AbortSignal
}

/** Sends a well-formed modern request, but for what `options` change. */
export function call(url: string, method: string, params: Json = {}, options: CallOptions = {}): Promise<Answer> {
  const { id = 1, meta = {}, headers = {}, signal } = options
  const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope(meta) } })
  return post(url, body, { ...headersFor(method, params), ...headers }, signal)
}

/** POSTs a body as it is. A header that is undefined is not sent; one that is an array is sent as often. */
export function post(
  url: string,
  body: string | Uint8Array,
  headers: Record<string, string | string[] | undefined>,
  signal?: AbortSignal,
): Promise<Answer> {
  return send('POST', url, body, headers, signal)
}

export function send(
  method: string,
  url: string,
  body: string | Uint8Array | undefined,
  headers: Record<string, string | string[] | undefined>,
  signal?: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >
    const request = httpRequest(url, { method, headers: sent, agent: false, ...(signal && { signal }) }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        try {
          const messages = read(text, response.headers['content-type'] ?? '')
          const message = (messages.at(-1) ?? {}) as Answer['message']
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, messages, message })
        } catch (error) {
          reject(new Error(`Not to be read: ${response.statusCode} ${text.slice(0, 300)}`, { cause: error }))
        }
      })
    })
    request.on('error', reject)
    request.end(body)
  })
}

function read(text: string, contentType: string): Json[] {
  if (contentType.startsWith('text/event-stream')) {
    return text
      .split('\n\n')
      .filter((block) => !/^event: (?!message$)/m.test(block))
      .flatMap((block) => block.split('\n'))
      .filter((line) => line.startsWith('data: ') && line !== 'data: ')
      .map((line) => JSON.parse(line.slice('data: '.length)) as Json)
  }
  if (text === '') return []
  return [JSON.parse(text) as Json]
}

/** The last message of an answer. If a call takes long, its answer is an event stream. */
export function lastIn(text: string): Json {
  const messages = read(text, text.startsWith('{') ? 'application/json' : 'text/event-stream')
  return messages.at(-1) ?? {}
}
