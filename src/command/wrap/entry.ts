/** One entry of a client's file: the changes that put the bridge before its server, and those that take it out. */

import type { FileChange } from '../../config/formats/edit.js'
import { isObject } from '../../config/value.js'
import { readArguments } from '../arguments.js'
import type { Flags } from '../flags.js'
import { UsageError } from '../usage-error.js'
import { ADDRESS, headersFrom, type StartWords, startAt, startInPlaceOf } from './at-address.js'
import type { Launcher } from './launcher.js'
import { type Remote, remoteIn } from './proxies.js'
import { Unfit } from './unfit.js'

export type ClientEntry = Readonly<Record<string, unknown>>

/** An entry made by `wrapping`: the command of the bridge, and the server. */
export interface Wrapped {
  launcher: Launcher
  flags: Flags
  /** The program and its arguments; empty for a server with an address. */
  program: readonly string[]
}

const ON_STDIO = ['--listen', 'stdio']
/** Added by `wrap --inspect`. */
export const INSPECTED = ['--inspect']
/** A token of RFC 9110. It may begin with dashes, as a flag does. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/
/** Programs' names for the address of a server. */
const ADDRESS_KEYS = ['url', 'serverUrl', 'httpUrl']
const TYPES = ['http', 'streamable-http', 'streamableHttp', 'streamable_http', 'sse']
/** Keys for the client's own sign-in to a server with an address. */
const SIGN_IN = ['oauth', 'auth', 'headersHelper', 'authProviderType', 'oauth_resource', 'scopes']
/** Keys with names of variables that the client passes on, or puts into headers. */
const FROM_VARIABLES = ['env_vars', 'bearer_token_env_var', 'env_http_headers']
/** Variables that affect all servers of a process: proxies, and those of Node.js. */
const OF_PROCESS = /^(?:https?_proxy|all_proxy|no_proxy|node_\w+)$/i

/** The changes that put the bridge before the server of an entry, or replace a proxy. Throws an Unfit. */
export function wrapping(entry: ClientEntry, launcher: Launcher): FileChange[] {
  if (startsBridge(entry)) throw new Unfit('it starts mcp-bridge already')
  if (!isProgram(entry)) return aroundAddress(entry, addressKeyOf(entry), launcher)
  const remote = proxyIn(entry)
  return remote ? inPlaceOf(entry, remote, launcher) : aroundProgram(entry, launcher)
}

/**
 * The server of an entry, as an entry of a bridge configuration. `reference`: what the client replaces besides
 * `${…}`. Throws an Unfit.
 */
export function serverIn(entry: ClientEntry, reference?: RegExp): ClientEntry {
  if (startsBridge(entry)) throw new Unfit('it starts mcp-bridge already')
  const { args, env, cwd, type, headers, oauth } = entry
  const kept = (members: ClientEntry) =>
    Object.fromEntries(Object.entries(members).filter(([, one]) => one !== undefined))
  const remote = isProgram(entry) ? proxyIn(entry) : undefined
  const server = remote
    ? remoteServer(remote, isObject(env) ? env : {})
    : isProgram(entry)
      ? kept({ command: commandOf(entry), args, env, cwd, passEnvironment: true })
      : kept({
          ...(type === 'sse' && { type }),
          url: addressOf(entry, addressKeyOf(entry)).url,
          headers,
          oauth: oauth === false ? oauth : undefined,
        })
  if (entry['disabled'] === true || entry['enabled'] === false) throw new Unfit('it is disabled')
  const variable = FROM_VARIABLES.find((one) => one in entry)
  if (variable !== undefined) throw new Unfit(`it has variables of the client ("${variable}")`)
  if ('envFile' in entry) throw new Unfit('the client reads a file of variables for it ("envFile")')
  // In a bridge configuration, the bridge would replace it differently, or not at all.
  const text = JSON.stringify(server)
  const [found] = text.includes('${') ? ['$'] : (reference?.exec(text) ?? [])
  if (found !== undefined) throw new Unfit(`it has a reference ("${found}…") that the client replaces`)
  return server
}

/** Whether the server of an entry is a program. Throws an Unfit if that is unclear. */
function isProgram(entry: ClientEntry): boolean {
  const isEmpty = entry['command'] === null || entry['command'] === ''
  if (isEmpty && findAddressKey(entry) !== undefined)
    throw new Unfit('it has an empty "command" beside its address: remove it')
  return 'command' in entry && !isEmpty
}

function commandOf(entry: ClientEntry): string {
  const [command] = wordsOf(entry)
  if ('args' in entry && !Array.isArray(entry['args'])) throw new Unfit('its "args" is not a list')
  if (command === undefined) throw new Unfit('its command or an argument is not a string')
  return command
}

function findAddressKey(entry: ClientEntry): string | undefined {
  return ADDRESS_KEYS.find((one) => typeof entry[one] === 'string' && entry[one] !== '')
}

