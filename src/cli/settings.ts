/** What flags and a file come to: the settings, and what was left out on the way. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import {
  ConfigError,
  checkOffline,
  type Elsewhere,
  type Issue,
  OPTIONS,
  parseSettings,
  parseUpstream,
  type Settings,
  unknownKeys,
} from '../config/settings.js'
import { suspicious } from '../config/suspicious.js'
import { homeFolder } from '../discovery/home.js'
import { addressName, programName } from '../discovery/sources/address.js'
import { pathName } from '../formats/names.js'
import { type ConfigFile, FormatError, readConfigFile } from '../formats/read.js'

/** Something on the command line that cannot be followed. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** A configuration, and what is to be said of it. */
export interface Configured {
  settings: Settings
  /** What means nothing here, and is left out. */
  notes: readonly Issue[]
  /** The program whose format the file has; undefined without a file, and for `mcpServers` as many have it. */
  format: string | undefined
}

/** What a check of a file has found. */
export interface Checked {
  /** Names of its servers that are enabled. */
  servers: readonly string[]
  notes: readonly Issue[]
  /** What is hardly meant. */
  warnings: readonly Issue[]
  format: string | undefined
}

const FLAGS = {
  upstream: { type: 'string', short: 'u' },
  listen: { type: 'string', short: 'l' },
  config: { type: 'string', short: 'c' },
  server: { type: 'string', short: 's', multiple: true },
  admin: { type: 'string' },
  redis: { type: 'string' },
  era: { type: 'string' },
  session: { type: 'string' },
  tasks: { type: 'string' },
  header: { type: 'string', short: 'H', multiple: true },
  env: { type: 'string', short: 'e', multiple: true },
  cwd: { type: 'string' },
  'public-url': { type: 'string' },
  'allowed-host': { type: 'string', multiple: true },
  'allowed-origin': { type: 'string', multiple: true },
  'allow-unauthenticated': { type: 'boolean' },
  'log-level': { type: 'string' },
  'log-format': { type: 'string' },
  discover: { type: 'string', multiple: true },
  'discover-allow': { type: 'string', multiple: true },
  'discover-loopback': { type: 'boolean' },
  'read-only-tool': { type: 'string', multiple: true },
  registry: { type: 'string' },
  'trust-store': { type: 'string' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  scope: { type: 'string' },
  'callback-port': { type: 'string' },
  account: { type: 'string' },
  'no-oauth': { type: 'boolean' },
  'token-store': { type: 'string' },
  browser: { type: 'string' },
  'no-browser': { type: 'boolean' },
  all: { type: 'boolean' },
  publish: { type: 'boolean' },
  tools: { type: 'string', multiple: true },
  for: { type: 'string' },
  backup: { type: 'string', multiple: true },
  json: { type: 'boolean' },
  offline: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'V' },
} as const

export type Flags = ReturnType<typeof readFlags>['values']

/** Reads the flags and what stands between them. Throws a UsageError. */
export function readFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS, allowPositionals: true, strict: true })
  } catch (cause) {
    const message = cause instanceof Error ? cause.message.replace(/\. To specify a positional.*$/s, '') : String(cause)
    throw new UsageError(message, { cause })
  }
}

/** The settings that flags and the file they name come to. Throws a UsageError or a ConfigError. */
export function configured(
  flags: Flags,
  elsewhere: Elsewhere,
  upstream?: string | undefined,
  program: readonly string[] = [],
): Configured {
  const given = inputOf(flags, elsewhere, upstream, program)
  const settings = explaining(given, () => parseSettings(given.input, elsewhere))
  return { settings, notes: notesOn(given), format: given.file?.config.program }
}

/** Checks the file that the flags name. Throws a UsageError or a ConfigError. */
export function checked(flags: Flags, elsewhere: Elsewhere): Checked {
  const given = inputOf(flags, elsewhere)
  const { input, file } = given
  explaining(given, () => (flags.offline ? checkOffline(input, elsewhere) : parseSettings(input, elsewhere)))
  const servers = object(input['mcpServers'])
  const enabled = Object.keys(servers).filter((name) => object(servers[name])['disabled'] !== true)
  const warnings = suspicious(servers).map((issue) => placed(issue, given))
  return { servers: enabled, notes: notesOn(given), warnings, format: file?.config.program }
}

