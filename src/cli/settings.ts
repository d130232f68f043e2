/** Settings from flags and a configuration file, and what is to be said of them. */
import { filesAt, pemOfServer } from '../bridge/certificates.js'
import { escaped } from '../config/expand.js'
import {
  ConfigError,
  type ConfigSources,
  checkOffline,
  type Issue,
  parseSettings,
  parseUpstream,
  type Settings,
  unknownKeys,
} from '../config/settings.js'
import { suspicious } from '../config/suspicious.js'
import { isObject } from '../config/value.js'
import { addressName, programName } from '../discovery/sources/address.js'
import { pathName } from '../formats/names.js'
import type { ConfigFile } from '../formats/read.js'
import { chosenServers, readConfig } from './config-file.js'
import { type Flags, flagOf } from './flags.js'
import { flagAt, serverWithFlags, withFlags } from './from-flags.js'
import { UsageError } from './usage-error.js'

/** A configuration, and what is to be said of it. */
export interface Configured {
  settings: Settings
  /** What is left out, because the bridge does not know it. */
  notes: readonly Issue[]
  /** The program whose format the file has; undefined without a file, and for the format of many programs. */
  format: string | undefined
}

/** The result of checking a file. */
export interface Checked {
  /** Names of its enabled servers. */
  servers: readonly string[]
  notes: readonly Issue[]
  /** Values that are valid, and probably mistakes. */
  warnings: readonly Issue[]
  format: string | undefined
}

/** A server that the command line describes: an address or `stdio:…`, or a program and its arguments. */
export type Described = { upstream?: string | undefined; program?: readonly string[] }

/** The settings of flags and the file that they name. Throws a UsageError or a ConfigError. */
export function configured(flags: Flags, sources: ConfigSources, server: Described = {}): Configured {
  const given = inputOf(flags, sources, server)
  const settings = explaining(given, () => withFiles(parseSettings(given.input, sources)))
  return { settings, notes: notesOn(given), format: given.file?.config.program }
}

/** What `mcp-bridge demo` serves, and how it is watched. The command of the server is its name alone. */
const DEMO = {
  mcpServers: { demo: { command: 'mcp-bridge', args: ['demo', 'server'] } },
  inspect: { payloads: 'all' },
  log: { level: 'warn', format: 'pretty' },
  timeouts: { drainTimeout: 1_000 },
}

/** The settings of `mcp-bridge demo`. Throws a UsageError or a ConfigError. */
export function demoSettings(flags: Flags, sources: ConfigSources): Settings {
  const given: Given = { input: withFlags(DEMO, flags), file: undefined, name: undefined, flags }
  return explaining(given, () => parseSettings(given.input, sources))
}

/** Checks the file that the flags name. Throws a UsageError or a ConfigError. */
export function checked(flags: Flags, sources: ConfigSources): Checked {
  const given = inputOf(flags, sources)
  const { input, file } = given
  explaining(given, () => (flags.offline ? checkOffline(input, sources) : withFiles(parseSettings(input, sources))))
  const servers = object(input['mcpServers'])
  const enabled = Object.keys(servers).filter((name) => object(servers[name])['disabled'] !== true)
  const warnings = suspicious(servers).map((issue) => placed(issue, given))
  return { servers: enabled, notes: notesOn(given), warnings, format: file?.config.program }
}

/** A configuration before it is checked, and where it comes from. */
interface Given {
  input: Record<string, unknown>
  file: { path: string; config: ConfigFile } | undefined
  /** The name of the server that the command line describes. */
  name: string | undefined
  flags: Flags
}

