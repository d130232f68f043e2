/** Refuses HTTP requests with JSON-RPC errors: counts, logs and audits them, and drops the rest of a request. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault/fault.js'
import type { FaultName } from '../base/fault/faults.js'
import { tooLarge } from '../clients/http/body.js'
import { named, type Refusals, refusedOf, whoseIn } from '../clients/http/refusals.js'
import { refuse } from '../clients/http/replies.js'
import { type AuditLine, type AuditLog, whoIs } from '../middle/policy/audit.js'
import { linger } from './linger.js'

export interface RefusingOptions {
  refusals: Pick<Refusals, 'note'>
  /** The message for unknown paths. */
  notFound: string
  /** Most bytes of a body. */
  bodyBytes: number
  audit?: AuditLog | undefined
}

/** Makes an application refuse requests with JSON-RPC errors, and count and log them. */
export function refuseInJsonRpc(app: FastifyInstance, { refusals, notFound, bodyBytes, audit }: RefusingOptions): void {
  const audited = auditedBy(audit)
  const refuseWith = (fault: Fault, request: FastifyRequest, reply: FastifyReply) => {
    if (!reply.raw.destroyed) refusals.note(fault, refusedOf(request))
    audited?.(fault, request)
    readRest(request, reply)
    return refuse(reply, fault)
  }
  app.setNotFoundHandler((request, reply) => refuseWith(new Fault('noSuchPath', notFound), request, reply))
  app.setErrorHandler<FastifyError>((error, request, reply) =>
    refuseWith(faultOf(error, request, bodyBytes), request, reply),
  )
}

/** Faults of refused callers that the audit log records. */
const AUDITED: ReadonlySet<FaultName> = new Set([
  ...(['unauthorized', 'insufficientScope', 'groupsUnknown', 'rateLimited', 'foreignSession'] as const),
])

/** Returns a function that writes the audit log of refused requests; undefined without an audit log. */
export function auditedBy(
  audit: Pick<AuditLog, 'write'> | undefined,
): ((fault: Fault, request: FastifyRequest) => void) | undefined {
  if (!audit) return undefined
  return (fault, request) => {
    if (AUDITED.has(fault.fault)) audit.write(refusalIn(fault, request)).catch(() => {})
  }
}

function refusalIn({ fault, row }: Fault, request: FastifyRequest): AuditLine {
  const { ip, method, url, principal, grant } = request
  const who = fault === 'unauthorized' ? {} : whoIs(principal, grant)
  const path = url.replace(/[?#].*$/s, '').slice(0, 200)
  return { ...who, ...named(whoseIn(request)), from: ip, method, path, outcome: 'refused', reason: row.reason ?? fault }
}

/** Whether the client waits for "100 Continue" before it sends its body. */
function waitsToSend({ headers: { expect } }: FastifyRequest): boolean {
  return expect?.toLowerCase() === '100-continue'
}

/** Whether the client wants its connection to end after the answer. */
function asksToClose({ raw: { httpVersion }, headers: { connection = '' } }: FastifyRequest): boolean {
  return httpVersion === '1.0' ? !/keep-alive/i.test(connection) : /close/i.test(connection)
}

/** Sends "100 Continue" to a client that waits for it. Throws a Fault if its body would be too large. */
export function sendContinue(request: FastifyRequest, reply: FastifyReply, bodyBytes: number): void {
  if (!waitsToSend(request)) return
  if (Number(request.headers['content-length']) > bodyBytes) throw tooLarge(bodyBytes)
  reply.raw.writeContinue()
  delete request.raw.headers.expect
}

/**
 * Reads and drops the rest of a refused request. A client that is still sending may read the answer only after that.
 */
function readRest(request: FastifyRequest, reply: FastifyReply): void {
  const { raw } = request
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
  if (raw.complete || raw.destroyed || (coding === undefined && Number(length) === 0)) return
  // A client that waits for "100 Continue" sends nothing more.
  if (waitsToSend(request)) {
    reply.header('connection', 'close')
    return
  }
  const closes = asksToClose(request)
  reply.removeHeader('connection')
  reply.raw.shouldKeepAlive = true
  setImmediate(() => {
    const stop = raw.complete || raw.destroyed ? () => {} : linger(raw.socket)
    const over = () => {
      stop()
      if (closes) raw.socket.end()
    }
    if (raw.closed) over()
    else raw.once('close', over)
  })
}

/** The faults for errors of Fastify, by error code. */
const FASTIFY_FAULTS: Readonly<Record<string, FaultName>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupportedMediaType',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalidRequest',
}

function faultOf(error: FastifyError | Fault, { method }: FastifyRequest, bodyBytes: number): Fault {
  if (error instanceof Fault) return error
  // The client disconnected before the stream began. No answer can be sent, and the call logs its own end.
  if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return new Fault('requestTimeout', 'The client disconnected')
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return tooLarge(bodyBytes)
  const name =
    FASTIFY_FAULTS[error.code] ??
    (error.statusCode !== undefined && error.statusCode < 500 ? 'invalidRequest' : undefined)
  if (name) return new Fault(name, error.message, { cause: error })
  // A POST may have been a call, and the error may have come after it was sent to the server.
  return Fault.from(error, method === 'POST')
}
