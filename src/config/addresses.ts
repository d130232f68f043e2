/** Where the bridge listens, where it serves what, and what stands for a server on a command line. */
import parseCommandLine from 'string-argv'
import { ConfigError } from './error.js'
import type { Settings } from './schema.js'

export type Listen = { kind: 'stdio' } | { kind: 'http'; host: string; port: number; path: string }

/** Paths of the bridge itself, whatever it serves. */
export const RESERVED: readonly string[] = [
  '/healthz',
  '/readyz',
  '/metrics',
  '/.well-known/mcp.json',
  '/.well-known/mcp.json.jws',
]

/** Reads where to listen. Throws a ConfigError that names the option. */
export function parseListen(listen: string, option = 'listen'): Listen {
  if (listen === 'stdio') return { kind: 'stdio' }
  const url = /^http:\/\//.test(listen) && URL.canParse(listen) ? new URL(listen) : undefined
  if (!url || url.search || url.hash || url.username)
    throw new ConfigError([
      { path: option, message: `"${listen}" has to be stdio or an address like http://127.0.0.1:8080/mcp` },
    ])
  return {
    kind: 'http',
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 80 : Number(url.port),
    path: url.pathname === '/' ? '/mcp' : url.pathname.replace(/(?<!\/)\/+$/, ''),
  }
}

/** The entry that an address or a command line on the command line stands for. Throws a ConfigError. */
export function parseUpstream(text: string): Record<string, unknown> {
  const wrong = (message: string) => new ConfigError([{ path: '--upstream', message }])
  if (text.startsWith('stdio:')) {
    const [command, ...args] = parseCommandLine(text.slice('stdio:'.length))
    if (command === undefined)
      throw wrong('stdio: wants a command, as in stdio:"npx -y @modelcontextprotocol/server-everything"')
    return { command, args }
  }
  if (/^https?:\/\//.test(text)) return { url: text }
  if (/^sse\+https?:\/\//.test(text)) return { url: text.slice('sse+'.length), type: 'sse' }
  throw wrong(`"${text}" is no server: give stdio:"command args", http(s)://… or sse+http(s)://…`)
}

/** The command that "oauth.browser" names, and its arguments; `none` for no browser, undefined for the system's. */
export function browserOf({ oauth }: Settings): readonly string[] | 'none' | undefined {
  const { browser } = oauth
  return browser === undefined || browser === 'none' ? browser : parseCommandLine(browser)
}

/** Paths of the endpoints of each server, by its name: one of its own, and the address itself where it is the only one. */
export function servedPaths(
  { mcpServers }: Settings,
  { path }: Listen & { kind: 'http' },
): ReadonlyMap<string, readonly string[]> {
  const entries = Object.entries(mcpServers)
  const [, folder, last] = /^(.*\/)([^/]*)$/.exec(path) as unknown as [string, string, string]
  return new Map(
    entries.map(([name, server]) => {
      const own = server.path ?? `${folder}${name}/${last}`
      return [name, entries.length === 1 && own !== path ? [path, own] : [own]]
    }),
  )
}

/** Paths beside an endpoint, for clients of HTTP+SSE. */
export function ssePaths(path: string): { stream: string; messages: string } {
  const folder = path.replace(/[^/]*$/, '')
  return { stream: `${folder}sse`, messages: `${folder}message` }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.[0-9]{1,3}){3}$/.test(host)
}
