/** The flags of proxies in entries of clients, and their equivalents in the bridge. */
import { isObject } from '../../config/value.js'
import { Unfit } from './unfit.js'

export interface FlagMeaning {
  url?: string
  /** The server speaks HTTP+SSE only. */
  isSse?: boolean
  header?: readonly [name: string, value: string]
  /** An option of the server in a configuration of the bridge. */
  option?: { path: string; value: unknown }
  logLevel?: string
  /** Parts of the redirect URI of a sign-in. */
  port?: number
  host?: string
  callbackPath?: string
}

export interface ProxyFlag {
  values?: number
  /** Its meaning; nothing if the bridge does it by default. A text is the reason why the bridge cannot do it. */
  means: readonly FlagMeaning[] | string | ((...values: string[]) => readonly FlagMeaning[])
}

/** Milliseconds between the pings of mcp-remote. */
const PING = 30_000
const HOUR = 3_600_000
const BY_ITSELF: ProxyFlag = { means: [] }
const option = (path: string, value: unknown): FlagMeaning[] => [{ option: { path, value } }]
const without = (means: string, values = 0): ProxyFlag => ({ values, means })
const REMOVE = 'remove it from the entry'

export const MCP_REMOTE: Readonly<Record<string, ProxyFlag>> = {
  '--header': { values: 1, means: (line = '') => [{ header: headerOf(line) }] },
  '--transport': { values: 1, means: (strategy) => (strategy === 'sse-only' ? [{ isSse: true }] : []) },
  '--protocol': { values: 1, means: (mode) => (mode === 'legacy' ? option('era', 'legacy') : []) },
  '--allow-http': BY_ITSELF,
  '--enable-proxy': BY_ITSELF,
  '--keep-alive': { means: option('ping', PING) },
  '--ping-interval': { values: 1, means: (seconds = '') => pingOf(seconds) },
  '--ipv4': { means: option('ipv4', true) },
  '--debug': { means: [{ logLevel: 'debug' }] },
  '--silent': { means: [{ logLevel: 'silent' }] },
  '--host': { values: 1, means: (host = '') => [{ host }] },
  '--callback-path': { values: 1, means: (callbackPath = '') => [{ callbackPath }] },
  '--resource': { values: 1, means: (uri = '') => option('oauth.resource', uri.trim() === '' ? false : uri.trim()) },
  '--disable-resource-parameter': { means: option('oauth.resource', false) },
  '--authorize-param': { values: 1, means: (line = '') => parameterOf(line) },
  '--auth-timeout': { values: 1, means: (seconds = '') => waitOf(seconds) },
  '--static-oauth-client-info': { values: 1, means: (json = '') => clientOf(json) },
  '--static-oauth-client-metadata': { values: 1, means: (json = '') => metadataOf(json) },
  '--client-metadata-url': { values: 1, means: (url = '') => option('oauth.clientMetadataUrl', url) },
  '--client-credentials': { means: option('oauth.grant', 'client_credentials') },
  '--ignore-tool': { values: 1, means: (pattern = '') => option('tools.deny', [anyCase(pattern)]) },
  '--header-file': { values: 1, means: (file = '') => option('headersFile', file) },
  '--connect-timeout': without(`the bridge waits 5 s for a connection; ${REMOVE}`, 1),
  '--headers-timeout': { values: 1, means: (seconds = '') => callTimeOf(seconds) },
  // A stream without messages stays open, and is opened again.
  '--body-timeout': { values: 1, means: [] },
  '--auth-success-url': { values: 1, means: (url = '') => option('oauth.successUrl', url) },
  '--disable-cookies': without('the bridge sends the cookies of a session back'),
  '--device-code': { means: option('oauth.grant', 'device') },
  '--token-endpoint': { values: 1, means: (url = '') => option('oauth.endpoints.token', url.trim()) },
  '--use-id-token': { means: option('oauth.bearer', 'id_token') },
}

/** Only those for servers with an address. */
export const SUPERGATEWAY: Readonly<Record<string, ProxyFlag>> = {
  '--sse': { values: 1, means: (url = '') => [{ url, isSse: true }] },
  '--streamableHttp': { values: 1, means: (url = '') => [{ url }] },
  '--header': { values: 1, means: (line = '') => [{ header: headerOf(line) }] },
  '--oauth2Bearer': { values: 1, means: (token = '') => [{ header: ['Authorization', `Bearer ${token}`] }] },
  '--logLevel': { values: 1, means: (level = '') => LEVELS[level] ?? [] },
  '--outputTransport': {
    values: 1,
    means: (transport) => {
      if (transport === 'stdio') return []
      throw new Unfit('supergateway does not serve its client on stdio')
    },
  },
}

