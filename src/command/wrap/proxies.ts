/**
 * Recognizes proxies for servers with an address in entries of clients, and reads their arguments: mcp-remote 0.15,
 * supergateway 4.0 and the mcp-proxy of Python 0.11. No side effects.
 */
import { type FlagMeaning, MCP_PROXY, MCP_REMOTE, type ProxyFlag, SUPERGATEWAY } from './proxy-flags.js'
import { Unfit } from './unfit.js'

/** The server of a proxy, in the format of the bridge. */
export interface Remote {
  proxy: string
  url: string
  isSse: boolean
  /** May refer to environment variables as `${NAME}`, which the proxy replaces. */
  headers: Readonly<Record<string, string>>
  /** Options of the server in a configuration of the bridge. */
  options: readonly ProxyOption[]
  logLevel: string | undefined
  /** The variable with a bearer token for the proxy, if there is one. */
  token: string | undefined
}

/** An option of a server, and the proxy's flag that set it. */
export interface ProxyOption {
  flag: string
  /** Its path below the server, as in oauth.callbackPort. */
  path: string
  value: unknown
}

interface Proxy {
  /** The name of its package and of its program. */
  name: string
  /** The end of the path of its script, for node. */
  script?: RegExp
  flags: Readonly<Record<string, ProxyFlag>>
  token?: string
  /** Parses the arguments after the address. Throws an Unfit. */
  further(words: readonly string[]): readonly FlagMeaning[]
}

const PROXIES: readonly Proxy[] = [
  { name: 'mcp-remote', script: /(?:^|[\\/])mcp-remote[\\/]dist[\\/]proxy\.js$/, flags: MCP_REMOTE, further: port },
  {
    name: 'supergateway',
    script: /(?:^|[\\/])supergateway[\\/]dist[\\/]index\.js$/,
    flags: SUPERGATEWAY,
    further: nothing,
  },
  { name: 'mcp-proxy', flags: MCP_PROXY, token: 'API_ACCESS_TOKEN', further: nothing },
]

/** Programs that run a package by its name, or a script. */
const RUNNERS: readonly (readonly string[])[] = [
  ...['npx', 'bunx', 'pnpx', 'uvx', 'node'].map((word) => [word]),
  ...['bun x', 'bun run', 'pnpm dlx', 'pnpm exec', 'yarn dlx', 'yarn exec', 'npm exec', 'npm x', 'deno run'].map(split),
  ...['uv tool run', 'pipx run', 'bun'].map(split),
]
/** Flags of these that have a value. */
const VALUED = ['-p', '--package', '--registry', '--cache', '--prefix', '--userconfig', '--from', '--with', '--python']
const ADDRESS = /^https?:\/\//

/** The server that a program is a proxy for; undefined for any other program. Throws an Unfit. */
export function remoteIn(words: readonly string[]): Remote | undefined {
  const found = proxyIn(words)
  if (!found) return undefined
  const { proxy, args } = found
  const { name, flags, further } = proxy
  const meanings: (FlagMeaning & { flag: string })[] = []
  const positional: string[] = []
  for (let at = 0; at < args.length; at++) {
    const word = args[at] as string
    if (!/^-./.test(word)) {
      positional.push(word)
      continue
    }
    const row = Object.hasOwn(flags, word) ? flags[word] : undefined
    if (row === undefined) throw new Unfit(`mcp-bridge does not know the flag ${word} of ${name}`)
    const values = args.slice(at + 1, at + 1 + (row.values ?? 0))
    if (values.length < (row.values ?? 0)) throw new Unfit(`the flag ${word} of ${name} has no value`)
    at += values.length
    const said = typeof row.means === 'function' ? row.means(...values) : row.means
    if (typeof said === 'string') throw new Unfit(`mcp-bridge has no flag for ${word} of ${name}: ${said}`)
    meanings.push(...said.map((meaning) => ({ ...meaning, flag: word })))
  }
  const isNamed = meanings.some(({ url }) => url !== undefined)
  const [address] = isNamed ? [] : positional.splice(0, 1)
  const all = [...meanings, ...further(positional).map((meaning) => ({ ...meaning, flag: 'the callback port' }))]
  const url = address ?? lastOf(all, 'url') ?? ''
  if (!ADDRESS.test(url)) throw new Unfit(`${name} has no address that begins with https:// or http://`)
  const given = all.flatMap(({ option, flag }) => (option ? [{ flag, ...option }] : []))
  const options = [...given, ...redirectIn(all), ...resourceIn(given)]
  return {
    proxy: name,
    url,
    isSse: lastOf(all, 'isSse') ?? false,
    headers: Object.fromEntries(all.flatMap(({ header }) => (header ? [header] : []))),
    options,
    logLevel: lastOf(all, 'logLevel'),
    token: proxy.token,
  }
}