/** Reads a file of configuration, whoever wrote it. Throws a ConfigError. */
export function readConfig(path: string, read: Elsewhere['read']): ConfigFile {
  let text: string
  try {
    text = read(path)
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause
    const message = `The file ${path} cannot be read: ${cause instanceof Error ? cause.message : cause}`
    throw new ConfigError([{ path: '', message }])
  }
  try {
    return readConfigFile(text, { path: resolve(path), home: homeFolder(), options: OPTIONS })
  } catch (error) {
    if (error instanceof FormatError)
      throw new ConfigError([{ path: '', message: `The file ${path} is ${error.message}` }])
    throw error
  }
}

/** What is to be checked, and where it comes from. */
interface Given {
  input: Record<string, unknown>
  file: { path: string; config: ConfigFile } | undefined
  /** The name of the one server that flags describe. */
  name: string | undefined
  /** Options that flags have decided. */
  flagged: Readonly<Record<string, unknown>>
}

function inputOf(
  flags: Flags,
  elsewhere: Elsewhere,
  upstream?: string | undefined,
  program: readonly string[] = [],
): Given {
  const { config: path } = flags
  const file = path === undefined ? undefined : { path, config: readConfig(path, elsewhere.read) }
  const [command, ...args] = program
  if (upstream !== undefined && command !== undefined)
    throw new UsageError('Give either --upstream or a command after --, not both')
  const entry = upstream !== undefined ? parseUpstream(upstream) : command !== undefined ? { command, args } : undefined
  if (entry === undefined && file === undefined && flags.discover === undefined)
    throw new UsageError(
      'Which server? Give one with --upstream, after --, in a file with --config, or with --discover',
    )
  const name = entry && nameOf(entry)
  const options = file?.config.options ?? {}
  const servers = name === undefined ? chosen(file?.config, flags.server) : { [name]: entry }
  const log = defined({ level: flags['log-level'], format: flags['log-format'] })
  const browser = flags['no-browser'] ? 'none' : flags.browser
  const oauth = defined({ store: flags['token-store'], browser, account: flags.account })
  const flagged = {
    ...defined({
      listen: flags.listen,
      admin: flags.admin,
      publicUrl: flags['public-url'],
      allowedHosts: flags['allowed-host'],
      allowedOrigins: flags['allowed-origin'],
      allowUnauthenticated: flags['allow-unauthenticated'],
      discover: flags.discover,
      discoverAllow: flags['discover-allow'],
      discoverLoopback: flags['discover-loopback'],
      readOnlyTools: flags['read-only-tool'],
      registry: flags.registry,
      trustStore: flags['trust-store'],
    }),
    ...(flags.publish === true && { publish: object(options['publish']) }),
    ...(flags.redis !== undefined && { redis: { ...object(options['redis']), url: flags.redis } }),
    ...(Object.keys(log).length > 0 && { log: { ...object(options['log']), ...log } }),
    ...(Object.keys(oauth).length > 0 && { oauth: { ...object(options['oauth']), ...oauth } }),
  }
  const input = {
    ...options,
    ...flagged,
    ...(servers !== undefined && {
      mcpServers: isRecord(servers)
        ? mapValues(servers, (server) => (isRecord(server) ? withFlags(server, flags) : server))
        : servers,
    }),
  }
  return { input, file, name, flagged }
}

/** Does something that may find mistakes, and says of each where it stands. */
function explaining<T>(given: Given, check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(error.issues.map((issue) => placed(issue, given)))
    throw error
  }
}

function notesOn(given: Given): readonly Issue[] {
  const { input, file, name } = given
  const servers = mapValues(object(input['mcpServers']), object)
  const unknown = unknownKeys({ mcpServers: servers as Record<string, object> })
  const ignored = name === undefined ? unknown.map((issue) => placed(issue, given)) : []
  return [...(name === undefined ? (file?.config.notes ?? []) : []), ...ignored]
}

