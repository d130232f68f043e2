/**
 * Checks the target and the headers of a request, and reads its raw headers: Node.js joins or drops repeated headers, so
 * proxies and servers could see other values.
 */
import type { FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { isCarried, PARAM_PREFIX, type ReceivedHeaders } from '../../mcp/protocol/headers.js'
import type { ReceivedTrace } from '../../mcp/protocol/trace.js'

const MAX_HEADER_NAMES = 100
/** Headers that must not be repeated, because they decide about the target and the meaning of a request. */
const ONCE: ReadonlySet<string> = new Set(['host', 'authorization', 'origin', 'content-type', 'content-length'])
/** Headers that most requests have, and that do not go on. */
const KNOWN: ReadonlySet<string> = new Set([
  ...[
    'host',
    'connection',
    'content-type',
    'content-length',
    'accept',
    'accept-encoding',
    'accept-language',
    'user-agent',
  ],
  ...['authorization', 'origin', 'mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name'],
])
const NO_PARAMS: Map<string, string> = new Map()

/** The MCP headers of a request. */
export interface RequestHeaders {
  received: ReceivedHeaders
  /** `Mcp-Param-*` by lower-cased name. */
  params: ReadonlyMap<string, string>
  /** The headers that go on to a modern server; undefined if there are none. */
  forwarded: Record<string, string> | undefined
}

/** Checks the number of headers, the HTTP version and the target of any request. Throws a Fault. */
export function checkRequest({ url = '', rawHeaders, httpVersion }: FastifyRequest['raw']): void {
  if (rawHeaders.length / 2 > MAX_HEADER_NAMES)
    throw new Fault('tooManyHeaders', `Too many headers (at most ${MAX_HEADER_NAMES}, and 16 KiB in total)`)
  // Node accepts a request line without a version as HTTP/0.9, and still reads headers and a body, which HTTP/0.9 does
  // not have.
  if (!httpVersion.startsWith('1.')) throw new Fault('invalidRequest', 'Unsupported HTTP version: send HTTP/1.1')
  // An absolute target names a host in addition to the Host header.
  if (!url.startsWith('/')) throw new Fault('invalidRequest', 'The request target must be a path')
}

/** Reads the headers of a request, whose number `checkRequest` has checked. Throws a Fault if they contradict each other. */
export function readHeaders({
  headers,
  rawHeaders,
}: Pick<FastifyRequest['raw'], 'headers' | 'rawHeaders'>): RequestHeaders {
  let params = NO_PARAMS
  let forwarded: Record<string, string> | undefined
  let names = 0
  for (const name in headers) {
    names++
    if (name.startsWith(PARAM_PREFIX)) {
      if (params === NO_PARAMS) params = new Map()
      params.set(name, headers[name] as string)
    } else if (!KNOWN.has(name) && isCarried(name)) forwarded = { ...forwarded, [name]: headers[name] as string }
  }
  // If no header is repeated, Node.js leaves each unchanged.
  if (2 * names === rawHeaders.length) return { received: headers, params, forwarded }
  return readRepeated(rawHeaders)
}

function readRepeated(rawHeaders: readonly string[]): RequestHeaders {
  const received: Record<string, string[]> = {}
  let forwarded: Record<string, string> | undefined
  let params = NO_PARAMS
  let once = ''
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase()
    const value = rawHeaders[i + 1] as string
    if (ONCE.has(name)) {
      if (once.includes(`${name};`)) throw new Fault('invalidRequest', `Header ${name} was sent twice`)
      once += `${name};`
    } else if (name.startsWith(PARAM_PREFIX)) {
      if (params === NO_PARAMS) params = new Map()
      if (params.has(name) && params.get(name) !== value)
        throw new Fault('headerMismatch', `Header ${printable(name, ECHOED)} was sent with different values`)
      params.set(name, value)
    } else if (name.startsWith('mcp-') || name === 'last-event-id') {
      const values = received[name]
      if (values) values.push(value)
      else received[name] = [value]
    }
    if (isCarried(name)) {
      const before = forwarded?.[name]
      forwarded = { ...forwarded, [name]: before === undefined ? value : `${before}, ${value}` }
    }
  }
  return { received, params, forwarded }
}

/** What the headers of a request say about its trace; undefined if nothing. */
export function traceHeaders({ headers }: Pick<FastifyRequest, 'headers'>): ReceivedTrace | undefined {
  const { traceparent, tracestate, baggage } = headers
  if (traceparent === undefined && baggage === undefined) return undefined
  return { traceparent: textOf(traceparent), tracestate: textOf(tracestate), baggage: textOf(baggage) }
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined
}