/** The proxy that a command line starts for an address, and its arguments. */
function proxyIn(words: readonly string[]): { proxy: Proxy; args: readonly string[] } | undefined {
  const inShell = /^cmd$/i.test(baseOf(words[0] ?? '')) ? words.findIndex((word) => /^\/c$/i.test(word)) + 1 : 0
  const all = words.slice(inShell)
  const runner = RUNNERS.find((names) => names.every((one, i) => (i === 0 ? baseOf(all[i] ?? '') : all[i]) === one))
  const rest = all.slice(runner?.length ?? 0)
  let at = 0
  if (runner) while (/^-/.test(rest[at] ?? '')) at += VALUED.includes(rest[at] as string) ? 2 : 1
  const word = rest[at] ?? ''
  const proxy = PROXIES.find(({ name, script }) => {
    const version = word.startsWith(`${name}@`) || word.startsWith(`${name}==`)
    const isPackage = version || word === name || word === `npm:${name}` || word.startsWith(`npm:${name}@`)
    return (
      script?.test(word) ||
      (baseOf(word) === name && (!runner || /[\\/]\.bin[\\/]/.test(word))) ||
      (runner && isPackage)
    )
  })
  const args = rest.slice(at + 1)
  return proxy && args.some((arg) => ADDRESS.test(arg)) ? { proxy, args } : undefined
}

/** The name of a program without its folder and the ending that Windows gives it. */
function baseOf(word: string): string {
  return word.replace(/^.*[\\/]/s, '').replace(/\.(?:cmd|exe|bat)$/i, '')
}

/** The redirect URI of a sign-in. A client that the proxy did not register has exactly this one. */
function redirectIn(all: readonly FlagMeaning[]): ProxyOption[] {
  const port = lastOf(all, 'port')
  const host = lastOf(all, 'host') ?? 'localhost'
  const paths = all.flatMap(({ option }) => (option ? [option.path] : []))
  // Nothing comes back to this machine.
  if (paths.includes('oauth.grant')) return []
  const isRegistered = paths.includes('oauth.clientId') || paths.includes('oauth.clientMetadataUrl')
  if (!/^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(host))
    throw new Unfit(`mcp-bridge has no flag for --host of mcp-remote with another host than this machine`)
  if (isRegistered && port === undefined)
    throw new Unfit('its OAuth client is registered with a callback port: write that port after the address')
  if (port === undefined) return []
  const flag = 'the callback port'
  const uri = `http://${host}:${port}${lastOf(all, 'callbackPath') ?? '/oauth/callback'}`
  return isRegistered
    ? [{ flag, path: 'oauth.redirectUri', value: uri }]
    : [{ flag, path: 'oauth.callbackPort', value: port }]
}

/** Without metadata, mcp-remote names only a resource that is given. */
function resourceIn(given: readonly ProxyOption[]): ProxyOption[] {
  const endpoint = given.find(({ path }) => path === 'oauth.endpoints.token')
  if (!endpoint || given.some(({ path }) => path === 'oauth.resource')) return []
  return [{ flag: endpoint.flag, path: 'oauth.resource', value: false }]
}

function lastOf<K extends keyof FlagMeaning>(all: readonly FlagMeaning[], key: K): FlagMeaning[K] | undefined {
  return all.findLast((one) => one[key] !== undefined)?.[key]
}

function port(words: readonly string[]): FlagMeaning[] {
  const [first, ...more] = words
  if (first === undefined) return []
  if (more.length === 0 && /^[1-9]\d{0,4}$/.test(first)) return [{ port: Number(first) }]
  throw new Unfit(`mcp-bridge does not know the words after the address of mcp-remote`)
}

function nothing(words: readonly string[]): FlagMeaning[] {
  if (words.length === 0) return []
  throw new Unfit('mcp-bridge does not know the words after its address')
}

function split(words: string): string[] {
  return words.split(' ')
}
