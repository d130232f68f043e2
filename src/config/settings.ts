/** The configuration: a file, the environment and flags end up in it, and are checked here. */
import type * as z from 'zod'
import { isLoopback, type Listen, parseListen, RESERVED, servedPaths, ssePaths } from './addresses.js'
import { ConfigError, type Issue } from './error.js'
import { type ConfigSources, expand, refersElsewhere } from './expand.js'
import {
  fileSchema,
  hasSeveral,
  isStdio,
  knownKeys,
  SERVER_KEYS,
  type ServerSettings,
  type Settings,
  secretOf,
} from './schema.js'

export * from './addresses.js'
export * from './error.js'
export type { ConfigSources as Elsewhere } from './expand.js'
export {
  type Callers,
  hasSeveral,
  isStdio,
  OPTIONS,
  SERVER_KEYS,
  type ServerSettings,
  type Settings,
  secretOf,
  shareOf,
  signInOf,
  transportOf,
} from './schema.js'

/** Checks what a file or the flags say and fills in the rest. Throws a ConfigError that names every place. */
export function parseSettings(input: unknown, sources: ConfigSources): Settings {
  checkEntries(input)
  const expanded = expand(withoutDisabled(input), sources, SERVER_KEYS)
  const parsed = fileSchema.safeParse(expanded)
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.flatMap((issue) => flatten(issue, [], expanded)))
  }
  const settings = parsed.data
  const listen = parseListen(settings.listen)
  const issues = [
    ...nothing(settings, listen),
    ...together(settings),
    ...unclear(settings),
    ...Object.entries(settings.mcpServers).flatMap(([name, own]) => signsInTo(name, own, settings, listen)),
    ...exposed(settings, listen),
    ...colliding(settings, listen),
  ]
  if (issues.length > 0) throw new ConfigError(issues)
  return settings
}

/**
 * Checks a configuration for another machine: what stands elsewhere, in the environment or in files, is there, and is taken to
 * be right. Throws a ConfigError.
 */
export function checkOffline(input: unknown, sources: ConfigSources): void {
  // As long as the longest secret has to be.
  const missing = (what: string) => what.replace(/\W/g, '-').padEnd(32, '-')
  try {
    parseSettings(input, { ...sources, missing })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const isPutIn = (path: string) => PUT_IN.test(path) && refersElsewhere(valueUnder(input, path))
    const issues = error.issues.filter(({ path }) => !isPutIn(path))
    if (issues.length > 0) throw new ConfigError(issues)
  }
}

/** Where references are replaced. */
const PUT_IN = /^(?:mcpServers|auth\.tokens|stateKeys|redis|publish)\./

/** The value under a dotted path, of whose keys each may have dots in it. */
function valueUnder(value: unknown, path: string): unknown {
  if (path === '') return value
  if (typeof value !== 'object' || value === null) return undefined
  const key = Object.keys(value).find((one) => path === one || path.startsWith(`${one}.`))
  return key === undefined ? undefined : valueUnder((value as Record<string, unknown>)[key], path.slice(key.length + 1))
}

/** A server that has been found, as if it stood in the configuration of `elsewhere`. Throws a ConfigError. */
export function foundServer(name: string, entry: unknown, elsewhere: ConfigSources): ServerSettings {
  return parseSettings({ mcpServers: { [name]: entry } }, elsewhere).mcpServers[name] as ServerSettings
}

/** A configuration and servers that have been found, as far as there is a place for each. */
export function withServers(settings: Settings, found: Readonly<Record<string, ServerSettings>>): Settings {
  const listen = parseListen(settings.listen)
  let all = settings
  for (const [name, server] of Object.entries(found)) {
    const more = { ...all, mcpServers: { ...all.mcpServers, [name]: server } }
    if (colliding(more, listen).length === 0) all = more
  }
  return all
}

function nothing({ mcpServers, discover }: Settings, listen: Listen): Issue[] {
  const servers = Object.keys(mcpServers).length
  // What there is to serve is not known yet.
  if (discover.length > 0) return []
  if (servers === 0) return [{ path: 'mcpServers', message: 'has no enabled server' }]
  if (servers === 1 || listen.kind === 'http') return []
  return [{ path: 'mcpServers', message: `names ${servers} servers, and on stdio there is one: choose with --server` }]
}

/** Keys of server entries that mean something to another program, or that are misspelt. They are ignored. */
export function unknownKeys({ mcpServers }: { mcpServers: Readonly<Record<string, object>> }): Issue[] {
  return Object.entries(mcpServers).flatMap(([name, entry]) => {
    const known = knownKeys(entry)
    const unknown = Object.keys(entry).filter((key) => !known.includes(key))
    return unknown.map((key) => ({
      path: `mcpServers.${name}.${key}`,
      message: 'is not known to mcp-bridge, and ignored',
    }))
  })
}

