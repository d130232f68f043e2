/** Reads the settings from flags and the configuration file, with the warnings about them. */
import { filesAt, pemOfServer } from '../app/certificates.js'
import { escaped } from '../config/expand.js'
import type { ConfigFile } from '../config/formats/config-file.js'
import { pathName } from '../config/formats/served-names.js'
import { addressName, programName } from '../config/server-names.js'
import {
  ConfigError,
  type ConfigSources,
  type ExaminedConfig,
  examine,
  examineOffline,
  type GroupSettings,
  groupPaths,
  groupsOf,
  type Issue,
  parseListen,
  parseUpstream,
  type Settings,
  unknownKeys,
} from '../config/settings.js'
import { sharedAudiences, suspicious } from '../config/suspicious.js'
import { isObject } from '../config/value.js'
import { whyNotAppendable } from './appendable.js'
import { ineffective, inWords, isChoice } from './chosen.js'
import { chosen, readConfig } from './config-file.js'
import { type Flags, flagOf } from './flags.js'
import { flagAt, serverWithFlags, withFlags } from './from-flags.js'
import type { BridgePlaces } from './status-targets.js'
import { UsageError } from './usage-error.js'

/** A configuration, and the notes about it. */
export interface Configured {
  settings: Settings
  /** The configuration with its references. */
  input: Readonly<Record<string, unknown>>
  /** Ignored parts that the bridge does not know. */
  notes: readonly Issue[]
  /** Values of references that are valid, and probably mistakes. */
  warnings: readonly Issue[]
  /** The program whose format the file has; undefined without a file, and for the common format of many programs. */
  format: string | undefined
}

/** A group, as far as it is known without its servers. */
export interface CheckedGroup extends GroupSettings {
  /** Undefined on stdio. */
  path: string | undefined
}

export interface Checked {
  /** Names of its enabled servers. */
  servers: readonly string[]
  /** Its groups, and where they are served. */
  groups: readonly CheckedGroup[]
  notes: readonly Issue[]
  /** Values that are valid, and probably mistakes. */
  warnings: readonly Issue[]
  /** Further warnings, for which others have to be asked; undefined if nobody has to be. */
  ask: (() => Promise<readonly Issue[]>) | undefined
  format: string | undefined
  /** What clients see of each server that is shown only in part, by its name. */
  chosen: ReadonlyMap<string, string>
}

/** A server that the command line describes: an address or `stdio:…`, or a program and its arguments. */
export type Described = { upstream?: string | undefined; program?: readonly string[] }

/** What a running bridge changes of what flags and files say. */
export interface Layered {
  /** Entries of servers by name; undefined leaves a server out. */
  servers: ReadonlyMap<string, unknown>
  /** Texts of files that are about to be written. */
  texts?: ReadonlyMap<string, string> | undefined
}

type Sources = ConfigSources & Partial<Pick<Layered, 'servers'>>

/** The settings of flags and the file that they name. Throws a UsageError or a ConfigError. */
export function configured(flags: Flags, sources: Sources, server: Described = {}): Configured {
  const given = inputOf(flags, sources, server)
  const { input } = given
  const { settings, issues, warnings } = flags.offline
    ? examineOffline(input, sources)
    : withFiles(examine(input, sources))
  refuse(issues, given)
  const placedWarnings = warnings.map((issue) => placed(issue, given))
  return { settings, input, notes: notesOn(given), warnings: placedWarnings, format: given.file?.config.program }
}

/** Where a bridge with these flags listens; undefined if no flag says it. Its servers are not looked at. Throws a ConfigError. */
export function placesIn(flags: Flags, sources: ConfigSources): BridgePlaces | undefined {
  const { config: path, listen, admin, token, 'token-file': file } = flags
  if ([path, listen, admin, token, file].every((given) => given === undefined)) return undefined
  const options = path === undefined ? {} : readConfig(path, sources.read).options
  const { listen: at, admin: operators, auth, tls } = withFlags(options, flags)
  const places = { listen: at, admin: operators, auth, tls, allowUnauthenticated: true }
  const { settings, issues } = examine({ ...places, mcpServers: {} }, sources)
  const ofPlaces = issues.filter((issue) => (issue.path.split('.')[0] ?? '') in places)
  if (ofPlaces.length > 0) throw new ConfigError(ofPlaces)
  return settings
}

/** What `mcp-bridge demo` serves, and how it is watched. The commands of the servers are their names alone. */
const DEMO = {
  mcpServers: {
    legacy: { command: 'mcp-bridge', args: ['demo', 'server'] },
    modern: { command: 'mcp-bridge', args: ['demo', 'modern-server'] },
  },
  inspect: { payloads: 'all', try: 'loopback' },
  log: { level: 'warn', format: 'pretty' },
  timeouts: { drainTimeout: 1_000 },
}

