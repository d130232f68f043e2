/**
 * The configuration files of programs that use MCP servers: how to recognize them, where they name servers, and how to
 * translate entries.
 */
import { isObject } from '../value.js'

/** An object of a configuration file. */
export type Entry = Readonly<Record<string, unknown>>

/** A program, and the format of its file. */
export interface ProgramFormat {
  name: string
  /** The keys that lead to its servers. */
  servers: readonly string[]
  /** Members next to the servers may be options of mcp-bridge. */
  mayHaveOptions: boolean
  /** Translates an entry into the format of `mcpServers`. Other programs' names for keys are understood anyway. */
  translate?(entry: Entry): Entry
}

/** Paths of files, with slashes. Some programs can be recognized only by the path. */
const PATHS: readonly [path: RegExp, name: string][] = [
  [/claude_desktop_config\.json$/i, 'Claude Desktop'],
  [/(?:^|\/)\.cursor\/mcp\.json$/, 'Cursor'],
  [/(?:^|\/)\.mcp\.json$|(?:^|\/)\.claude\.json$/, 'Claude Code'],
  [/(?:^|\/)windsurf\/mcp_config\.json$/, 'Windsurf'],
  [/(?:^|\/)\.gemini\/settings\.json$/, 'Gemini CLI'],
]

const VS_CODE = { name: 'VS Code', mayHaveOptions: false }

/** The program of a file; undefined if the file has no servers. */
export function programOf(file: Entry, path: string): ProgramFormat | undefined {
  if (isObject(file['context_servers']))
    return { name: 'Zed', servers: ['context_servers'], mayHaveOptions: false, translate: zed }
  if (isObject(file['mcp_servers']))
    return { name: 'Codex', servers: ['mcp_servers'], mayHaveOptions: false, translate: codex }
  if ('mcpServers' in file) return withMcpServers(file, path)
  if ('servers' in file) return { ...VS_CODE, servers: ['servers'], mayHaveOptions: true }
  const { mcp } = file
  if (!isObject(mcp)) return undefined
  const nested = isObject(mcp['servers'])
  const entries = Object.values(nested ? (mcp['servers'] as Entry) : mcp)
  const keys = nested ? ['mcp', 'servers'] : ['mcp']
  if (entries.some((entry) => isObject(entry) && /^(?:local|remote)$/.test(String(entry['type']))))
    return { name: 'opencode', servers: keys, mayHaveOptions: false, translate: opencode }
  return nested ? { ...VS_CODE, servers: keys } : undefined
}

function withMcpServers(file: Entry, path: string): ProgramFormat {
  const servers = ['mcpServers']
  const entries = isObject(file['mcpServers']) ? Object.values(file['mcpServers']).filter(isObject) : []
  const known = PATHS.find(([pattern]) => pattern.test(path.replaceAll('\\', '/')))?.[1]
  if (known === 'Gemini CLI' || entries.some((entry) => 'httpUrl' in entry))
    return { name: 'Gemini CLI', servers, mayHaveOptions: false, translate: gemini }
  if (known) return { name: known, servers, mayHaveOptions: false }
  if (entries.some((entry) => 'serverUrl' in entry)) return { name: 'Windsurf', servers, mayHaveOptions: true }
  return { name: 'mcpServers', servers, mayHaveOptions: true }
}

/** Other programs' names for the same key. */
const WORDS: readonly [theirs: string, ours: string][] = [
  ['serverUrl', 'url'],
  ['httpUrl', 'url'],
  ['environment', 'env'],
  ['http_headers', 'headers'],
]

/** Keys for which an empty string means missing. */
const MAY_BE_EMPTY: readonly string[] = [
  'command',
  'url',
  'serverUrl',
  'httpUrl',
  'type',
  'cwd',
  'env',
  'headers',
  'args',
]
/** Programs' keys that enable a server. */
const SWITCHES: readonly string[] = ['enabled', 'isEnabled', 'isActive', 'active']

/** Translates an entry into the format of `mcpServers`. */
export function translated(given: Entry, program: ProgramFormat): Record<string, unknown> {
  const entry = withoutEmpty(given)
  const words = { ...(program.translate?.(entry) ?? entry) }
  for (const [theirs, ours] of WORDS) {
    const value = words[theirs]
    delete words[theirs]
    if (value !== undefined) words[ours] ??= value
  }
  const isOff = isSet(words['disabled'], true) || SWITCHES.some((key) => isSet(words[key], false))
  for (const key of SWITCHES) delete words[key]
  const { command, type, oauth, ...rest } = words
  const [first, ...args] = Array.isArray(command) ? (command as unknown[]) : [command]
  return {
    ...rest,
    ...(oauth !== undefined && { oauth: program.name === 'mcpServers' ? oauth : signIn(oauth) }),
    ...(first !== undefined && { command: first }),
    ...(args.length > 0 && { args: [...args, ...(Array.isArray(rest['args']) ? rest['args'] : [])] }),
    ...(isOff && { disabled: true }),
    ...(type === 'local' ? { type: 'stdio' } : type !== undefined && type !== 'remote' && { type }),
  }
}