/** An entry is one of two kinds, and shows which: said here, better than a union of both could say it. */
function checkEntries(input: unknown): void {
  if (!isObject(input))
    throw new ConfigError([{ path: '', message: 'has to be a JSON object with the key "mcpServers"' }])
  const { mcpServers, discover } = input
  const isFinding = Array.isArray(discover) && discover.length > 0
  if (mcpServers === undefined && isFinding) return
  if (!isObject(mcpServers))
    throw new ConfigError([{ path: 'mcpServers', message: 'has to be an object of servers by name' }])
  const issues: Issue[] = []
  for (const [name, entry] of Object.entries(mcpServers)) {
    const path = `mcpServers.${name}`
    if (!isObject(entry)) issues.push({ path, message: 'has to be an object' })
    else if (entry['disabled'] === true) continue
    else if ('command' in entry === 'url' in entry)
      issues.push({ path, message: 'has to have either "command" (a program) or "url" (an address)' })
  }
  if (Object.keys(mcpServers).length === 0 && !isFinding)
    issues.push({ path: 'mcpServers', message: 'names no server' })
  if (issues.length > 0) throw new ConfigError(issues)
}

/** Nothing is wanted of a server that is disabled, not even that it is right. */
function withoutDisabled(input: unknown): unknown {
  if (!isObject(input) || !isObject(input['mcpServers'])) return input
  const enabled = Object.entries(input['mcpServers']).filter(
    ([, entry]) => !isObject(entry) || entry['disabled'] !== true,
  )
  return { ...input, mcpServers: Object.fromEntries(enabled) }
}

/** What cannot be without something else. */
function together({ redis, stateKeys, publish, publicUrl }: Settings): Issue[] {
  const issues: Issue[] = []
  const secret = 'is missing, and replicas need it: one secret of 32 or more characters, the same for all of them'
  if (redis && stateKeys.length === 0) issues.push({ path: 'stateKeys', message: secret })
  const address = 'is missing, and what is published says it: the address under which clients reach the bridge'
  if (publish && publicUrl === undefined) issues.push({ path: 'publicUrl', message: address })
  return issues
}

/** What authentication leaves open to doubt; there, doubt is a mistake. */
function unclear({ auth, mcpServers, discover }: Settings): Issue[] {
  if (auth === undefined) return []
  const { tokens, passthrough } = auth
  if ((tokens !== undefined) === passthrough)
    return [{ path: 'auth', message: 'has to have either "tokens" or "passthrough": true, not both' }]
  if (passthrough && discover.length > 0) {
    const message = 'would send credentials of clients to servers that were found: it and "discover" exclude each other'
    return [{ path: 'auth.passthrough', message }]
  }
  return tokens === undefined ? misled(mcpServers) : mistaken(tokens)
}

/** What is said of signing in to a server, and cannot be done. */
function signsInTo(name: string, own: ServerSettings, settings: Settings, listen: Listen): Issue[] {
  if (isStdio(own) || !own.oauth) return []
  const { auth, allowUnauthenticated } = settings
  const path = `mcpServers.${name}.oauth`
  const { grant, account = grant === 'code' ? 'principal' : 'service', clientId, tokenFile, callbackPort } = own.oauth
  const issues: Issue[] = []
  const issue = (key: string, message: string) => issues.push({ path: key === '' ? path : `${path}.${key}`, message })
  if (auth?.passthrough) issue('', 'cannot be used where clients bring credentials of their own: "auth.passthrough"')
  const header = Object.keys(own.headers).find((one) => one.toLowerCase() === 'authorization')
  if (header !== undefined) issue('', `and "headers.${header}" exclude each other: both say what is sent`)
  if (grant === 'token' && tokenFile === undefined) issue('tokenFile', 'is missing, and the grant "token" needs it')
  if (grant !== 'token' && tokenFile !== undefined) issue('tokenFile', 'is for the grant "token"')
  if (grant === 'client_credentials' && clientId === undefined)
    issue('clientId', 'is missing, and the grant "client_credentials" needs it')
  if (account === 'principal' && own.session === 'shared' && hasSeveral(settings))
    issue('account', 'has to be "service" with "session": "shared", where one session serves several principals')
  const isOpen = listen.kind === 'http' && auth === undefined && allowUnauthenticated && !isLoopback(listen.host)
  if (account === 'principal' && isOpen)
    issue('account', 'has to be "service" where anybody may call: nobody can be told from anybody else')
  if (callbackPort !== undefined && own.oauth.redirectUri !== undefined)
    issue('callbackPort', 'and "redirectUri" exclude each other: the address has a port')
  return issues
}

