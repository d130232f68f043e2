/** All requests over the network, except those to configured servers and Redis. */
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { Client, type Dispatcher } from 'undici'
import { parseUrl, withoutBrackets } from '../texts/parse-url.js'
import { Deadline, within } from '../time/time.js'
import { parseAddress } from './address.js'
import { type ConnectOptions, type ConnectPhase, guardedConnector, routeTo, targetOf } from './connect.js'
import { codeOf, Failure, failure, type NetworkPhase } from './failure.js'
import { Guard, type GuardOptions } from './guard.js'

/** How to fetch. */
export interface FetchOptions
  extends GuardOptions,
    Pick<ConnectOptions, 'resolve' | 'proxyOf' | 'dial' | 'ca' | 'tlsFor' | 'secured' | 'signal'> {
  /** The requested media type. */
  accept?: string | undefined
  /** Milliseconds for the whole exchange. */
  timeLimit?: number | undefined
  /** Most bytes of the body. */
  maxBytes?: number | undefined
  /** Read compressed answers, which are never requested: some caches send them all the same. */
  decompress?: boolean | undefined
}

/** How to send a request. */
export interface RequestOptions extends FetchOptions {
  method?: 'GET' | 'POST' | undefined
  /** Further headers; names in lower case. */
  headers?: Readonly<Record<string, string>> | undefined
  body?: string | undefined
}

/** A fetched document. */
export interface Fetched {
  /** The requested address, in canonical spelling. */
  readonly url: string
  /** The IP address of the connection: of the host, or of the proxy. */
  readonly address: string
  readonly headers: AnswerHeaders
  readonly bytes: Uint8Array
}

/** An answer of any status. */
export interface Answered extends Fetched {
  readonly status: number
}

/** Headers as undici returns them: names in lower case. */
type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>

const TIME_LIMIT = 8_000
/** Milliseconds of silence within a body. */
const STALLED = 4_000
/** Most bytes of a document. */
export const DOCUMENT_BYTES = 256 * 1024
const HEADER_BYTES = 16 * 1024

type Unpack = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>

/** By `Content-Encoding`. */
const UNPACK: ReadonlyMap<string, Unpack> = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

/**
 * Fetches a document: over TLS from a public host or from what `options` allow, on a connection of its own, without
 * credentials and cookies, and without following redirects. Throws a Failure unless the answer is complete and has
 * status 200. `known` is an earlier answer: if it has an ETag and is still valid (status 304), it is returned again.
 */
export async function guardedFetch(
  address: string,
  { known, ...options }: FetchOptions & { known?: Fetched | undefined } = {},
): Promise<Fetched> {
  const etag = known?.headers['etag']
  const headers = typeof etag === 'string' ? { 'if-none-match': etag } : {}
  const { status, ...fetched } = await send(address, { ...options, headers }, (head, url) => {
    if (head.statusCode !== 304 || typeof etag !== 'string') checkFound(head, url)
  })
  return status === 304 && known ? { ...known, headers: { ...known.headers, ...fetched.headers } } : fetched
}

/** Sends a request in the same way, and returns the answer, whatever its status. Redirects are not followed either. */
export function guardedRequest(address: string, options: RequestOptions = {}): Promise<Answered> {
  return send(address, options, () => {})
}

/** Checks an address that another program will open: this process must be allowed to contact it. Throws a Failure. */
export async function checkDestination(address: string, options: FetchOptions = {}): Promise<URL> {
  const guard = new Guard(options)
  const url = checkAddress(address, guard, options.allowLoopback === true)
  const late = () => {
    throw failure('resolve', 'timeout', `${url.host} took too long (resolve)`)
  }
  await within(routeTo(targetOf(url), { ...options, guard }), options.timeLimit ?? TIME_LIMIT, late)
  return url
}

async function send(
  address: string,
  options: RequestOptions,
  check: (head: Head, url: URL) => void,
): Promise<Answered> {
  const guard = new Guard(options)
  const url = checkAddress(address, guard, options.allowLoopback === true)
  const { timeLimit = TIME_LIMIT, maxBytes = DOCUMENT_BYTES } = options
  let phase: ConnectPhase | 'http' | 'body' = 'resolve'
  let arrived = ''
  options.signal?.throwIfAborted()
  // Aborted with the Failure that ends the exchange.
  const end = new AbortController()
  const timer = new Deadline(timeLimit, () =>
    end.abort(failure(phase, 'timeout', `${url.host} took more than ${timeLimit} ms (${phase})`)),
  )
  const stop = () => end.abort(options.signal?.reason)
  options.signal?.addEventListener('abort', stop)
  const connect = guardedConnector({
    ...options,
    guard,
    signal: end.signal,
    timeout: timeLimit,
    entered: (next) => {
      phase = next
    },
  })
  const client = new Client(url.origin, {
    connect: (target, done) =>
      connect(target, (...[error, socket]) => {
        if (error !== null) return done(error, null)
        phase = 'http'
        arrived = socket.remoteAddress ?? ''
        // Chunk extensions and interim responses count neither as headers nor as body, so they get this bound.
        socket.on('readable', () => {
          if (socket.bytesRead > HEADER_BYTES + 2 * maxBytes)
            end.abort(phase === 'body' ? tooLarge(url, maxBytes) : tooLong(url))
        })
        done(null, socket)
      }),
    maxHeaderSize: HEADER_BYTES,
    headersTimeout: 0,
    bodyTimeout: STALLED,
  })
  try {
    const answer = await client.request({
      method: options.method ?? 'GET',
      path: url.pathname + url.search,
      headers: {
        accept: options.accept ?? 'application/json',
        ...options.headers,
        'accept-encoding': 'identity',
        'user-agent': 'mcp-bridge',
      },
      body: options.body ?? null,
      // The connection is for this request only.
      reset: true,
      signal: end.signal,
    })
    phase = 'body'
    // A body that is no longer read may still fail.
    answer.body.on('error', () => {})
    check(answer, url)
    const unpack = unpackerOf(answer, url, options.decompress === true)
    checkLength(answer, url, maxBytes)
    const { statusCode: status, headers } = answer
    const packed = await readBody(answer, url, maxBytes)
    const bytes = unpack ? await unpacked(packed, unpack, url, maxBytes) : packed
    return { url: url.href, address: arrived, status, headers, bytes }
  } catch (error) {
    options.signal?.throwIfAborted()
    throw asFailure(error, phase, url)
  } finally {
    timer.clear()
    options.signal?.removeEventListener('abort', stop)
    client.destroy().catch(() => {})
  }
}

