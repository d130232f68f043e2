/**
 * Calls from the inspector: forwards HTTP requests of MCP to the bridge, and streams the answers back unchanged. A refused
 * request reaches no server.
 */
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { INSPECT } from '../app/inspector-path.js'
import { Fault } from '../base/fault/fault.js'
import { type Inspected, queryOf, whyNoCalls } from './answers.js'
import { check } from './check/checks.js'

/** Most requests at once, streams included. */
const MAX_TRIES = 64
/** Most lists of hidden items at once: servers list everything for them. */
const MAX_LOOKS = 4
/** Most characters of a schema and a value together. */
const MAX_CHECKED = 2 * 1024 * 1024
const NO_TARGET = 'Unknown server or group'
/** Forwarded request headers. */
const PASSED = /^(?:accept|content-type|last-event-id|mcp-.*)$/
/** Headers of answers that belong to the page, or to a connection. */
const OWN = new Set([
  'cache-control',
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'transfer-encoding',
  'x-content-type-options',
])

export async function tryRoutes(app: FastifyInstance, inspected: Inspected): Promise<void> {
  const { bridge } = inspected
  let open = 0
  // Only JSON: a page of another origin could send the content types of forms without being asked for permission.
  app.removeAllContentTypeParsers()
  const parser = { parseAs: 'buffer', bodyLimit: bridge.bodyBytes } as const
  app.addContentTypeParser('application/json', parser, (_request, body, done) => done(null, body))

  app.addHook('onRequest', (request, _reply, done) => {
    const why = whyNoCalls(inspected, request)
    if (why !== undefined) throw new Fault('insufficientScope', why)
    if (request.method !== 'POST' && hasBody(request))
      throw new Fault('invalidRequest', `A ${request.method} request cannot have a body`)
    if (request.method === 'POST' && request.headers['content-type'] === undefined)
      throw new Fault('unsupportedMediaType', 'The content type has to be application/json')
    done()
  })

  let looking = 0
  app.get(`${INSPECT}/catalogue`, { exposeHeadRoute: false }, async (request) => {
    const name = nameIn(request)
    if (looking >= MAX_LOOKS)
      throw new Fault('overloaded', `Too many requests for hidden items at once (at most ${MAX_LOOKS})`, {
        retryAfter: 1,
      })
    looking++
    try {
      const found = await bridge.hidden(name)
      if (!found) throw new Fault('noSuchPath', NO_TARGET)
      return found
    } finally {
      looking--
    }
  })

  app.post<{ Body: Uint8Array<ArrayBuffer> | undefined }>(`${INSPECT}/check`, ({ body }) => check(checkedText(body)))

  app.route<{ Body: Uint8Array<ArrayBuffer> | undefined }>({
    method: ['POST', 'GET', 'DELETE'],
    exposeHeadRoute: false,
    url: `${INSPECT}/try`,
    handler: async (request, reply) => {
      const name = nameIn(request)
      if (open >= MAX_TRIES)
        throw new Fault('overloaded', `Too many calls from the inspector (at most ${MAX_TRIES})`, { retryAfter: 1 })
      open++
      const abort = new AbortController()
      reply.raw.once('close', () => {
        open--
        abort.abort()
      })
      const answer = await bridge.call(name, {
        method: request.method,
        headers: passed(request),
        body: request.method === 'POST' ? request.body : undefined,
        signal: abort.signal,
      })
      if (!answer) throw new Fault('noSuchPath', NO_TARGET)
      for (const [header, value] of answer.headers) if (!OWN.has(header)) reply.header(header, value)
      reply.code(answer.status)
      return reply.send(
        answer.body === null ? '' : Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0]),
      )
    },
  })
}

/** The server or group that a request is about. */
function nameIn(request: FastifyRequest): string {
  const name = queryOf(request).get('server')
  if (name === null) throw new Fault('invalidRequest', 'The query requires server, the name of a server or group')
  return name
}

/** The body of a check. Throws a Fault if it is invalid. */
function checkedText(body: Uint8Array<ArrayBuffer> | undefined): string {
  const text = new TextDecoder().decode(body)
  if (text.length > MAX_CHECKED)
    throw new Fault('bodyTooLarge', `The schema and the value have more than ${MAX_CHECKED} characters`)
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    throw new Fault('invalidRequest', 'The body is not JSON')
  }
  if (typeof read !== 'object' || read === null || !Object.hasOwn(read, 'schema') || !Object.hasOwn(read, 'value'))
    throw new Fault('invalidRequest', 'The body has to be {"schema": …, "value": …}')
  return text
}

function hasBody({ headers }: FastifyRequest): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  return coding !== undefined || Number(length) !== 0
}

function passed({ headers }: FastifyRequest): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && PASSED.test(name) ? [[name, value] as const] : [],
    ),
  )
}
