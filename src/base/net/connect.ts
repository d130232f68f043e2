/** Connections that lead only to addresses that the guard has checked. */

import { lookup } from 'node:dns/promises'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { rootCertificates, type TLSSocket, connect as upgrade } from 'node:tls'
import ip from 'ipaddr.js'
import type { buildConnector } from 'undici'
import { portOf, withoutBrackets } from '../texts/parse-url.js'
import { Deadline, unlessAborted, within } from '../time/time.js'
import { codeOf, Failure, failure, type NetworkReason } from './failure.js'
import { ONE_AFTER_THE_OTHER } from './families.js'
import { type Guard, isLoopback } from './guard.js'
import type { Pem } from './pem-files.js'
import { type HttpProxy, openTunnel, type ProxyOf } from './proxy.js'

/** How to connect. */
export interface ConnectOptions {
  guard: Guard
  /** Resolves a host to its addresses; by default with the system's resolver. */
  resolve?: ((host: string) => Promise<readonly string[]>) | undefined
  /** The proxies for hosts that are contacted over TLS; by default none. */
  proxyOf?: ProxyOf | undefined
  /** Further trusted certificates, as PEM. */
  ca?: string | undefined
  /** The same for a host, and the certificate and key for it. */
  tlsFor?: TlsFor | undefined
  /** Called with a TLS connection before anything is sent. Throws to refuse it. */
  secured?: ((socket: TLSSocket, host: string) => void) | undefined
  /** Milliseconds until the connection must be established. */
  timeout?: number | undefined
  /** Ends attempts in progress. */
  signal?: AbortSignal | undefined
  /** Opens a connection to one of the given addresses, which were checked. */
  dial?: Dial | undefined
  /** Called when a phase starts. */
  entered?: ((phase: ConnectPhase) => void) | undefined
}

/** Further trusted certificates for a host and port, and the client certificate for it. */
export type TlsFor = (host: string, port: number) => Pem

/** A phase of opening a connection. */
export type ConnectPhase = 'resolve' | 'proxy' | 'connect' | 'tls'

/** Opens a connection to one of some addresses. */
type Dial = (addresses: readonly string[], port: number) => Socket

/** The destination of a connection. */
interface Target {
  host: string
  port: number
  secure: boolean
}

const TIMEOUT = 8_000
/** Milliseconds for this machine to resolve a host that a proxy will resolve again. */
const RESOLVE_FOR_PROXY = 2_000

/** System errors, and their reasons. */
const CONNECTING: Readonly<Record<string, NetworkReason<'connect'>>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'closed',
  ETIMEDOUT: 'timeout',
}

/**
 * A connector for undici. All addresses of the host must pass the guard; it connects to one of them, and checks the
 * peer's address before anything is sent. Rejects with a Failure.
 */
export function guardedConnector(options: ConnectOptions): buildConnector.connector {
  return connectorOf((address) => open(targetOf(address), options))
}

/** A function that opens connections as a connector. */
export function connectorOf(open: (target: buildConnector.Options) => Promise<Socket>): buildConnector.connector {
  return (target, done) => {
    open(target).then(
      (socket) => done(null, socket),
      (error: Error) => done(error, null),
    )
  }
}

/** The destination of connections to an address. */
export function targetOf({ protocol, hostname, port }: Pick<URL, 'protocol' | 'hostname' | 'port'>): Target {
  return { host: withoutBrackets(hostname), port: portOf({ protocol, port }), secure: protocol === 'https:' }
}

async function open(target: Target, options: ConnectOptions): Promise<Socket> {
  const { dial = dialOne, timeout = TIMEOUT, entered = () => {}, secured } = options
  let phase: ConnectPhase = 'resolve'
  const end = new AbortController()
  const stop = () => end.abort(failure(phase, 'timeout', `${target.host} took too long (${phase})`))
  const timer = new Deadline(timeout, stop)
  if (options.signal?.aborted) stop()
  options.signal?.addEventListener('abort', stop)
  const enter = (next: typeof phase) => {
    phase = next
    entered(next)
  }
  const inTime = <T>(work: Promise<T>): Promise<T> => unlessAborted(work, end.signal)
  let socket: Socket | undefined
  try {
    enter('resolve')
    const { addresses, proxy } = await inTime(routeTo(target, options))
    if (proxy) {
      enter('proxy')
      socket = await openTunnel(proxy, target, { timeout, signal: end.signal })
    } else {
      enter('connect')
      socket = dial(addresses, target.port)
      await inTime(connected(socket, target))
      if (!addresses.some((address) => same(address, socket?.remoteAddress)))
        throw failure(
          'connect',
          'elsewhere',
          `The connection to ${target.host} does not lead to one of its checked addresses`,
        )
      socket.setNoDelay(true)
    }
    if (!target.secure) return socket
    enter('tls')
    const encrypted = shakeHands(socket, target, options)
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
    timer.clear()
    options.signal?.removeEventListener('abort', stop)
  }
}