/** The settings of `mcp-bridge demo`. Throws a UsageError or a ConfigError. */
export function demoSettings(flags: Flags, sources: ConfigSources): Settings {
  const given: Given = { input: withFlags(DEMO, flags), file: undefined, name: undefined, flags }
  const { settings, issues } = examine(given.input, sources)
  refuse(issues, given)
  return settings
}

/** Checks the file that the flags name. Throws a UsageError, or a ConfigError that names every mistake. */
export function checked(flags: Flags, sources: ConfigSources): Checked {
  const given = inputOf(flags, sources)
  const { input, file } = given
  const examined = flags.offline ? examineOffline(input, sources) : withFiles(examine(input, sources))
  const { settings, issues } = examined
  const servers = object(input['mcpServers'])
  const choices = Object.entries(settings.mcpServers)
  const unsure = [
    ...examined.warnings,
    ...suspicious(servers),
    ...sharedAudiences(settings),
    ...choices.flatMap(([name, own]) => ineffective(name, own)),
    ...(flags.offline || settings.audit?.required ? [] : auditIssues(settings)),
  ]
  const warnings = unsure.map((issue) => placed(issue, given))
  const notes = notesOn(given)
  refuse(issues, given, [...notes, ...warnings])
  const parts = new Map(choices.flatMap(([name, own]) => (isChoice(own) ? [[name, inWords(own)]] : [])))
  const names = Object.keys(settings.mcpServers)
  const isShared = settings.redis !== undefined && parseListen(settings.listen).kind !== 'stdio'
  const ask = async () => {
    const asked = await Promise.all([
      settings.auth?.issuers &&
        import('./check-issuers.js').then((own) => own.unavailableIssuers(settings, sources.env)),
      isShared && import('../app/redis-issues.js').then((own) => own.redisIssues(settings)),
    ])
    return asked.flatMap((issues) => (issues || []).map((issue) => placed(issue, given)))
  }
  return {
    servers: names,
    groups: groupsIn(settings),
    notes,
    warnings,
    ask: flags.offline || !(settings.auth?.issuers || isShared) ? undefined : ask,
    format: file?.config.program,
    chosen: parts,
  }
}

function groupsIn(settings: Settings): CheckedGroup[] {
  const listen = parseListen(settings.listen)
  const paths = listen.kind === 'http' ? groupPaths(settings, listen) : undefined
  return [...groupsOf(settings)].map(([name, group]) => ({ ...group, path: paths?.get(name)?.[0] }))
}

/** A configuration before it is checked, and where it comes from. */
interface Given {
  input: Record<string, unknown>
  file: { path: string; config: ConfigFile } | undefined
  /** The name of the server that the command line describes. */
  name: string | undefined
  flags: Flags
  /** Entries that are over those of the file, which has no place for them. */
  layer?: Sources['servers']
}

/** The entry of a server that the command line describes, with the flags for it. An address in a variable stays there. */
export function entryOf(server: Described, flags: Flags, env: ConfigSources['env']): Record<string, unknown> {
  const variable = /^env:(\w+)$/.exec(server.upstream ?? '')?.[1]
  const entry = describedEntry(server, env)
  const isWhole = variable !== undefined && entry?.['url'] === env[variable]
  return serverWithFlags({ ...entry, ...(isWhole && { url: `\${${variable}}` }) }, flags)
}

/** Entries with others over them. Flags are for those that the program was started with. */
function layered(given: unknown, layer: Sources['servers']): unknown {
  if (!layer || layer.size === 0) return given
  const all = new Map([...Object.entries(isObject(given) ? given : {}), ...layer])
  return Object.fromEntries([...all].filter(([, entry]) => entry !== undefined))
}

type Entry = Record<string, unknown> | undefined

function describedEntry({ upstream, program = [] }: Described, env: ConfigSources['env']): Entry {
  const [command, ...args] = program
  return upstream !== undefined
    ? parseUpstream(addressIn(upstream, env))
    : command !== undefined
      ? // The shell or the client that starts the bridge has already replaced variables.
        { command: escaped(command), args: args.map(escaped) }
      : undefined
}