/** Servers to which the client's credential cannot be sent, or another would be where a client shows none. */
function misled(servers: Settings['mcpServers']): Issue[] {
  return Object.entries(servers).flatMap(([name, entry]) => {
    if (isStdio(entry))
      return [{ path: 'auth.passthrough', message: `is for a server that has an address, and ${name} is a program` }]
    const own = Object.keys(entry.headers).find((header) => header.toLowerCase() === 'authorization')
    if (own === undefined) return []
    const message = 'would be sent for clients that show none: it and "auth.passthrough" exclude each other'
    return [{ path: `mcpServers.${name}.headers.${own}`, message }]
  })
}

/** Tokens that do not tell who it is. */
function mistaken(tokens: NonNullable<NonNullable<Settings['auth']>['tokens']>): Issue[] {
  const entries = Object.entries(tokens)
  if (entries.length === 0) return [{ path: 'auth.tokens', message: 'names nobody, so that nobody could call' }]
  return entries.flatMap(([name, secret], i) => {
    const other = entries.slice(0, i).find(([, earlier]) => secretOf(earlier) === secretOf(secret))
    return other ? [{ path: `auth.tokens.${name}`, message: `is the same as that of ${other[0]}` }] : []
  })
}

function exposed({ allowUnauthenticated, auth }: Settings, listen: Listen): Issue[] {
  if (listen.kind === 'stdio' || allowUnauthenticated || auth?.tokens || isLoopback(listen.host)) return []
  const message = `${listen.host} can be reached from other machines, and anybody there could call: name who may in "auth.tokens", or say --allow-unauthenticated if that is meant`
  return [{ path: 'listen', message }]
}

/** One address cannot be two things. */
function colliding(settings: Settings, listen: Listen): Issue[] {
  const { admin, mcpServers } = settings
  const issues: Issue[] = []
  if (admin !== undefined) {
    const { kind } = parseListen(admin, 'admin')
    if (kind === 'stdio') issues.push({ path: 'admin', message: 'has to be an address like http://127.0.0.1:9090' })
  }
  if (listen.kind === 'stdio') return issues
  const taken = new Map<string, string>(RESERVED.map((path) => [path, 'the bridge itself']))
  for (const [name, paths] of servedPaths(settings, listen)) {
    for (const path of paths) {
      const { stream, messages } = ssePaths(path)
      for (const one of [path, stream, messages]) {
        const owner = taken.get(one)
        const what =
          owner === name ? 'is where clients of HTTP+SSE are served: choose another path' : `is a path of ${owner}`
        const at = mcpServers[name]?.path === undefined ? 'listen' : `mcpServers.${name}.path`
        if (owner !== undefined) issues.push({ path: at, message: `${one} ${what}` })
        taken.set(one, name)
      }
    }
  }
  for (const [name, server] of Object.entries(mcpServers)) {
    for (const path of isStdio(server) ? [] : server.paths) {
      const owner = taken.get(path)
      const message =
        owner === name || owner === 'the bridge itself' ? 'is a path of the bridge itself' : `is a path of ${owner}`
      if (owner !== undefined) issues.push({ path: `mcpServers.${name}.paths`, message: `${path} ${message}` })
      else taken.set(path, name)
    }
  }
  return issues
}

/** What is wrong, place by place; of an entry that may be of two kinds, as the kind that it is. */
function flatten(issue: z.core.$ZodIssue, before: readonly PropertyKey[], input: unknown): Issue[] {
  const path = [...before, ...issue.path]
  const at = path.join('.')
  if (issue.code === 'invalid_union') {
    const entry = valueUnder(input, at)
    const [stdio, http] = issue.errors
    const isEntry = path.length === 2 && path[0] === 'mcpServers' && isObject(entry)
    const meant = isEntry ? ('url' in entry ? http : stdio) : issue.errors.toSorted((a, b) => a.length - b.length)[0]
    if (meant && meant.length > 0) return meant.flatMap((inner) => flatten(inner, path, input))
  }
  if (issue.code === 'invalid_key') return issue.issues.flatMap((inner) => flatten(inner, path, input))
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: [...path, key].join('.'), message: 'is not an option' }))
  if (issue.code === 'invalid_type') return [{ path: at, message: wrongType(issue.expected, valueUnder(input, at)) }]
  return [{ path: at, message: issue.message }]
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list (an array)',
  record: 'an object',
  object: 'an object',
}

function wrongType(expected: string, found: unknown): string {
  const wanted = `has to be ${KINDS[expected] ?? expected}`
  if (found === undefined) return `is missing, and ${wanted}`
  const kind = found === null ? 'null' : Array.isArray(found) ? 'array' : typeof found
  const quotes = expected === 'string' && (kind === 'number' || kind === 'boolean') ? ': put it in quotes' : ''
  return `${wanted}, not ${KINDS[kind] ?? kind}${quotes}`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
