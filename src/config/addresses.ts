/**
 * Reads the addresses to listen on, the paths of servers, and the addresses of servers: https:, sse+https:, unix: and stdio:.
 */

import parseCommandLine from 'string-argv'
import { parseUrl, withoutBrackets } from '../base/texts/parse-url.js'
import { CATALOG_PATH, MANIFEST_PATH } from '../base/texts/well-known.js'
import { addressHint } from './address-hint.js'
import { ConfigError } from './error.js'
import { groupPaths } from './groups.js'
import type { Settings } from './schema/schema.js'
import { NEVER_ASKED, NO_ENCODING } from './served-path.js'

export type Listen = { kind: 'stdio' } | HttpListen

export interface HttpListen {
  kind: 'http'
  /** For a unix socket, the host name that clients use. */
  host: string
  port: number
  path: string
  /** Over TLS, with the certificate of `tls`. */
  secure?: boolean
  /** The path of the unix socket; undefined for a host and port. */
  socket?: string
}

/** A unix socket with the path of an endpoint: `unix:/path/to.sock:/mcp`. */
const UNIX = /^unix:(?:\/\/)?([^:\0]+)(?::(\/[^?#]*))?$/

/** Paths of the bridge itself, in every configuration. */
export const RESERVED: readonly string[] = [
  '/healthz',
  '/readyz',
  '/status',
  '/metrics',
  MANIFEST_PATH,
  `${MANIFEST_PATH}.jws`,
  CATALOG_PATH,
]

/** The path of the authorization server that stands before an identity provider (`facade`). */
export const FACADE = '/oauth'

/** Where clients find out where they get tokens, as routes. */
export const TOKEN_ROUTES: readonly string[] = ['protected-resource', 'authorization-server'].flatMap((name) => [
  `/.well-known/oauth-${name}`,
  `/.well-known/oauth-${name}/*`,
])

/** The path of the page where people sign in to servers. */
export const SIGN_IN = '/sign-in'

/** Parses an address to listen on. Throws a ConfigError that names the option. */
export function parseListen(listen: string, option = 'listen'): Listen {
  if (listen === 'stdio') return { kind: 'stdio' }
  const [, socket, at = ''] = UNIX.exec(listen) ?? []
  if (socket !== undefined) return { kind: 'http', host: 'localhost', port: 0, path: endpointAt(at, option), socket }
  const url = /^https?:\/\//.test(listen) ? parseUrl(listen) : undefined
  if (!url || url.search || url.hash || url.username)
    throw new ConfigError([
      {
        path: option,
        message: `"${listen}" has to be stdio, unix:/path/to.sock, or an address like http://127.0.0.1:8080/mcp${addressHint(listen, '/mcp')}`,
      },
    ])
  const secure = url.protocol === 'https:'
  return {
    kind: 'http',
    host: withoutBrackets(url.hostname),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: endpointAt(url.pathname, option),
    ...(secure && { secure }),
  }
}

/** The HTTP address in a setting. Throws a TypeError for stdio. */
export function httpListen(text: string): HttpListen {
  const listen = parseListen(text)
  if (listen.kind !== 'http') throw new TypeError('listen is stdio, not an HTTP address')
  return listen
}

function endpointAt(given: string, option: string): string {
  const path = given === '' || given === '/' ? '/mcp' : given.replace(/(?<!\/)\/+$/, '')
  if (NEVER_ASKED.test(path)) throw new ConfigError([{ path: option, message: `the path ${path} ${NO_ENCODING}` }])
  return path
}

/** The entry of a server that the command line names by its address or its command. Throws a ConfigError. */
export function parseUpstream(text: string): Record<string, unknown> {
  const wrong = (message: string) => new ConfigError([{ path: '', message }])
  if (text.startsWith('stdio:')) {
    const [command, ...args] = parseCommandLine(text.slice('stdio:'.length))
    if (command === undefined)
      throw wrong('stdio: needs a command, as in stdio:"npx -y @modelcontextprotocol/server-everything"')
    return { command, args }
  }
  if (/^https?:\/\//.test(text)) return { url: text }
  if (/^sse\+https?:\/\//.test(text)) return { url: text.slice('sse+'.length), type: 'sse' }
  const [, sse, address = text] = /^(sse\+)?(unix:.*)$/s.exec(text) ?? []
  const [, socket, path = '/mcp'] = UNIX.exec(address) ?? []
  if (socket !== undefined) return { url: `http://localhost${path}`, socket, ...(sse && { type: 'sse' }) }
  throw wrong(
    `"${text}" is not a server: give http(s)://…, sse+http(s)://…, unix:/path/to.sock:/mcp or stdio:"command args"${addressHint(text)}`,
  )
}

/** The command of "oauth.browser" and its arguments; `none` for no browser, undefined for the system's. */
export function browserOf({ oauth }: Settings): readonly string[] | 'none' | undefined {
  const { browser } = oauth
  return browser === undefined || browser === 'none' ? browser : parseCommandLine(browser)
}

/**
 * Paths of the endpoints of each server by name: its own path, and for an only server also the path of `listen`, unless a
 * group has it.
 */
export function servedPaths(settings: Settings, listen: HttpListen): ReadonlyMap<string, readonly string[]> {
  const { path } = listen
  const entries = Object.entries(settings.mcpServers)
  const [, folder, last] = /^(.*\/)([^/]*)$/.exec(path) as unknown as [string, string, string]
  const isTaken = [...groupPaths(settings, listen).values()].flat().includes(path)
  return new Map(
    entries.map(([name, server]) => {
      const own = server.path ?? `${folder}${name}/${last}`
      return [name, entries.length === 1 && own !== path && !isTaken ? [path, own] : [own]]
    }),
  )
}

/** Additional paths of an endpoint, for HTTP+SSE clients. */
export function ssePaths(path: string): { stream: string; messages: string } {
  const folder = path.replace(/[^/]*$/, '')
  return { stream: `${folder}sse`, messages: `${folder}message` }
}

/** Whether only this machine can reach it. */
export function isOnThisMachine(listen: Listen): boolean {
  return listen.kind === 'stdio' || listen.socket !== undefined || isLoopback(listen.host)
}

/** Addresses of IPv4, also as IPv6 writes them: ::ffff:127.0.0.1, which URLs write ::ffff:7f00:1. */
const LOOPBACK_ADDRESS = /^(?:::ffff:)?127(?:\.[0-9]{1,3}){3}$|^::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}$/

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || LOOPBACK_ADDRESS.test(host)
}
