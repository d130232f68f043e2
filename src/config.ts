/** The configuration: a file, the environment and flags end up in it, and are checked here. */
import type * as z from 'zod'
import { isLoopback, type Listen, parseListen, RESERVED, servedPaths, ssePaths } from './config/addresses.js'
import { ConfigError, type Issue } from './config/error.js'
import { type Elsewhere, expand } from './config/expand.js'
import { fileSchema, isStdio, knownKeys, type ServerSettings, type Settings, secretOf } from './config/schema.js'

export * from './config/addresses.js'
export * from './config/error.js'
export type { Elsewhere } from './config/expand.js'
export {
  hasSeveral,
  isStdio,
  type ServerSettings,
  type Settings,
  secretOf,
  shareOf,
  transportOf,
} from './config/schema.js'

/** Checks what a file or the flags say and fills in the rest. Throws a ConfigError that names every place. */
export function parseSettings(input: unknown, elsewhere: Elsewhere): Settings {
  checkEntries(input)
  const parsed = fileSchema.safeParse(expand(input, elsewhere))
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.flatMap((issue) => flatten(issue, [])))
  }
  const enabled = Object.entries(parsed.data.mcpServers).filter(([, { disabled }]) => !disabled)
  const settings = { ...parsed.data, mcpServers: Object.fromEntries(enabled) }
  const listen = parseListen(settings.listen)
  const issues = [
    ...nothing(settings, listen),
    ...together(settings),
    ...unclear(settings),
    ...exposed(settings, listen),
    ...colliding(settings, listen),
  ]
  if (issues.length > 0) throw new ConfigError(issues)
  return settings
}

/** A server that has been found, as if it stood in the configuration of `elsewhere`. Throws a ConfigError. */
export function foundServer(name: string, entry: unknown, elsewhere: Elsewhere): ServerSettings {
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
  if (servers === 0) return [{ path: 'mcpServers', message: 'names no server that is not disabled' }]
  if (servers === 1 || listen.kind === 'http') return []
  return [{ path: 'mcpServers', message: `names ${servers} servers, and on stdio there is one: choose with --server` }]
}

/** Keys of server entries that mean something to another program, or that are misspelt. They are ignored. */
export function unknownKeys(settings: Settings): Issue[] {
  return Object.entries(settings.mcpServers).flatMap(([name, entry]) => {
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
    else if ('command' in entry === 'url' in entry)
      issues.push({ path, message: 'has to have either "command" (a program) or "url" (an address)' })
  }
  if (Object.keys(mcpServers).length === 0 && !isFinding)
    issues.push({ path: 'mcpServers', message: 'names no server' })
  if (issues.length > 0) throw new ConfigError(issues)
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

/** The issues of the branch of a union that came closest. */
function flatten(issue: z.core.$ZodIssue, before: readonly PropertyKey[]): Issue[] {
  const path = [...before, ...issue.path]
  if (issue.code === 'invalid_union') {
    const [closest] = [...issue.errors].sort((a, b) => a.length - b.length)
    if (closest && closest.length > 0) return closest.flatMap((inner) => flatten(inner, path))
  }
  if (issue.code === 'invalid_key') return issue.issues.flatMap((inner) => flatten(inner, path))
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: [...path, key].join('.'), message: 'is not an option' }))
  return [{ path: path.join('.'), message: issue.message }]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