function inputOf(flags: Flags, sources: ConfigSources, { upstream, program = [] }: Described = {}): Given {
  const { config: path } = flags
  const file = path === undefined ? undefined : { path, config: readConfig(path, sources.read) }
  const [command, ...args] = program
  const entry =
    upstream !== undefined
      ? parseUpstream(addressIn(upstream, sources.env))
      : command !== undefined
        ? // A shell, or the client that starts the bridge, has replaced what is to be replaced.
          { command: escaped(command), args: args.map(escaped) }
        : undefined
  if (entry === undefined && file === undefined && flags.discover === undefined)
    throw new UsageError(
      'no server: give an address (https://…), a program, a configuration file with --config, or --discover',
    )
  const name = entry && nameOf(entry)
  const servers = name !== undefined ? { [name]: entry } : file && chosenServers(file.config, flags.server)
  const withServers = isObject(servers)
    ? Object.fromEntries(
        Object.entries(servers).map(([key, one]) => [key, isObject(one) ? serverWithFlags(one, flags) : one]),
      )
    : servers
  const input = {
    ...withFlags(file?.config.options ?? {}, flags),
    ...(servers !== undefined && { mcpServers: withServers }),
  }
  return { input, file, name, flags }
}

/** What `--upstream` says: itself, or the environment variable that it names. Throws a UsageError. */
function addressIn(upstream: string, env: ConfigSources['env']): string {
  const [, name] = /^env:(\w+)$/.exec(upstream) ?? []
  if (name === undefined) return upstream
  const address = env[name]
  if (address) return address
  throw new UsageError(`the environment variable ${name}, which --upstream names, is not set`)
}

/** The settings, if the certificates and keys that they name can be used. Throws a ConfigError. */
function withFiles(settings: Settings): Settings {
  for (const [name, own] of Object.entries(settings.mcpServers)) pemOfServer(name, own, undefined)
  if (settings.tls) filesAt('tls', settings.tls, undefined)
  if (settings.redis) filesAt('redis', settings.redis, undefined)
  return settings
}

/** Does something that may find mistakes, and adds to each of them where it stands. */
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
  if (name !== undefined) return []
  const servers = object(input['mcpServers'])
  const entries = Object.fromEntries(Object.entries(servers).map(([key, entry]) => [key, object(entry)]))
  return [...(file?.config.notes ?? []), ...unknownKeys({ mcpServers: entries }).map((issue) => placed(issue, given))]
}

/** An issue as it was given: `mcpServers.<name>.era` may be `--era`, or `servers.<name>.era` in line 3. */
function placed(issue: Issue, { file, name, flags }: Given): Issue {
  const [first = ''] = issue.path.split('.')
  if (name !== undefined && first === 'mcpServers') return atFlag(issue, name, flags)
  if (first !== 'mcpServers') {
    const flag = flagAt(issue.path, flags)
    if (flag !== undefined) return { path: `--${flag}`, message: issue.message }
  }
  const isInFile = file !== undefined && (first === 'mcpServers' || first in file.config.options)
  if (!isInFile) return issue
  const { path, line, column } = file.config.place(issue.path)
  return { path, message: issue.message, at: `${file.path}:${line}:${column}` }
}

/** A name for the server that the command line describes. */
function nameOf({ url, socket, command, args }: Record<string, unknown>): string {
  if (typeof socket === 'string') return pathName(socket.replace(/^.*\//s, '').replace(/\.sock(?:et)?$/, ''))
  return pathName(typeof url === 'string' ? addressName(url) : programName(String(command), (args ?? []) as string[]))
}

/** An issue of the server that the command line describes, with the flag that has set it. */
function atFlag({ path, message }: Issue, name: string, flags: Flags): Issue {
  const prefix = `mcpServers.${name}`
  if (path !== prefix && !path.startsWith(`${prefix}.`)) return { path, message }
  const key = path.slice(prefix.length + 1)
  const option = `mcpServers.<name>.${key}`
  const flag = flagAt(option, flags)
  if (flag === undefined) return { path: '--upstream', message }
  const below = option.slice((flagOf(flag)?.option ?? '').length + 1)
  return { path: `--${flag}${below === '' ? '' : ` ${below}`}`, message }
}

function object(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}