function inputOf(flags: Flags, sources: Sources, server: Described = {}): Given {
  const { config: path } = flags
  const file = path === undefined ? undefined : { path, config: readConfig(path, sources.read) }
  const entry = describedEntry(server, sources.env)
  if (entry === undefined && file === undefined && flags.discover === undefined)
    throw new UsageError(
      'no server: give an address (https://…), a program, a configuration file with --config, or --discover',
    )
  if (flags.token !== undefined && flags['token-file'] !== undefined)
    throw new UsageError('--token and --token-file cannot be combined: give one of them')
  const name = entry && nameOf(entry)
  if (flags.group !== undefined && (name !== undefined || file === undefined))
    throw new UsageError('--group is for the servers of a configuration file: give --config <file>')
  const { servers: given, groups } =
    name !== undefined
      ? { servers: { [name]: entry }, groups: false }
      : file
        ? chosen(file.config, flags)
        : { servers: undefined, groups: undefined }
  const servers = layered(given, sources.servers)
  const withServers = isObject(servers)
    ? Object.fromEntries(
        Object.entries(servers).map(([key, one]) => [
          key,
          isObject(one) && !sources.servers?.has(key) ? serverWithFlags(one, flags) : one,
        ]),
      )
    : servers
  const input = {
    ...withFlags(file?.config.options ?? {}, flags),
    ...(servers !== undefined && { mcpServers: withServers }),
    ...(groups !== undefined && { groups }),
  }
  return { input, file, name, flags, layer: sources.servers }
}

/** The address in `--upstream`, or in the environment variable that it names. Throws a UsageError. */
function addressIn(upstream: string, env: ConfigSources['env']): string {
  const [, name] = /^env:(\w+)$/.exec(upstream) ?? []
  if (name === undefined) return upstream
  const address = env[name]
  if (address) return address
  throw new UsageError(`the environment variable ${name}, which --upstream names, is not set`)
}

/** Adds an issue for each file in the settings that cannot be used. */
function withFiles({ settings, issues, warnings }: ExaminedConfig): ExaminedConfig {
  return { settings, issues: [...issues, ...fileIssues(settings)], warnings }
}

function fileIssues(settings: Settings): Issue[] {
  const { mcpServers, tls, redis } = settings
  const uses = [
    ...Object.entries(mcpServers).map(
      ([name, own]) =>
        () =>
          pemOfServer(name, own, undefined),
    ),
    ...(tls ? [() => filesAt('tls', tls, undefined)] : []),
    ...(redis ? [() => filesAt('redis', redis, undefined)] : []),
  ]
  const ofPem = uses.flatMap((use) => {
    try {
      use()
      return []
    } catch (error) {
      if (error instanceof ConfigError) return [...error.issues]
      throw error
    }
  })
  return [...ofPem, ...(settings.audit?.required ? auditIssues(settings) : [])]
}

/** Why the file of the audit log cannot be used. */
function auditIssues({ audit }: Settings): Issue[] {
  const why = audit?.file === undefined ? undefined : whyNotAppendable(audit.file)
  return why === undefined ? [] : [{ path: 'audit.file', message: `cannot be written: ${why}` }]
}

/** Throws a ConfigError if there are issues. Adds the place of each; `further` ones already have theirs. */
function refuse(issues: readonly Issue[], given: Given, further: readonly Issue[] = []): void {
  if (issues.length === 0) return
  throw new ConfigError([...issues.map((issue) => placed(issue, given)), ...further].toSorted(byPlace))
}

function byPlace({ at: one }: Issue, { at: other }: Issue): number {
  const [a, b] = [one, other].map((at) => at?.match(/\d+/g)?.slice(-2).map(Number) ?? [0, 0]) as [number[], number[]]
  return (a[0] ?? 0) - (b[0] ?? 0) || (a[1] ?? 0) - (b[1] ?? 0)
}

function notesOn(given: Given): readonly Issue[] {
  const { input, file, name } = given
  if (name !== undefined) return []
  const servers = object(input['mcpServers'])
  const entries = Object.fromEntries(Object.entries(servers).map(([key, entry]) => [key, object(entry)]))
  const notes = (file?.config.notes ?? []).map(({ line, column, ...note }) => ({
    ...note,
    ...(line !== undefined && { at: `${file?.path}:${line}:${column}` }),
  }))
  return [...notes, ...unknownKeys({ mcpServers: entries }).map((issue) => placed(issue, given))]
}

/** An issue in terms of the user's input: `mcpServers.<name>.era` may be `--era`, or `servers.<name>.era` in line 3. */
function placed(issue: Issue, { file, name, flags, layer }: Given): Issue {
  const [first = '', ...below] = issue.path.split('.')
  if (first === 'mcpServers' && layer && isOfLayer(below.join('.'), layer)) return issue
  if (name !== undefined && first === 'mcpServers') return atFlag(issue, name, flags)
  if (first !== 'mcpServers') {
    const flag = flagAt(issue.path, flags)
    if (flag !== undefined) return { path: `--${flag}`, message: issue.message }
  }
  const isInFile = file !== undefined && (first === '' || first === 'mcpServers' || first in file.config.options)
  if (!isInFile) return issue
  const { path, line, column } = file.config.place(issue.path)
  return { path, message: issue.message, at: `${file.path}:${line}:${column}` }
}

/** Whether a path below the servers is of an entry of the layer. A name may have dots. */
function isOfLayer(path: string, layer: NonNullable<Sources['servers']>): boolean {
  return [...layer.keys()].some((name) => path === name || path.startsWith(`${name}.`))
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
