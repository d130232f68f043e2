/** Connections that lead where the guard has looked, and nowhere else. */
import { lookup } from 'node:dns/promises'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { rootCertificates, type TLSSocket, connect as upgrade } from 'node:tls'
import ip from 'ipaddr.js'
import type { buildConnector } from 'undici'
import { Failure, failure, type NetworkReason } from './failure.js'
import type { Guard } from './guard.js'

export interface ConnectOptions {
  guard: Guard
  /** The addresses of a host, as the system knows them unless something else does. */
  resolve?: ((host: string) => Promise<readonly string[]>) | undefined
  /** Certificates of further authorities. */
  ca?: string | undefined
  /** Looks at a connection that is secure before anything is asked through it. What it throws refuses it. */
  secured?: ((socket: TLSSocket, host: string) => void) | undefined
  /** Milliseconds until a connection has to be there. */
  timeout?: number | undefined
  /** Ends attempts that are under way. */
  signal?: AbortSignal | undefined
  /** Opens a connection to one of some addresses, which have been checked. */
  dial?: Dial | undefined
  /** Is told which phase begins. */
  entered?: ((phase: 'resolve' | 'connect' | 'tls') => void) | undefined
}

export type Dial = (addresses: readonly string[], port: number) => Socket

/** Where a connection is to lead. */
interface Target {
  host: string
  port: number
  secure: boolean
}

const TIMEOUT = 8_000

/** Where a host has several addresses. */
const ONE_AFTER_THE_OTHER = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 1_000 }
/** Errors of the system, and what they are a case of. */
const CONNECTING: Readonly<Record<string, NetworkReason<'connect'>>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'closed',
  ETIMEDOUT: 'timeout',
}

/**
 * For undici: makes connections of which every address has passed the guard, to one of these very addresses, and looks once
 * more where they have arrived before the first byte is sent. Rejects with a Failure.
 */
export function guardedConnector(options: ConnectOptions): buildConnector.connector {
  return ({ hostname, protocol, port }, done) => {
    const secure = protocol === 'https:'
    const target = { host: bare(hostname), port: Number(port) || (secure ? 443 : 80), secure }
    open(target, options).then(
      (socket) => done(null, socket),
      (error: Error) => done(error, null),
    )
  }
}

async function open(target: Target, options: ConnectOptions): Promise<Socket> {
  const { dial = dialOne, timeout = TIMEOUT, entered = () => {}, secured } = options
  const end = new AbortController()
  const stop = () => end.abort()
  const timer = setTimeout(stop, timeout)
  if (options.signal?.aborted) stop()
  options.signal?.addEventListener('abort', stop)
  let phase: 'resolve' | 'connect' | 'tls' = 'resolve'
  const enter = (next: typeof phase) => {
    phase = next
    entered(next)
  }
  const inTime = <T>(work: Promise<T>): Promise<T> =>
    Promise.race([
      work,
      new Promise<never>((_resolve, reject) => {
        const expire = () => reject(failure(phase, 'timeout', `${target.host} took too long (${phase})`))
        if (end.signal.aborted) expire()
        else end.signal.addEventListener('abort', expire)
      }),
    ])
  let socket: Socket | undefined
  try {
    enter('resolve')
    const addresses = await inTime(checkedAddresses(target, options))
    enter('connect')
    socket = dial(addresses, target.port)
    await inTime(connected(socket, target))
    if (!addresses.some((address) => same(address, socket?.remoteAddress)))
      throw failure('connect', 'elsewhere', `The connection to ${target.host} does not lead to where it was to lead`)
    socket.setNoDelay(true)
    if (!target.secure) return socket
    enter('tls')
    const encrypted = shakeHands(socket, target, options.ca)
    socket = encrypted
    await inTime(secureOf(encrypted, target))
    try {
      secured?.(encrypted, target.host)
    } catch (cause) {
      if (cause instanceof Failure) throw cause
      throw failure('tls', 'pin', cause instanceof Error ? cause.message : String(cause), { cause })
    }
    return encrypted
  } catch (error) {
    socket?.destroy()
    throw error
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', stop)
  }
}

/** The addresses of a host, all of which have passed the guard. Rejects with a Failure. */
export async function checkedAddresses(
  { host, secure }: Pick<Target, 'host' | 'secure'>,
  { guard, resolve = system }: Pick<ConnectOptions, 'guard' | 'resolve'>,
): Promise<readonly string[]> {
  guard.checkName(host)
  const addresses = isIP(host) === 0 ? await lookUp(host, resolve) : [host]
  guard.checkAddresses(host, addresses, !secure)
  return addresses
}

/** A host as the system knows it: an address of IPv6 without its brackets. */
export function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

async function system(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

async function lookUp(host: string, resolve: (host: string) => Promise<readonly string[]>): Promise<readonly string[]> {
  const addresses = await resolve(host).catch((cause: unknown) => {
    const code = codeOf(cause)
    if (code === 'ENOTFOUND' || code === 'ENODATA') return []
    throw failure('resolve', 'resolver', `The address of ${host} cannot be looked up (${code})`, { cause })
  })
  if (addresses.length === 0) throw failure('resolve', 'unknown-host', `No address is known of ${host}`)
  // A copy, which nobody else can change any more.
  return [...addresses]
}

/** Whatever name `connect` would look up: what it gets to know is what has been checked, and no other. */
function dialOne(addresses: readonly string[], port: number): Socket {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }))
  const lookup: LookupFunction = (_host, { all }, done) => {
    const [first] = answers as [{ address: string; family: number }]
    if (all) done(null, answers)
    else done(null, first.address, first.family)
  }
  return connect({ host: 'checked.invalid', port, lookup, ...ONE_AFTER_THE_OTHER })
}

function connected(socket: Socket, { host }: Target): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('connect', resolve)
    // It stays: a socket that is destroyed because it came too late has nobody else to tell.
    socket.on('error', (cause) => {
      const reason = CONNECTING[codeOf(cause)] ?? 'unreachable'
      reject(failure('connect', reason, `${host} cannot be connected to (${codeOf(cause)})`, { cause }))
    })
  })
}

function shakeHands(socket: Socket, { host }: Target, ca: string | undefined): TLSSocket {
  return upgrade({
    socket,
    host,
    // An address is no name to be asked for: the certificate has to be for the address itself.
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca: [...rootCertificates, ca] }),
    // Said here, so that no variable of the environment can take it back.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
  })
}

function secureOf(socket: TLSSocket, { host }: Target): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.on('error', (cause) => reject(tlsFailure(host, cause)))
    socket.once('close', () => reject(failure('tls', 'closed', `${host} hung up in the middle of the handshake`)))
  })
}

function tlsFailure(host: string, cause: unknown): Failure {
  const code = codeOf(cause)
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return failure('tls', 'closed', `${host} hung up in the middle of the handshake`, { cause })
  if (code.startsWith('ERR_SSL') || code === 'EPROTO')
    return failure('tls', 'handshake', `${host} does not speak TLS as it has to be spoken (${code})`, { cause })
  return failure('tls', 'certificate', `The certificate of ${host} is not to be trusted (${code})`, { cause })
}

function same(address: string, other: string | undefined): boolean {
  return other !== undefined && isIP(other) !== 0 && normal(address) === normal(other)
}

function normal(address: string): string {
  return ip.parse(address).toNormalizedString()
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