/** An issue as it was given: `mcpServers.<name>.era` may be `--era`, or `servers.<name>.era` in line 3. */
function placed(issue: Issue, { file, name, flagged }: Given): Issue {
  const [first = ''] = issue.path.split('.')
  if (name !== undefined && first === 'mcpServers') return atFlag(issue, name)
  const inFile = file !== undefined && (first === 'mcpServers' || (first in file.config.options && !(first in flagged)))
  if (!inFile) return issue
  const { path, line, column } = file.config.place(issue.path)
  return { path, message: issue.message, at: `${file.path}:${line}:${column}` }
}

/** What the one server that flags describe is called: nobody has named it. */
function nameOf({ url, command, args }: Record<string, unknown>): string {
  return pathName(typeof url === 'string' ? addressName(url) : programName(String(command), (args ?? []) as string[]))
}

/** Flags for what stands in an entry, where they have other names. */
const AS_FLAG: Readonly<Record<string, string>> = {
  url: 'upstream',
  command: 'upstream',
  args: 'upstream',
  headers: 'header',
}

function atFlag({ path, message }: Issue, name: string): Issue {
  const prefix = `mcpServers.${name}`
  if (path !== prefix && !path.startsWith(`${prefix}.`)) return { path, message }
  const [key = '', ...rest] = path.slice(prefix.length + 1).split('.')
  return { path: [`--${AS_FLAG[key] ?? (key || 'upstream')}`, ...rest].join(' '), message }
}

/** The servers that are asked for by name, or all. Those that have another name here are known by either. */
function chosen(config: ConfigFile | undefined, names: readonly string[] | undefined): unknown {
  const servers = config?.servers
  if (names === undefined || config === undefined || !isRecord(servers)) return servers
  return Object.fromEntries(
    names.map((name) => {
      const served = name in servers ? name : [...config.given].find(([, given]) => given === name)?.[0]
      if (served !== undefined) return [served, servers[served]]
      throw new UsageError(`There is no server "${name}": the file names ${Object.keys(servers).join(', ')}`)
    }),
  )
}

function withFlags(server: Record<string, unknown>, flags: Flags): Record<string, unknown> {
  const headers = Object.fromEntries(
    (flags.header ?? []).map((line) => split(line, ':', "--header wants 'Name: value'")),
  )
  const variables = Object.fromEntries((flags.env ?? []).map((line) => split(line, '=', '--env wants NAME=value')))
  const has = (given: object) => Object.keys(given).length > 0
  const oauth = oauthFlags(flags)
  if ((has(oauth) || flags['no-oauth']) && !('url' in server))
    throw new UsageError(
      '--client-id, --client-secret, --scope, --callback-port and --no-oauth are for servers that have an address',
    )
  if (has(headers) && !('url' in server)) throw new UsageError('--header is for servers that have an address')
  if ((has(variables) || flags.cwd !== undefined) && !('command' in server))
    throw new UsageError('--env and --cwd are for servers that are programs')
  return {
    ...server,
    ...defined({ era: flags.era, session: flags.session, tasks: flags.tasks, cwd: flags.cwd }),
    ...(has(headers) && { headers: { ...object(server['headers']), ...headers } }),
    ...(has(oauth) && { oauth: { ...object(server['oauth']), ...oauth } }),
    ...(flags['no-oauth'] && { oauth: false }),
    ...(has(variables) && { env: { ...object(server['env']), ...variables } }),
  }
}

function oauthFlags(flags: Flags): Record<string, unknown> {
  const { 'client-id': clientId, 'client-secret': clientSecret, scope: scopes, 'callback-port': port } = flags
  // The arguments of a process can be read by others on its machine.
  if (clientSecret !== undefined && !/^\$\{[^}]+\}$/.test(clientSecret))
    throw new UsageError(`--client-secret wants a variable or a file, as in '\${SECRET}' or '\${file:/run/secrets/x}'`)
  if (port !== undefined && !/^\d{1,5}$/.test(port))
    throw new UsageError(`--callback-port wants a number, not "${port}"`)
  return defined({ clientId, clientSecret, scopes, callbackPort: port === undefined ? undefined : Number(port) })
}

function split(line: string, separator: string, usage: string): [string, string] {
  const at = line.indexOf(separator)
  if (at <= 0) throw new UsageError(`${usage}, not "${line.slice(0, 20)}"`)
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

function defined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

function mapValues(record: Record<string, unknown>, change: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}

function object(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