function addressKeyOf(entry: ClientEntry): string {
  const key = findAddressKey(entry)
  if (key === undefined) throw new Unfit('it has neither a command nor an address')
  return key
}

/** The changes that take the bridge out of an entry. `before` is the original entry, if known. */
export function unwrapping(entry: ClientEntry, { flags, program }: Wrapped, before: ClientEntry = {}): FileChange[] {
  const [command, ...args] = program
  if (command !== undefined)
    return [
      { key: 'command', by: [['command', command]] },
      { key: 'args', by: args.length === 0 && !('args' in before) ? [] : [['args', args]] },
    ]
  const all = isObject(entry['env']) ? entry['env'] : {}
  const address = all[ADDRESS]
  if (typeof address !== 'string') throw new Unfit(`its environment has no ${ADDRESS}`)
  const { headers, variables } = headersFrom(flags, all)
  const env = Object.fromEntries(Object.entries(all).filter(([name]) => !variables.includes(name)))
  const url = address.replace(/^sse\+/, '')
  if ('command' in before) return backToProxy(before, { url, headers, env })
  const type = url === address ? (before['type'] ?? 'http') : 'sse'
  const members = Object.entries({ headers, env }).filter(([, value]) => Object.keys(value).length > 0)
  const oauth = flags['no-oauth'] ? [['oauth', false] as const] : []
  return [
    { key: 'command', by: [[ADDRESS_KEYS.find((key) => key in before) ?? 'url', url], ...oauth] },
    { key: 'args', by: [] },
    { key: 'env', by: members },
    ...('type' in entry ? [{ key: 'type', by: [['type', type] as const] }] : []),
  ]
}

/** The bridge's command in an entry made by `wrapping`; a person may have added flags. */
export function wrappedIn(entry: ClientEntry): Wrapped | undefined {
  const found = launched(entry)
  if (!found) return undefined
  const { flags, program } = found
  const isOurs = program.length > 0 ? flags['pass-environment'] : flags.upstream === `env:${ADDRESS}`
  return isOurs ? found : undefined
}

/** The words before and after `--listen stdio`, if an entry may start the bridge on stdio. */
export function launched(entry: ClientEntry): Wrapped | undefined {
  const words = wordsOf(entry)
  const at = words.findIndex((word, i) => word === ON_STDIO[0] && words[i + 1] === ON_STDIO[1])
  const [command = '', ...args] = words.slice(0, Math.max(0, at))
  if (at < 1) return undefined
  try {
    const { flags, program } = readArguments(words.slice(at), {})
    return { launcher: { command, args, flags: flags.inspect ? INSPECTED : [] }, flags, program }
  } catch (error) {
    if (error instanceof UsageError) return undefined
    throw error
  }
}

/** Whether an entry starts the bridge, whoever wrote it. */
function startsBridge(entry: ClientEntry): boolean {
  const found = launched(entry)
  if (found && (wrappedIn(entry) || found.flags.config !== undefined)) return true
  const words = wordsOf(entry)
  const at = words.findIndex((word) => /(?:^|[\\/])mcp-bridge(?:$|[@\\/:.])/.test(word))
  return at >= 0 && words.slice(at).join(' ').includes(ON_STDIO.join(' '))
}

function wordsOf({ command, args = [] }: ClientEntry): string[] {
  const words = [command, ...(Array.isArray(args) ? args : [])]
  return words.every((word) => typeof word === 'string') ? words : []
}

function aroundProgram(entry: ClientEntry, launcher: Launcher): FileChange[] {
  const words = [...launcher.args, ...ON_STDIO, ...(launcher.flags ?? []), '--pass-environment', '--', commandOf(entry)]
  if ('args' in entry)
    return [
      { key: 'command', by: [['command', launcher.command]] },
      { key: 'args', before: words },
    ]
  return [{ key: 'command', by: Object.entries({ command: launcher.command, args: words }) }]
}

function aroundAddress(entry: ClientEntry, key: string, launcher: Launcher): FileChange[] {
  const { type, env } = entry
  const { url, headers } = addressOf(entry, key)
  const start = startAt(url, type === 'sse', headers)
  const flags = entry['oauth'] === false ? ['--no-oauth'] : []
  const { words, environment } = starting(launcher, { ...start, args: [...start.args, ...flags] }, env)
  const command = Object.entries({ command: launcher.command, args: words })
  const place = ['env', 'headers'].find((one) => one in entry)
  return [
    { key, by: place === undefined ? [...command, ['env', environment]] : command },
    ...(place === undefined ? [] : [{ key: place, by: [['env', environment] as const] }]),
    ...(place === 'env' && 'headers' in entry ? [{ key: 'headers', by: [] }] : []),
    ...(type === undefined ? [] : [{ key: 'type', by: [['type', 'stdio'] as const] }]),
    ...(entry['oauth'] === false ? [{ key: 'oauth', by: [] }] : []),
  ]
}