/** Throws a Failure for an address that is never fetched, whatever its host resolves to. */
function checkAddress(address: string, guard: Guard, allowLoopback: boolean): URL {
  const url = parseAddress(address)
  const isPlain = allowLoopback || guard.isPlain(withoutBrackets(url.hostname))
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isPlain))
    throw failure('url', 'scheme', `Only https:// addresses can be fetched, not ${url.protocol}`)
  if (url.username !== '' || url.password !== '')
    throw failure('url', 'credentials', 'The address must not have a user name or password')
  if (address.includes('#')) throw failure('url', 'fragment', 'The address must not have a fragment')
  if (url.port === '0') throw failure('url', 'port', 'The address must not have port 0')
  guard.checkName(url.hostname)
  return url
}

type Head = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>

function checkFound({ statusCode, headers }: Head, { host }: URL): void {
  if (statusCode >= 300 && statusCode < 400 && statusCode !== 304)
    throw failure('http', 'redirect', `${host} redirects${whereTo(headers['location'])}. Redirects are not followed`)
  if (statusCode === 404 || statusCode === 410) throw failure('http', 'absent', `${host} has nothing at this address`)
  if (statusCode >= 500 || [408, 425, 429].includes(statusCode))
    throw failure('http', 'unavailable', `${host} answered HTTP ${statusCode}`)
  if (statusCode !== 200) throw failure('http', 'status', `${host} answered HTTP ${statusCode}`)
}

/** What unpacks the body, if it is compressed. Throws a Failure if it must not be. */
function unpackerOf({ headers }: Head, url: URL, decompress: boolean): Unpack | undefined {
  const { 'content-encoding': encoding = 'identity', 'transfer-encoding': transfer = 'chunked' } = headers
  const known = decompress ? UNPACK.get(String(encoding).trim().toLowerCase()) : undefined
  if ((encoding !== 'identity' && !known) || String(transfer).toLowerCase() !== 'chunked')
    throw failure('http', 'encoding', `${url.host} sent a compressed answer, which was not requested`)
  return known
}

function checkLength({ headers }: Head, url: URL, maxBytes: number): void {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(url, maxBytes)
}

async function unpacked(packed: Uint8Array, unpack: Unpack, url: URL, maxBytes: number): Promise<Uint8Array> {
  try {
    return await unpack(packed, { maxOutputLength: maxBytes })
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(url, maxBytes)
    throw failure('body', 'malformed', `${url.host} sent a compressed answer that cannot be read`, { cause: error })
  }
}

async function readBody({ body }: Dispatcher.ResponseData, url: URL, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > maxBytes) throw tooLarge(url, maxBytes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge({ host }: URL, maxBytes: number): Failure {
  return failure('body', 'too-large', `${host} answered with more than ${maxBytes} bytes`)
}

function tooLong({ host }: URL): Failure {
  return failure('http', 'headers', `${host} answered with more than ${HEADER_BYTES} bytes of headers`)
}

/** The origin that a redirect points to. The rest of the address may be secret. */
function whereTo(location: string | string[] | undefined): string {
  const origin = (typeof location === 'string' && parseUrl(location)?.origin) || 'null'
  return origin === 'null' ? '' : ` to ${origin}`
}

/** An error of undici after the connection was established, as a Failure. */
function asFailure(error: unknown, phase: NetworkPhase, url: URL): Failure {
  if (error instanceof Failure) return error
  const code = codeOf(error)
  const { host } = url
  const because = { cause: error }
  const inBody = phase === 'body'
  switch (code) {
    case 'UND_ERR_BODY_TIMEOUT':
      return failure('body', 'timeout', `${host} stopped sending in the middle of its answer`, because)
    case 'UND_ERR_HEADERS_OVERFLOW':
      return tooLong(url)
    case 'UND_ERR_SOCKET':
    case 'ECONNRESET':
    case 'EPIPE':
      if (inBody)
        return failure('body', 'truncated', `The connection to ${host} ended before the answer was complete`, because)
      return failure('http', 'closed', `The connection to ${host} ended without an answer`, because)
    default:
      return failure(inBody ? 'body' : 'http', 'malformed', `${host} sent an invalid HTTP answer (${code})`, because)
  }
}
