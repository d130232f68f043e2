/** One entry of a client's file: the changes that put the bridge before its server, and those that take it out. */
import { isObject } from '../../config/value.js'
import type { Change } from '../../formats/edit.js'
import { readArguments } from '../arguments.js'
import type { Flags } from '../flags.js'
import { UsageError } from '../usage-error.js'
import type { Launcher } from './launcher.js'

export type Entry = Readonly<Record<string, unknown>>

/** An entry as `wrapping` leaves it: how it starts the bridge, and for which server. */
export interface Wrapped {
  launcher: Launcher
  flags: Flags
  /** The program and its arguments; empty for a server with an address. */
  program: readonly string[]
}

/** Why an entry stays as it is. */
export class Unfit extends Error {
  override name = 'Unfit'
}

const ON_STDIO = ['--listen', 'stdio']
/** The variables that have the address and the headers of a server: other users can read arguments, not variables. */
const ADDRESS = 'MCP_BRIDGE_URL'
const HEADER = 'MCP_BRIDGE_HEADER_'
/** What programs call the address of a server. */
const ADDRESS_KEYS = ['url', 'serverUrl', 'httpUrl']
const TYPES = ['http', 'streamable-http', 'streamableHttp', 'streamable_http', 'sse']
/** Keys that say how the client itself signs in to a server with an address. */
const SIGN_IN = ['oauth', 'auth', 'headersHelper', 'authProviderType']

/** The changes that put the bridge before the server of an entry. Throws an Unfit. */
export function wrapping(entry: Entry, launcher: Launcher): Change[] {
  if (startsBridge(entry)) throw new Unfit('it starts mcp-bridge already')
  if ('command' in entry) return aroundProgram(entry, launcher)
  const key = ADDRESS_KEYS.find((one) => typeof entry[one] === 'string')
  if (key === undefined) throw new Unfit('it has neither a command nor an address')
  return aroundAddress(entry, key, launcher)
}

/** The changes that take the bridge out of an entry. `before` is the entry as it was once, if that is known. */
export function unwrapping(entry: Entry, { flags, program }: Wrapped, before: Entry = {}): Change[] {
  const [command, ...args] = program
  if (command !== undefined)
    return [
      { key: 'command', by: [['command', command]] },
      { key: 'args', by: args.length === 0 && !('args' in before) ? [] : [['args', args]] },
    ]
  const { [ADDRESS]: address, ...env } = isObject(entry['env']) ? entry['env'] : {}
  if (typeof address !== 'string') throw new Unfit(`its environment has no ${ADDRESS}`)
  const headers: Record<string, unknown> = {}
  for (const [name, variable] of variablesIn(flags)) {
    if (variable in env) headers[name] = env[variable]
    delete env[variable]
  }
  const url = address.replace(/^sse\+/, '')
  const type = url === address ? (before['type'] ?? 'http') : 'sse'
  const members = Object.entries({ headers, env }).filter(([, value]) => Object.keys(value).length > 0)
  return [
    { key: 'command', by: [[ADDRESS_KEYS.find((key) => key in before) ?? 'url', url]] },
    { key: 'args', by: [] },
    { key: 'env', by: members },
    ...('type' in entry ? [{ key: 'type', by: [['type', type] as const] }] : []),
  ]
}

/** How an entry starts the bridge, if `wrapping` has made it; a person may have added flags. */
export function wrappedIn(entry: Entry): Wrapped | undefined {
  const words = wordsOf(entry)
  const at = words.findIndex((word, i) => word === ON_STDIO[0] && words[i + 1] === ON_STDIO[1])
  const [command = '', ...args] = words.slice(0, Math.max(0, at))
  if (at < 1) return undefined
  try {
    const { flags, program } = readArguments(words.slice(at), {})
    const isOurs = program.length > 0 ? flags['pass-environment'] : flags.upstream === `env:${ADDRESS}`
    return isOurs ? { launcher: { command, args }, flags, program } : undefined
  } catch (error) {
    if (error instanceof UsageError) return undefined
    throw error
  }
}

/** Whether an entry starts the bridge, by `wrapping` or as a person has written it. */
function startsBridge(entry: Entry): boolean {
  if (wrappedIn(entry)) return true
  const words = wordsOf(entry)
  const at = words.findIndex((word) => /(?:^|[\\/])mcp-bridge(?:$|[@\\/:.])/.test(word))
  return at >= 0 && words.slice(at).join(' ').includes(ON_STDIO.join(' '))
}

function wordsOf({ command, args = [] }: Entry): string[] {
  const words = [command, ...(Array.isArray(args) ? args : [])]
  return words.every((word) => typeof word === 'string') ? words : []
}

function aroundProgram(entry: Entry, launcher: Launcher): Change[] {
  const [command] = wordsOf(entry)
  if (command === undefined) throw new Unfit('its command or arguments are no texts')
  const words = [...launcher.args, ...ON_STDIO, '--pass-environment', '--', command]
  if ('args' in entry)
    return [
      { key: 'command', by: [['command', launcher.command]] },
      { key: 'args', before: words },
    ]
  return [{ key: 'command', by: Object.entries({ command: launcher.command, args: words }) }]
}

function aroundAddress(entry: Entry, key: string, launcher: Launcher): Change[] {
  const { [key]: url, type, headers = {}, env } = entry
  const own = SIGN_IN.find((one) => one in entry)
  if (own !== undefined) throw new Unfit(`the client signs in to this server by itself ("${own}")`)
  if (type !== undefined && !TYPES.includes(String(type))) throw new Unfit(`its type "${type}" is none of mcp-bridge`)
  if (!/^https?:\/\/|^\$/.test(String(url))) throw new Unfit('its address does not begin with https:// or http://')
  if (!isObject(headers) || Object.values(headers).some((value) => typeof value !== 'string'))
    throw new Unfit('its headers are no texts')
  const variables = new Map(Object.keys(headers).map((name, at) => [name, variableFor(name, at)]))
  const args = [
    ...launcher.args,
    ...ON_STDIO,
    '--upstream',
    `env:${ADDRESS}`,
    ...[...variables].flatMap(([name, variable]) => ['--header-env', `${name}=${variable}`]),
  ]
  const environment = {
    ...(isObject(env) ? env : {}),
    [ADDRESS]: `${type === 'sse' ? 'sse+' : ''}${url}`,
    ...Object.fromEntries([...variables].map(([name, variable]) => [variable, headers[name]])),
  }
  const command = Object.entries({ command: launcher.command, args })
  const place = ['env', 'headers'].find((one) => one in entry)
  return [
    { key, by: place === undefined ? [...command, ['env', environment]] : command },
    ...(place === undefined ? [] : [{ key: place, by: [['env', environment] as const] }]),
    ...(place === 'env' && 'headers' in entry ? [{ key: 'headers', by: [] }] : []),
    ...(type === undefined ? [] : [{ key: 'type', by: [['type', 'stdio'] as const] }]),
  ]
}

/** The name of the variable for a header, of which there may be two that differ in signs only. */
function variableFor(header: string, at: number): string {
  return `${HEADER}${at === 0 ? '' : `${at + 1}_`}${header.toUpperCase().replace(/\W/g, '_')}`
}

function variablesIn(flags: Flags): [name: string, variable: string][] {
  return (flags['header-env'] ?? []).map((line) => {
    const at = line.indexOf('=')
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
  })
}
