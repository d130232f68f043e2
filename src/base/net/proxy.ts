/**
 * Proxies of the environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
 *
 * Neither proxy-from-env nor EnvHttpProxyAgent of undici reads networks (`10.0.0.0/8`) in NO_PROXY, compares IPv6 addresses in
 * other spellings, or exempts this machine. The tunnels of undici report a refusal of the proxy only in the text of an error,
 * and leave no place for checks of addresses and pins before a request.
 */
import { request } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import ip from 'ipaddr.js'
import { parseUrl, portOf, withoutBrackets } from '../texts/parse-url.js'
import { Deadline } from '../time/time.js'
import { codeOf, Failure, NETWORK_REASONS, type NetworkReason } from './failure.js'
import { ONE_AFTER_THE_OTHER } from './families.js'
import { isLoopback } from './guard.js'

/** A proxy, as an environment variable names it. */
export interface HttpProxy {
  /** The variable. */
  readonly variable: string
  /** Scheme, host and port, as in `http://proxy.example:3128`. */
  readonly origin: string
  /** The `Proxy-Authorization` header, if the address has a user. It is secret. */
  readonly authorization?: string | undefined
  /** The variable has no valid address. The proxy cannot be used then. */
  readonly invalid?: true
}

/** What a request is for: parts of a URL. */
type Destination = Pick<URL, 'protocol' | 'hostname' | 'port'>

/** The proxy for a destination; undefined for a direct connection. */
export type ProxyOf = (destination: Destination) => HttpProxy | undefined

/** A proxy that cannot be used, or has refused. The message names its host, and never its user and password. */
export class ProxyFailure extends Failure {
  /** As errors of Node.js have it. */
  readonly code: string

