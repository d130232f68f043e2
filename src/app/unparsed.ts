/** Refuses what Node cannot parse as an HTTP request, or what arrives too slowly, with the answers of other refusals. */

import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Fault } from '../base/fault/fault.js'
import type { FaultName } from '../base/fault/faults.js'
import { error as errorMessage } from '../base/rpc/message.js'
import { JSON_TYPE } from '../clients/http/replies.js'
import { linger } from './linger.js'

/** Default time limits of a request. Without them, a request that arrives byte by byte would never time out. */
export const WITHIN = { headers: 30_000, request: 60_000 }

/** A connection with its current response, for which Node has no public property. */
type AnsweringSocket = Socket & { _httpMessage?: ServerResponse | null }

/** Answers, and closes the connection. `refused` is called first, unless nothing can be answered. */
export function refuseUnparsed(
  error: Error & { code?: string },
  socket: AnsweringSocket,
  refused: (fault: Fault) => void,
): void {
  // Already refused: further input is dropped.
  if (socket.writableEnded) return
  const answering = socket._httpMessage?.headersSent === true
  if (!socket.writable || answering || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const fault = faultOf(error)
  refused(fault)
  const body = textOf(fault)
  const headers = Object.entries({ connection: 'close', ...headersOf(fault, body) })
  const head = [
    `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  linger(socket)
}

export function textOf(fault: Fault): string {
  return errorMessage(undefined, fault.toRpcError())
}

/** The headers of an answer with a fault: the same as of other refusals. */
export function headersOf({ row, retryAfter }: Fault, body: string): Record<string, string | number> {
  return {
    'content-type': JSON_TYPE,
    'content-length': Buffer.byteLength(body),
    ...(row.reason !== undefined && { 'mcp-bridge-error': row.reason }),
    ...(retryAfter !== undefined && { 'retry-after': Math.ceil(retryAfter) }),
  }
}

/** The faults and messages for errors of Node's parser and timers, by error code. */
const REFUSALS: Readonly<Record<string, readonly [FaultName, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [
    'requestTimeout',
    `Request timeout: ${WITHIN.headers / 1000} s for the headers, ${WITHIN.request / 1000} s for the whole request`,
  ],
  HPE_HEADER_OVERFLOW: ['tooManyHeaders', 'Too many headers (at most 100, and 16 KiB in total)'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['bodyTooLarge', 'The chunk extensions are too large'],
}

function faultOf({ code = '', message }: Error & { code?: string }): Fault {
  const [name, text] = REFUSALS[code] ?? ['invalidRequest', `Invalid HTTP request: ${message}`]
  return new Fault(name, text)
}