const LEVELS: Readonly<Record<string, FlagMeaning[]>> = {
  none: [{ logLevel: 'silent' }],
  debug: [{ logLevel: 'debug' }],
}

/** Only those for servers with an address. */
export const MCP_PROXY: Readonly<Record<string, ProxyFlag>> = {
  '--headers': { values: 2, means: (name = '', value = '') => [{ header: headerOf(`${name}:${value}`) }] },
  '-H': { values: 2, means: (name = '', value = '') => [{ header: headerOf(`${name}:${value}`) }] },
  '--transport': { values: 1, means: [] },
  '--debug': { means: [{ logLevel: 'debug' }] },
  '--verify-ssl': without('name the file of the authority with --ca', 1),
  '--no-verify-ssl': without('the bridge always verifies certificates'),
}

function headerOf(line: string): [string, string] {
  const [, name, value] = /^([\w-]+):\s*(.*)$/s.exec(line) ?? []
  if (name === undefined || value === undefined) throw new Unfit('its header is not like "Name: value"')
  return [name, value]
}

function parameterOf(line: string): FlagMeaning[] {
  const at = line.indexOf('=')
  if (at < 1) throw new Unfit('its --authorize-param is not like name=value')
  return option('oauth.params', { [line.slice(0, at).trim()]: line.slice(at + 1) })
}

/** mcp-remote ignores a value that is no time. */
function pingOf(seconds: string): FlagMeaning[] {
  const number = Number(seconds)
  return number > 0 ? option('ping', Math.min(Math.max(Math.round(number * 1_000), 1_000), HOUR)) : []
}

/** Milliseconds without a sign of life after which a call fails. In mcp-remote, 0 is no limit. */
function callTimeOf(seconds: string): FlagMeaning[] {
  const number = seconds.trim() === '' ? Number.NaN : Number(seconds)
  if (!(number >= 0)) return []
  return option('timeouts.call', number === 0 ? HOUR : Math.round(number * 1_000))
}

/** Milliseconds for which a request waits for a sign-in. The sign-in continues after that. */
function waitOf(seconds: string): FlagMeaning[] {
  const number = Number.parseInt(seconds, 10)
  return number > 0 ? option('oauth.wait', Math.min(number * 1_000, 300_000)) : []
}

function clientOf(json: string): FlagMeaning[] {
  const { client_id: id, client_secret: secret, ...more } = jsonOf('--static-oauth-client-info', json)
  refuse('--static-oauth-client-info', more)
  if (typeof id !== 'string') throw new Unfit('its --static-oauth-client-info has no "client_id"')
  return [...option('oauth.clientId', id), ...(typeof secret === 'string' ? option('oauth.clientSecret', secret) : [])]
}

function metadataOf(json: string): FlagMeaning[] {
  const { scope, client_name: name, ...more } = jsonOf('--static-oauth-client-metadata', json)
  refuse('--static-oauth-client-metadata', more)
  return [
    ...(typeof scope === 'string' ? option('oauth.scopes', scope) : []),
    ...(typeof name === 'string' ? option('oauth.clientName', name) : []),
  ]
}

function jsonOf(flag: string, text: string): Readonly<Record<string, unknown>> {
  if (text.startsWith('@')) throw new Unfit(`its ${flag} is in a file: write it into the entry`)
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // An invalid object.
  }
  throw new Unfit(`its ${flag} is no JSON object`)
}

function refuse(flag: string, more: object): void {
  const [key] = Object.keys(more)
  if (key !== undefined) throw new Unfit(`mcp-bridge has no flag for ${JSON.stringify(key)} in ${flag} of mcp-remote`)
}

/** A glob for a case-insensitive pattern in which only `*` is special. */
function anyCase(pattern: string): string {
  return pattern.replace(/[^*\w.-]/g, '\\$&').replace(/[a-z]/gi, (one) => `[${one.toUpperCase()}${one.toLowerCase()}]`)
}
