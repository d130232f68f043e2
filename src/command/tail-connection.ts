/** Connects `mcp-bridge tail` to the inspector of a bridge, and explains failures. */
import { get as getHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { get as getHttps } from 'node:https'
import { INSPECT } from '../app/inspector-path.js'
import { proxyAgent } from '../base/net/agent.js'
import { connectTo, type HttpProxy, proxiesOf } from '../base/net/proxy.js'
import { parseUrl } from '../base/texts/parse-url.js'
import { printable } from '../base/texts/printable.js'
import { causeOf, whatOf } from '../servers/transport/causes.js'
import { UsageError } from './usage-error.js'

/** The address of an inspector. */
export interface InspectorTarget {
  url: URL
  token: string | undefined
  /** Its socket; undefined for the host and port of the URL. */
  socketPath: string | undefined
}

/** A unix socket, and the token. */
const UNIX = /^unix:(?:\/\/)?([^:#\0]+)[^#]*(?:#(.*))?$/

/** The place that an address names, and the token after its #. Throws a UsageError. */
export function placeAt(address: string, command: 'status' | 'tail'): InspectorTarget {
  const [, socketPath, own = ''] = UNIX.exec(address) ?? []
  const url = parseUrl(socketPath === undefined ? address : 'http://localhost')
  if (!url) throw new UsageError(`${printable(address)} is not a valid address`, command)
  const token = socketPath === undefined ? url.hash.slice(1) : own
  return { url, token: token === '' ? undefined : token, socketPath }
}

/** What an inspector serves at a place. */
export function inspectorAt(place: InspectorTarget, what: 'events' | 'status'): InspectorTarget {
  return { ...place, url: new URL(`${INSPECT}/${what}`, place.url) }
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Sends a request. Resolves to the answer, before its body. Rejects if nothing is reachable, and if the signal aborts. */
export function connect(
  { url, token, socketPath }: InspectorTarget,
  payloads: boolean,
  env: Environment,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  if (payloads) url.searchParams.set('payloads', '')
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const proxy = socketPath === undefined ? proxiesOf(env)(url) : undefined
  if (proxy && url.protocol === 'http:') return connectVia(proxy, url, headers)
  return new Promise((resolve, reject) => {
    const get = url.protocol === 'https:' ? getHttps : getHttp
    const way = socketPath !== undefined ? { socketPath } : { agent: proxy ? proxyAgent(proxy, url.protocol) : false }
    get(url, { headers, ...way, ...(signal && { signal }) }, resolve).once('error', reject)
  })
}

/** Without TLS the proxy receives the request itself: most proxies open tunnels only to port 443. */
async function connectVia(proxy: HttpProxy, url: URL, headers: OutgoingHttpHeaders): Promise<IncomingMessage> {
  const socket = await connectTo(proxy)
  const { authorization } = proxy
  const all = { ...headers, host: url.host, ...(authorization && { 'proxy-authorization': authorization }) }
  const path = `${url.origin}${url.pathname}${url.search}`
  return new Promise((resolve, reject) => {
    getHttp({ path, headers: all, createConnection: () => socket }, resolve).once('error', reject)
  })
}

/** Why a bridge is unreachable, and what to do. The part after # is secret. */
export function unreachable({ url, socketPath }: InspectorTarget, error: unknown): string {
  const what = error instanceof Error ? whatOf(error) : String(error)
  const next = causeOf(error)?.next
  const place = socketPath ?? url.origin
  return [`cannot connect to ${place}: ${what}`, ...(next === undefined ? [] : [`  ${next}`])].join('\n')
}

/** Why a bridge shows nothing, by the status of its answer. */
export function refusalOf(status: number, { token }: InspectorTarget): string {
  if (status === 401 && token !== undefined)
    return 'the bridge does not know this token: it may have been started again, so give the address that it printed then'
  if (status === 401)
    return 'the bridge requires its token: give the whole address that it printed, with the part after #'
  if (status === 404) return 'there is no inspector at this address: start the bridge with --inspect'
  if (status === 407)
    return 'a proxy requires a user and a password: put them into HTTP_PROXY, or the host into NO_PROXY'
  return `the bridge answered ${status}`
}