function inPlaceOf(entry: ClientEntry, remote: Remote, launcher: Launcher): FileChange[] {
  const { words, environment } = starting(launcher, startInPlaceOf(remote), entry['env'])
  const changes: [key: string, value: unknown][] = [
    ['command', launcher.command],
    ['args', words],
    ['env', environment],
  ]
  // New members come after the command.
  return changes
    .filter(([key]) => key in entry)
    .map(([key, value]) => {
      const further = key === 'command' ? changes.filter(([one]) => !(one in entry)) : []
      return { key, by: [[key, value], ...further] }
    })
}

function starting({ args, flags = [] }: Launcher, start: StartWords, env: unknown) {
  const words = [...args, ...ON_STDIO, ...flags, ...start.args]
  return { words, environment: { ...(isObject(env) ? env : {}), ...start.env } }
}

/** The original proxy of an entry, with later changes. */
function backToProxy(before: ClientEntry, now: { url: string; headers: ClientEntry; env: ClientEntry }): FileChange[] {
  const [command, ...args] = wordsOf(before)
  const old = proxyIn(before)
  const headers = Object.entries(now.headers).filter(([name, value]) => old?.headers[name] !== value)
  const changed = args.map((word) => {
    if (word === old?.url) return now.url
    const header = headers.find(([name]) => new RegExp(`^${name}:`).test(word))
    return header ? `${header[0]}:${header[1]}` : word
  })
  return [
    { key: 'command', by: [['command', command]] },
    { key: 'args', by: changed.length === 0 ? [] : [['args', changed]] },
    { key: 'env', by: Object.keys(now.env).length === 0 && !('env' in before) ? [] : [['env', now.env]] },
  ]
}

/** The proxy that an entry starts for an address. Throws an Unfit. */
function proxyIn(entry: ClientEntry): Remote | undefined {
  const remote = remoteIn(wordsOf(entry))
  const { env } = entry
  if (remote && env !== undefined && env !== null && !isObject(env)) throw new Unfit('its "env" is not an object')
  const { token } = remote ?? {}
  return remote && token !== undefined && isObject(env) && token in env
    ? { ...remote, headers: { Authorization: `Bearer \${${token}}`, ...remote.headers } }
    : remote
}

/** The server of a proxy for a bridge configuration, with the values of the variables it refers to. */
function remoteServer({ url, isSse, headers, options }: Remote, env: ClientEntry): ClientEntry {
  const own = Object.keys(env).find((name) => OF_PROCESS.test(name))
  if (own !== undefined) throw new Unfit(`its variable ${own} would be for all servers`)
  const filled = (text: string) =>
    text.replace(/\$\{([^${}]+)\}/g, (all, name) => (typeof env[name] === 'string' ? (env[name] as string) : all))
  const server: Record<string, unknown> = {
    ...(isSse && { type: 'sse' }),
    url,
    ...(Object.keys(headers).length > 0 && {
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filled(value)])),
    }),
  }
  for (const { path, value } of options) set(server, path.split('.'), typeof value === 'string' ? filled(value) : value)
  return server
}

/** Merges lists and objects with existing ones. */
function set(record: Record<string, unknown>, [key = '', ...below]: readonly string[], value: unknown): void {
  const before = record[key]
  if (below.length > 0) {
    const inside = isObject(before) ? { ...before } : {}
    set(inside, below, value)
    record[key] = inside
  } else if (Array.isArray(before) && Array.isArray(value)) record[key] = [...before, ...value]
  else record[key] = isObject(before) && isObject(value) ? { ...before, ...value } : value
}

/** The address of a server and the headers for it. Throws an Unfit if the bridge cannot be put before it. */
function addressOf(entry: ClientEntry, key: string): { url: string; headers: ClientEntry } {
  const { [key]: url, type, headers = {}, env } = entry
  const own = SIGN_IN.find((one) => one in entry && !(one === 'oauth' && entry[one] === false))
  if (own !== undefined) throw new Unfit(`the client signs in to this server by itself ("${own}")`)
  if (type !== undefined && !TYPES.includes(String(type))) throw new Unfit(`its type "${type}" is none of mcp-bridge`)
  if (!/^https?:\/\/|^\$/.test(String(url))) throw new Unfit('its address does not begin with https:// or http://')
  if (!isObject(headers) || Object.values(headers).some((value) => typeof value !== 'string'))
    throw new Unfit('its "headers" is not an object of strings')
  const wrong = Object.keys(headers).find((name) => !HEADER_NAME.test(name))
  if (wrong !== undefined) throw new Unfit(`${JSON.stringify(wrong)} is not a valid header name`)
  if (env !== undefined && env !== null && !isObject(env)) throw new Unfit('its "env" is not an object')
  return { url: String(url), headers }
}