/** How a host is reached: at its addresses, all of which have passed the guard, or through a proxy. */
export interface Route {
  addresses: readonly string[]
  proxy?: HttpProxy | undefined
}

/**
 * The route to a host. A proxy resolves the host again, and may get another answer; so all that the guard can check are
 * the addresses that this machine knows. Hosts that it cannot resolve are left to the proxy. Rejects with a Failure.
 */
export async function routeTo(
  { host, port, secure }: Target,
  { guard, resolve = systemAddresses, proxyOf }: Pick<ConnectOptions, 'guard' | 'resolve' | 'proxyOf'>,
): Promise<Route> {
  guard.checkName(host)
  const proxy = secure ? proxyOf?.({ protocol: 'https:', hostname: host, port: String(port) }) : undefined
  const addresses =
    isIP(host) !== 0 ? [host] : proxy ? await lookUpForProxy(host, resolve) : await lookUp(host, resolve)
  guard.checkAddresses(host, addresses, !secure)
  // The guard may allow this machine, and a proxy is on another one.
  const isHere = addresses.length > 0 && addresses.every(isLoopback)
  return { addresses, proxy: isHere ? undefined : proxy }
}

/** The IPv4 addresses of a host. Rejects as the system's resolver does. */
export async function ipv4Addresses(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true, family: 4 })
  return found.map(({ address }) => address)
}

/** All addresses of a host, as the system's resolver orders them. */
export async function systemAddresses(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

async function lookUp(host: string, resolve: (host: string) => Promise<readonly string[]>): Promise<readonly string[]> {
  const addresses = await resolve(host).catch((cause: unknown) => {
    const code = codeOf(cause)
    if (code === 'ENOTFOUND' || code === 'ENODATA') return []
    throw failure('resolve', 'resolver', `The addresses of ${host} cannot be resolved (${code})`, { cause })
  })
  if (addresses.length === 0) throw failure('resolve', 'unknown-host', `${host} has no address`)
  // A copy: the resolver could change its own.
  return [...addresses]
}

/** The addresses that this machine knows in time: in many networks only the proxy can resolve hosts outside. */
async function lookUpForProxy(
  host: string,
  resolve: (host: string) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const known = lookUp(host, resolve).catch(() => [])
  return (await within(known, RESOLVE_FOR_PROXY)) ?? []
}

/** `connect` must not resolve the name again, so its look-up returns the checked addresses. */
function dialOne(addresses: readonly string[], port: number): Socket {
  return connect({ host: 'checked.invalid', port, lookup: lookupOf(addresses), ...ONE_AFTER_THE_OTHER })
}

/** Finds these addresses for every host. */
export function lookupOf(addresses: readonly string[]): LookupFunction {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, { all }, done) => {
    const [first] = answers as [{ address: string; family: number }]
    if (all) done(null, answers)
    else done(null, first.address, first.family)
  }
}

function connected(socket: Socket, { host }: Target): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('connect', resolve)
    // It stays attached: a socket that is destroyed late may still emit an error.
    socket.on('error', (cause) => {
      const reason = CONNECTING[codeOf(cause)] ?? 'unreachable'
      reject(failure('connect', reason, `Cannot connect to ${host} (${codeOf(cause)})`, { cause }))
    })
  })
}

function shakeHands(
  socket: Socket,
  { host, port }: Target,
  { ca, tlsFor }: Pick<ConnectOptions, 'ca' | 'tlsFor'>,
): TLSSocket {
  const { ca: own, ...shown } = tlsFor?.(host, port) ?? {}
  const further = [ca, own].filter((one) => one !== undefined)
  return upgrade({
    socket,
    host,
    // SNI takes no IP addresses. The certificate must then be for the address.
    ...(isIP(host) === 0 && { servername: host }),
    ...(further.length > 0 && { ca: [...rootCertificates, ...further] }),
    ...shown,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot disable it.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
  })
}

function secureOf(socket: TLSSocket, { host }: Target): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.on('error', (cause) => reject(tlsFailure(host, cause)))
    socket.once('close', () =>
      reject(failure('tls', 'closed', `${host} closed the connection during the TLS handshake`)),
    )
  })
}

function tlsFailure(host: string, cause: unknown): Failure {
  const code = codeOf(cause)
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return failure('tls', 'closed', `${host} closed the connection during the TLS handshake`, { cause })
  if (code.startsWith('ERR_SSL') || code === 'EPROTO')
    return failure('tls', 'handshake', `The TLS handshake with ${host} failed (${code})`, { cause })
  return failure('tls', 'certificate', `The certificate of ${host} is not trusted (${code})`, { cause })
}

function same(address: string, other: string | undefined): boolean {
  return other !== undefined && isIP(other) !== 0 && normal(address) === normal(other)
}

function normal(address: string): string {
  return ip.parse(address).toNormalizedString()
}
