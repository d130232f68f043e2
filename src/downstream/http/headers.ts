/** The headers of a request as they came: Node joins or drops repetitions, which two readers could see differently. */
import type { FastifyRequest } from 'fastify'
import { ECHOED, printable } from '../../printable.js'
import { Fault } from '../../protocol/fault.js'
import { type HeaderLookup, PARAM_PREFIX } from '../../protocol/headers.js'
import type { TraceContext } from '../../protocol/trace.js'

const MAX_HEADERS = 100
/** Headers that decide where a request goes or what it is: twice is once too often. */
const ONCE: ReadonlySet<string> = new Set(['host', 'authorization', 'origin', 'content-type', 'content-length'])
const NONE: readonly string[] = []
const NO_PARAMS = new Map<string, string>()

export interface RequestHeaders {
  lookup: HeaderLookup
  /** `Mcp-Param-*` by lower-cased name. */
  params: ReadonlyMap<string, string>
}

/** Checks what is to be in order whatever a request is for. Throws a Fault. */
export function checkRequest({ url = '', rawHeaders, httpVersion }: FastifyRequest['raw']): void {
  checkCount(rawHeaders)
  // Node takes a request line without a version for HTTP/0.9, with headers and a body that there are none of in it.
  if (!httpVersion.startsWith('1.')) throw new Fault('invalidRequest', 'A request has to be of HTTP/1.1')
  // An absolute one names a host of its own, beside that of the header.
  if (!url.startsWith('/')) throw new Fault('invalidRequest', 'The target of a request has to be a path')
}

function checkCount(rawHeaders: readonly string[]): void {
  if (rawHeaders.length / 2 > MAX_HEADERS)
    throw new Fault('tooManyHeaders', `A request may have ${MAX_HEADERS} headers, of 16 KiB together`)
}

/** Reads Node's `rawHeaders`. Throws a Fault where they are too many or contradict each other. */
export function readHeaders(rawHeaders: readonly string[]): RequestHeaders {
  checkCount(rawHeaders)
  const mcp = new Map<string, string[]>()
  let params = NO_PARAMS
  let once = ''
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase()
    const value = rawHeaders[i + 1] as string
    if (ONCE.has(name)) {
      if (once.includes(`${name};`)) throw new Fault('invalidRequest', `Header ${name} came twice`)
      once += `${name};`
    } else if (name.startsWith(PARAM_PREFIX)) {
      if (params === NO_PARAMS) params = new Map()
      if (params.has(name) && params.get(name) !== value)
        throw new Fault('headerMismatch', `Header ${printable(name, ECHOED)} came with different values`)
      params.set(name, value)
    } else if (name.startsWith('mcp-') || name === 'last-event-id') {
      const values = mcp.get(name)
      if (values) values.push(value)
      else mcp.set(name, [value])
    }
  }
  return { lookup: (name) => mcp.get(name) ?? NONE, params }
}

/** Where a request says that it is in a trace. */
export function traceHeaders({ headers }: Pick<FastifyRequest, 'headers'>): TraceContext | undefined {
  const { traceparent, tracestate } = headers
  if (typeof traceparent !== 'string') return undefined
  return { traceparent, tracestate: typeof tracestate === 'string' ? tracestate : undefined }
}
