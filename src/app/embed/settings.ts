/** Settings from the options that a program gives. */
import process from 'node:process'
import { readNamed } from '../../base/net/readable.js'
import { didYouMean } from '../../config/option-synonyms.js'
import {
  ConfigError,
  OPTIONS,
  parseSettings,
  parseUpstream,
  problemWithPath,
  type Settings,
} from '../../config/settings.js'
import { isObject } from '../../config/value.js'
import type { Serve } from '../../mcp/ports/transport.js'
import type { CommonOptions, InProcessEntry, ServerEntry } from './options.js'

/** Where an application serves the bridge, and whether it knows its callers. */
export interface EmbeddedPlace {
  /** The path of the endpoint, and the option that sets it. */
  path: string
  option: string
  /** Servers and groups are below that path, and not beside it. */
  isFolder?: boolean
  /** It tells callers apart. */
  hasPrincipals: boolean
}

/** Settings, and the servers that are in this process. */
export interface Embedded {
  settings: Settings
  inProcess: ReadonlyMap<string, Serve>
  env: Readonly<Record<string, string | undefined>>
}

/** The name of the only server, and the command of servers in this process, which is never run. */
const ONLY = 'server'
const NO_COMMAND = 'a server in this process'
/** The application has addresses of its own; this one is only checked. */
const OWN_HOST = 'http://localhost'

/** The options of a configuration file that mean something in a program. Those of the file alone are for a process of its own. */
const IN_PROGRAMS: ReadonlySet<string> = new Set<keyof CommonOptions>([
  'upstream',
  'mcpServers',
  'groups',
  'auth',
  'publicUrl',
  'allowedHosts',
  'allowedOrigins',
  'trustedProxies',
  'oauth',
  'stateKeys',
  'compat',
  'limits',
  'timeouts',
  'log',
  'env',
])
/** What the bridge calls of a log. */
const LEVELS = ['debug', 'info', 'warn', 'error'] as const
const ONLY_COMMAND = 'means nothing in a program, only for the command: leave it out'
const NO_SERVER =
  'names no server: add one, as in { "upstream": "https://example.com/mcp" } or { "mcpServers": { "files": { "command": "npx", "args": ["a-server"] } } }'

/** Checks options and fills in the defaults. Throws a ConfigError that names every mistake. */
export function settingsOf(given: CommonOptions, place: EmbeddedPlace): Embedded {
  const { path, option, isFolder = false, hasPrincipals } = place
  const options = forPrograms(given)
  const wrong = mistakeIn(place)
  if (wrong !== undefined) throw new ConfigError([{ path: option, message: wrong }])
  const { upstream, mcpServers = {}, groups, env = process.env, auth, ...others } = options
  if (upstream !== undefined && Object.keys(mcpServers).length > 0)
    throw new ConfigError([{ path: 'upstream', message: 'cannot be combined with "mcpServers": put the server there' }])
  if (auth && hasPrincipals)
    throw new ConfigError([{ path: 'principal', message: 'cannot be combined with "auth": both say who calls' }])
  const entries: Readonly<Record<string, ServerEntry>> =
    upstream === undefined ? mcpServers : { [ONLY]: parseUpstream(upstream) as unknown as ServerEntry }
  // What is no object stays as it is, for the schema to name.
  const placed = (name: string, entry: unknown): unknown =>
    isFolder && isObject(entry) ? { ...entry, path: `${path}${String(entry['path'] ?? `/${name}/mcp`)}` } : entry
  const inProcess = new Map<string, Serve>()
  const servers = Object.entries(entries).map(([name, entry]) => {
    if (!isInProcess(entry)) return [name, placed(name, entry)]
    const { serve, ...own } = entry
    inProcess.set(name, serve)
    return [name, placed(name, { ...own, command: NO_COMMAND })]
  })
  const input = {
    ...others,
    ...(auth && { auth }),
    mcpServers: isObject(entries) ? Object.fromEntries(servers) : entries,
    ...(groups !== undefined && {
      groups: isObject(groups)
        ? Object.fromEntries(Object.entries(groups).map(([name, group]) => [name, placed(name, group)]))
        : groups,
    }),
    listen: OWN_HOST + path,
  }
  const settings = inWordsOf(option, () =>
    parseSettings(input, { env, read: (file) => readNamed(file).toString('utf8') }),
  )
  return { settings: hasPrincipals ? Object.assign(settings, { several: true }) : settings, inProcess, env }
}

/** The options that are set. Throws a ConfigError if there is no server among them, or an option that is not for programs. */
function forPrograms(options: CommonOptions): CommonOptions {
  const set = Object.entries(options).filter(([, value]) => value !== undefined)
  const issues = set
    .filter(([name]) => !IN_PROGRAMS.has(name))
    .map(([name]) => ({
      path: name,
      message: OPTIONS.includes(name) ? ONLY_COMMAND : `is not an option${didYouMean(name, [...IN_PROGRAMS])}`,
    }))
  const { upstream, mcpServers, env } = options as Readonly<Record<string, unknown>>
  if (upstream === undefined && Object.keys(mcpServers ?? {}).length === 0)
    issues.push({ path: 'mcpServers', message: NO_SERVER })
  if (upstream !== undefined && typeof upstream !== 'string')
    issues.push({ path: 'upstream', message: 'has to be a string, as in "https://example.com/mcp"' })
  if (env !== undefined && !isObject(env))
    issues.push({ path: 'env', message: 'has to be an object with variables, such as process.env' })
  if (issues.length > 0) throw new ConfigError(issues)
  return Object.fromEntries(set)
}

/** Why the endpoint cannot be at a path; undefined if it can. */
function mistakeIn({ path, isFolder }: EmbeddedPlace): string | undefined {
  if (typeof path !== 'string') return 'has to be a path, such as "/mcp"'
  if (/[:*]/.test(path))
    return `"${path}" has a parameter, and the endpoint has one address: write a path without parameters, and tell callers apart with "principal"`
  // Routes of an application are exact; requests for `fetch` are routed here.
  const served = isFolder ? path : path.replace(/(?<!\/)\/+$/, '')
  const problem = served === '' ? undefined : problemWithPath(served)
  return problem && `"${path}" ${problem}`
}

/** Throws a ConfigError if a function of the application is something else. */
export function checkFunctions({ principal, logger }: { principal?: unknown; logger?: unknown }): void {
  const issues = []
  if (principal !== undefined && typeof principal !== 'function')
    issues.push({ path: 'principal', message: 'has to be a function that returns the name of the caller of a request' })
  const lacks = LEVELS.find(
    (level) => logger && typeof (Object(logger) as Record<string, unknown>)[level] !== 'function',
  )
  if (lacks !== undefined)
    issues.push({
      path: 'logger',
      message: `has to be a log with the functions ${LEVELS.join(', ')}, such as console: it has no ${lacks}`,
    })
  if (issues.length > 0) throw new ConfigError(issues)
}

/** Issues of the address to listen at, which no application sets, become issues of the option that it sets. */
function inWordsOf<T>(option: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(error.issues.map((issue) => (issue.path === 'listen' ? { ...issue, path: option } : issue)))
  }
}

function isInProcess(entry: ServerEntry): entry is InProcessEntry {
  return isObject(entry) && 'serve' in entry && typeof entry.serve === 'function'
}
