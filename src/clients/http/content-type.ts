/** Checks `Content-Type`, `Content-Encoding` and `Accept` of requests. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { memoize } from '../../base/rpc/memoize.js'
import { trim } from '../../mcp/protocol/headers.js'

/** A hook that checks these headers of a POST to the MCP endpoint, before its body is read. Throws a Fault. */
export function checkMedia({ method, headers }: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (method !== 'POST') return done()
  checkBody(headers)
  // Without the header any type is accepted (RFC 9110, section 12.5.1).
  if (headers.accept !== undefined && !acceptsBoth(headers.accept))
    throw new Fault('notAcceptable', 'Accept must list application/json and text/event-stream')
  done()
}

/** Checks that a body is declared as uncompressed JSON. Throws a Fault. */
export function checkBody(headers: FastifyRequest['headers']): void {
  if (!isJson(headers['content-type'] ?? ''))
    throw new Fault('unsupportedMediaType', 'Content-Type must be application/json, in UTF-8')
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    throw new Fault('unsupportedMediaType', 'Unsupported Content-Encoding: send the message uncompressed')
}

/** Checks that the client of a GET accepts event streams. Throws a Fault. */
export function checkTakesEvents({ headers }: FastifyRequest): void {
  if (headers.accept !== undefined && !acceptsEvents(headers.accept))
    throw new Fault('notAcceptable', 'Accept must list text/event-stream')
}

/** Whether a media type is JSON in UTF-8. */
const isJson = memoize((contentType: string): boolean => {
  const [type = '', ...params] = contentType.toLowerCase().split(';').map(trim)
  const inUtf8 = params.every((param) => !param.startsWith('charset') || /^charset="?utf-8"?$/.test(param))
  return type === 'application/json' && inUtf8
})

const acceptsEvents = memoize((accept) => accepts(accept, 'text/event-stream'))
const acceptsBoth = memoize((accept) => accepts(accept, 'application/json') && accepts(accept, 'text/event-stream'))

/** Whether an Accept header lists a type, itself or by a wildcard. */
function accepts(header: string, type: string): boolean {
  const group = `${type.split('/', 1)[0]}/*`
  return header.split(',').some((range) => {
    const [name = '', ...params] = range.split(';').map((part) => trim(part).toLowerCase())
    return [type, group, '*/*'].includes(name) && !params.some((param) => /^q=0(?:\.0{0,3})?$/.test(param))
  })
}