  constructor(reason: NetworkReason<'proxy'>, message: string) {
    super('proxy', reason, NETWORK_REASONS.proxy[reason], message)
    this.code = `ERR_PROXY_${reason.toUpperCase()}`
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** Hosts that need no proxy. */
type Rule = (host: string, port: number) => boolean

const VARIABLES: Readonly<Record<string, readonly [string, string]>> = {
  'https:': ['https_proxy', 'HTTPS_PROXY'],
  'http:': ['http_proxy', 'HTTP_PROXY'],
}
/** Milliseconds to open a tunnel. */
const TIMEOUT = 8_000
/** Answers of a proxy to CONNECT, and their reasons. Others below 500 are refusals. */
const REFUSALS: Readonly<Record<number, NetworkReason<'proxy'>>> = { 407: 'credentials' }

/**
 * The proxies that the environment names. The lower-case spelling of a variable wins, as in curl. This machine is always
 * reached directly.
 */
export function proxiesOf(env: Environment): ProxyOf {
  const rules = rulesOf(env['no_proxy'] || env['NO_PROXY'] || '')
  return ({ protocol, hostname, port }) => {
    const variable = VARIABLES[protocol]?.find((name) => env[name])
    if (variable === undefined) return undefined
    const host = withoutBrackets(hostname.toLowerCase())
    const number = portOf({ protocol, port })
    if (isHere(host) || rules.some((exempt) => exempt(host, number))) return undefined
    return parseProxy(variable, env[variable] as string)
  }
}

function parseProxy(variable: string, text: string): HttpProxy {
  const address = text.includes('://') ? text : `http://${text}`
  const url = parseUrl(address)
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === '')
    return { variable, origin: 'http://proxy.invalid', invalid: true }
  const { origin, username, password } = url
  if (username === '') return { variable, origin }
  const credentials = `${decoded(username)}:${decoded(password)}`
  return { variable, origin, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** NO_PROXY: hosts with their subdomains, addresses and networks, each with a port or without; `*` for all. */
function rulesOf(text: string): Rule[] {
  return text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(ruleOf)
}

function ruleOf(entry: string): Rule {
  if (entry === '*') return () => true
  if (ip.isValidCIDR(entry)) {
    const [network, bits] = ip.parseCIDR(entry)
    return (host) => {
      const address = addressOf(host)
      return address?.kind() === network.kind() && address.match(network, bits)
    }
  }
  // An IPv6 address with a port has brackets.
  const [, named = entry, port] = (isIP(entry) === 0 && /^(.+):(\d+)$/.exec(entry)) || []
  const name = withoutBrackets(named).replace(/^\*?\./, '')
  const address = addressOf(name)?.toNormalizedString()
  return (host, number) =>
    (port === undefined || Number(port) === number) &&
    (host === name ||
      host.endsWith(`.${name}`) ||
      (address !== undefined && addressOf(host)?.toNormalizedString() === address))
}

function isHere(host: string): boolean {
  return isLoopback(host) || ['loopback', 'unspecified'].includes(addressOf(host)?.range() ?? '')
}

/** An IP address; an IPv4 address that is written as IPv6 as what it is. */
function addressOf(host: string): ip.IPv4 | ip.IPv6 | undefined {
  return isIP(host) === 0 ? undefined : ip.process(host)
}

/** How to open a tunnel. */
export interface ProxyTunnelOptions {
  /** Milliseconds until it must be open. */
  timeout?: number | undefined
  signal?: AbortSignal | undefined
}

/**
 * Opens a connection to a host through a proxy (CONNECT). What is sent on it reaches the host unchanged. Rejects with a
 * ProxyFailure; on an abort, with the reason of the signal.
 */
export async function openTunnel(
  proxy: HttpProxy,
  { host, port }: { host: string; port: number },
  { timeout = TIMEOUT, signal }: ProxyTunnelOptions = {},
): Promise<Socket> {
  signal?.throwIfAborted()
  const socket = await connectTo(proxy, { timeout, signal })
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  const name = nameOf(proxy)
  return new Promise((resolve, reject) => {
    const asking = request({
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...(proxy.authorization && { 'proxy-authorization': proxy.authorization }) },
      createConnection: () => socket,
    })
    const fail = (error: unknown) => {
      release()
      socket.destroy()
      reject(error as Error)
    }
    const release = watch(timeout, signal, fail, () =>
      fail(new ProxyFailure('timeout', `${name} did not answer CONNECT ${authority} in ${timeout} ms`)),
    )
    asking.on('error', () =>
      fail(new ProxyFailure('unavailable', `${name} closed the connection instead of answering CONNECT`)),
    )
    asking.once('connect', ({ statusCode = 0 }, tunnel: Socket, head) => {
      if (statusCode < 200 || statusCode > 299) {
        const reason = REFUSALS[statusCode] ?? (statusCode >= 500 ? 'unavailable' : 'refused')
        return fail(new ProxyFailure(reason, `${name} answered CONNECT ${authority} with HTTP ${statusCode}`))
      }
      release()
      if (head.length > 0) tunnel.unshift(head)
      resolve(tunnel)
    })
    asking.end()
  })
}

/** Opens a connection to a proxy itself. Rejects with a ProxyFailure; on an abort, with the reason of the signal. */
export function connectTo(proxy: HttpProxy, { timeout = TIMEOUT, signal }: ProxyTunnelOptions = {}): Promise<Socket> {
  // The value may contain a password.
  if (proxy.invalid)
    return Promise.reject(new ProxyFailure('invalid', `${proxy.variable} is not an http:// or https:// address`))
  const { protocol, hostname, port } = new URL(proxy.origin)
  const secure = protocol === 'https:'
  const host = withoutBrackets(hostname)
  const target = { host, port: portOf({ protocol, port }), ...ONE_AFTER_THE_OTHER }
  return new Promise((resolve, reject) => {
    const socket = secure
      ? connectTls({ ...target, ...(isIP(host) === 0 && { servername: host }), ALPNProtocols: ['http/1.1'] })
      : connect(target)
    const fail = (error: unknown) => {
      release()
      socket.destroy()
      reject(error as Error)
    }
    const late = () => fail(new ProxyFailure('timeout', `${nameOf(proxy)} cannot be reached in ${timeout} ms`))
    const release = watch(timeout, signal, fail, late)
    // It stays attached: a socket that is destroyed late may still emit an error.
    socket.on('error', (cause) => {
      const why = codeOf(cause) || cause.message
      fail(new ProxyFailure('unreachable', `${nameOf(proxy)} cannot be reached (${why})`))
    })
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      release()
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}

/** Calls `late` after a time, and `aborted` with the reason of the signal. Returns the function that ends both. */
function watch(
  milliseconds: number,
  signal: AbortSignal | undefined,
  aborted: (reason: unknown) => void,
  late: () => void,
): () => void {
  const timer = new Deadline(milliseconds, late)
  const abort = () => aborted(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  return () => {
    timer.clear()
    signal?.removeEventListener('abort', abort)
  }
}

/** A proxy at the beginning of a message, without its credentials. */
function nameOf({ origin, variable }: HttpProxy): string {
  return `The proxy ${origin} (${variable})`
}
