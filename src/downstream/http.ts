/** The MCP endpoint over Streamable HTTP: bytes in, one JSON answer or a stream of events out. */
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Upstream } from '../protocol/call.js'
import { type Compat, classify } from '../protocol/classify.js'
import { Fault } from '../protocol/fault.js'
import { checkHeaders, single, versionHeader } from '../protocol/headers.js'
import { error as errorMessage, type Id, type Message } from '../rpc/message.js'
import { remembering } from '../rpc/remembering.js'
import type { Piece, Wire } from '../rpc/source.js'
import { encodeEvent, KEEP_ALIVE } from '../rpc/sse.js'
import { readHeaders } from './headers.js'
import { idToAnswer, readMessage } from './inbound.js'
import { type Frame, ModernDownstream } from './modern.js'
import type { Logger } from './record.js'

export interface EndpointOptions {
  path: string
  upstream: Upstream
  compat: Compat
  log: Logger
  /** Milliseconds. */
  keepAlive: number
  /** Milliseconds of silence after which an answer becomes a stream, so that nobody takes the connection for dead. */
  commitAfter: number
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** Serves the endpoint. A Fastify plugin with a context of its own, so that its body parser is nobody else's. */
export async function endpoint(app: FastifyInstance, options: EndpointOptions): Promise<void> {
  const modern = new ModernDownstream(options.upstream, options.compat)

  // Bytes are read by us: which text they are, and whether they are JSON, decides what the client is told.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(['application/json', '*'], { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

  app.route({
    method: ['GET', 'HEAD', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'],
    url: options.path,
    handler: async (_request, reply) => {
      reply.header('allow', 'POST')
      throw new Fault('methodNotAllowed', 'Messages are POSTed to this address')
    },
  })

  app.route<{ Body: Buffer }>({
    method: 'POST',
    url: options.path,
    // Before the body is read: a page of another origin can send only what a form can send.
    onRequest: (request, _reply, done) => {
      checkMedia(request)
      done()
    },
    handler: async (request, reply) => {
      let id: Id | undefined
      try {
        const message = readMessage(request.body ? [request.body] : [])
        id = idToAnswer(message)
        await take(message, request, reply)
      } catch (error) {
        refuse(reply, Fault.from(error), id, options.compat.draftErrorCodes)
      }
      return reply
    },
  })

  async function take(message: Message, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { lookup, params } = readHeaders(request.raw.rawHeaders)
    const session = single(lookup, 'mcp-session-id') === undefined ? 'none' : 'gone'
    const verdict = classify(message, versionHeader(lookup), session, options.compat)
    if (verdict.era === 'legacy') throw new Fault('invalidRequest', 'Sessions are not served yet')
    const principal = 'local'
    if (message.kind === 'notification') {
      modern.notify(message, { principal })
      reply.code(202).send()
      return
    }
    if (message.kind !== 'request')
      throw new Fault('invalidRequest', 'Only requests and notifications are sent to a server')
    const bare = 'bare' in verdict
    if (!bare) checkHeaders(message, lookup)
    const abort = whileConnected(reply)
    const frames = modern.answer(message, {
      principal,
      abort,
      log: options.log,
      transport: 'http',
      paramHeaders: params,
      bare,
    })
    await answer(reply, frames)
  }

  /** JSON if the answer comes first and soon; else events, from the first of them on. */
  async function answer(reply: FastifyReply, frames: AsyncGenerator<Frame, void>): Promise<void> {
    const first = frames.next()
    const frame = await within(options.commitAfter, first)
    const last = frame?.value?.last
    if (frame?.value && last) {
      if (last.fault) explain(reply, last.fault)
      sendJson(reply.code(last.status), frame.value.text)
      return
    }
    reply
      .header('content-type', 'text/event-stream')
      .header('cache-control', 'no-store')
      .header('x-accel-buffering', 'no')
    reply.send(Readable.from(events(first, frames, frame === undefined), { objectMode: false }))
  }

  async function* events(
    first: Promise<IteratorResult<Frame, void>>,
    frames: AsyncGenerator<Frame, void>,
    silent: boolean,
  ) {
    let next = first
    try {
      // Out of silence, the stream begins with a sign of life: nothing is sent before there is something to send.
      if (silent) yield KEEP_ALIVE
      for (;;) {
        const arrived = await within(options.keepAlive, next)
        if (arrived?.done) return
        if (arrived) yield* pieces(encodeEvent(arrived.value.text))
        else yield KEEP_ALIVE
        if (arrived?.value.last) return
        if (arrived) next = frames.next()
      }
    } finally {
      await frames.return()
    }
  }
}

function checkMedia({ headers }: FastifyRequest): void {
  if (!isJson(headers['content-type'] ?? ''))
    throw new Fault('unsupportedMediaType', 'A message is posted as application/json')
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    throw new Fault('unsupportedMediaType', 'Messages are not compressed')
  // Absent, it means that anything will do; people who type a request by hand leave it out.
  if (headers.accept !== undefined && !acceptsBoth(headers.accept))
    throw new Fault('notAcceptable', 'Accept has to list application/json and text/event-stream')
}

/** Whether a media type is JSON in UTF-8. Read by us, once: what a lenient reader makes of it decides nothing. */
const isJson = remembering((contentType: string): boolean => {
  const [type = '', ...params] = contentType
    .toLowerCase()
    .split(';')
    .map((part) => part.replace(/^[ \t]+|[ \t]+$/g, ''))
  const inUtf8 = params.every((param) => !param.startsWith('charset') || /^charset="?utf-8"?$/.test(param))
  return type === 'application/json' && inUtf8
})

const acceptsBoth = remembering((accept) => accepts(accept, 'application/json') && accepts(accept, 'text/event-stream'))

/** Whether an Accept header lists a type, itself or by a wildcard. */
function accepts(header: string, type: string): boolean {
  const group = `${type.split('/', 1)[0]}/*`
  return header.split(',').some((range) => {
    const [name = '', ...params] = range.split(';').map((part) => part.trim().toLowerCase())
    return [type, group, '*/*'].includes(name) && !params.some((param) => /^q=0(?:\.0{0,3})?$/.test(param))
  })
}

/** Sends a JSON text. One in several pieces is large: it goes out piece by piece rather than being put together first. */
function sendJson(reply: FastifyReply, text: Wire): void {
  reply.header('content-type', JSON_TYPE)
  if (typeof text === 'string') {
    reply.send(text)
    return
  }
  const length = text.reduce((sum, part) => sum + Buffer.byteLength(part), 0)
  reply.header('content-length', length).send(allAtOnce(text))
}

/** Gives all pieces in one turn, so that they are written together. */
function allAtOnce(text: readonly Piece[]): Readable {
  return new Readable({
    read() {
      for (const part of text) this.push(part)
      this.push(null)
    },
  })
}

function pieces(wire: Wire): readonly Piece[] {
  return typeof wire === 'string' ? [wire] : wire
}

/** Answers with a fault, on a reply of which nothing has been sent. */
export function refuse(reply: FastifyReply, fault: Fault, id?: Id, draftErrorCodes = false): void {
  explain(reply, fault)
  reply
    .code(fault.status)
    .type(JSON_TYPE)
    .send(errorMessage(id, fault.toRpcError(draftErrorCodes)))
}

/** Says in headers what those want to know who do not read bodies: load balancers and logs. */
function explain(reply: FastifyReply, { row, retryAfter }: Fault): void {
  if (row.reason !== undefined) reply.header('mcp-bridge-error', row.reason)
  if (retryAfter !== undefined) reply.header('retry-after', Math.ceil(retryAfter))
}

/**
 * Aborts when the client leaves before its answer is whole. The response tells, not the request: a request is 'close'd
 * as soon as its body has been read.
 */
function whileConnected({ raw }: FastifyReply): AbortController {
  const controller = new AbortController()
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort()
  })
  return controller
}

/** What a promise comes to, or undefined where it takes longer. */
function within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), milliseconds)
    promise.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}