/** An entry without empty members: null, and empty texts where they mean missing. */
export function withoutEmpty(entry: Entry): Entry {
  const isEmpty = (key: string, value: unknown) => value === '' && MAY_BE_EMPTY.includes(key)
  return withoutNull(Object.fromEntries(Object.entries(entry).filter(([key, value]) => !isEmpty(key, value))))
}

function withoutNull(entry: Entry): Entry {
  const members = Object.entries(entry).filter(([, value]) => value !== null)
  return Object.fromEntries(members.map(([key, value]) => [key, isObject(value) ? withoutNull(value) : value]))
}

/** Whether a switch has this value, possibly as a text. */
function isSet(value: unknown, position: boolean): boolean {
  return value === position || (typeof value === 'string' && value.toLowerCase() === String(position))
}

/** Other programs' sign-in options with the same meaning. Discovery finds the rest. */
function signIn(oauth: unknown): unknown {
  if (oauth === false || !isObject(oauth)) return oauth === false ? false : {}
  const { clientId, clientSecret, callbackPort, scopes = oauth['scope'] } = oauth
  const known = { clientId, clientSecret, callbackPort, scopes }
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined && value !== ''))
}

/** An entry's name for a key of mcp-bridge. */
export function originalKey(given: Entry, key: string): string {
  const entry = withoutEmpty(given)
  if (key in entry) return key
  return WORDS.find(([theirs, ours]) => ours === key && theirs in entry)?.[0] ?? key
}

/** `source` says who has made the entry. */
function zed({ source: _source, ...rest }: Entry): Entry {
  return plainOfZed(rest)
}

/**
 * An entry of Zed with the members of `mcpServers`: its `command` may be an object with path, arguments and variables. Entries of
 * extensions, which Zed itself starts, have none.
 */
export function plainOfZed(entry: Entry): Entry {
  const { command, ...rest } = entry
  if (!isObject(command)) return entry
  const { path, args, env } = command
  return { ...rest, command: path, ...(args !== undefined && { args }), ...(env != null && { env }) }
}

/** Secrets are given by the names of environment variables. */
function codex(entry: Entry): Record<string, unknown> {
  const {
    bearer_token_env_var: token,
    env_http_headers: fromEnv,
    env_vars: variables,
    http_headers: headers,
    startup_timeout_sec: starts,
    tool_timeout_sec: calls,
    ...rest
  } = entry
  const named = Array.isArray(variables) ? variables.filter((name) => typeof name === 'string') : []
  const timeouts = { ...seconds('initialize', starts), ...seconds('call', calls) }
  const all = {
    ...record(headers),
    ...Object.fromEntries(Object.entries(record(fromEnv)).map(([name, variable]) => [name, `\${${variable}}`])),
    ...(typeof token === 'string' && { Authorization: `Bearer \${${token}}` }),
  }
  return {
    ...rest,
    ...(Object.keys(all).length > 0 && { headers: all }),
    ...(named.length > 0 && {
      env: { ...Object.fromEntries(named.map((name) => [name, `\${${name}:-}`])), ...record(rest['env']) },
    }),
    ...(Object.keys(timeouts).length > 0 && { timeouts }),
  }
}

function seconds(name: string, value: unknown): Record<string, number> {
  return typeof value === 'number' && value > 0 ? { [name]: Math.round(value * 1_000) } : {}
}

/** Variables are `{env:NAME}`, files `{file:path}`. */
function opencode(entry: Entry): Record<string, unknown> {
  return deep(entry, (text) =>
    text
      .replace(/\{env:([A-Za-z_]\w*)\}/g, (_all, name) => `\${${name}}`)
      .replace(/(?<!\$)\{file:([^}]+)\}/g, (_all, path) => `\${file:${path}}`),
  )
}

/** Variables may be `$NAME`. */
function gemini(entry: Entry): Record<string, unknown> {
  return deep(entry, (text) => text.replace(/\$([A-Za-z_]\w*)/g, (_all, name) => `\${${name}}`))
}

/** The value with all strings replaced. */
export function deep<T>(value: T, change: (text: string) => string): T {
  if (typeof value === 'string') return change(value) as T
  if (Array.isArray(value)) return value.map((item) => deep(item, change)) as T
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deep(item, change)])) as T
}

function record(value: unknown): Entry {
  return isObject(value) ? value : {}
}
