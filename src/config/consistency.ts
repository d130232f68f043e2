/** Checks combinations of options that the schema cannot express. */
import { FACADE, isLoopback, type Listen, parseListen, RESERVED, SIGN_IN, servedPaths, ssePaths } from './addresses.js'
import { chosen } from './chosen.js'
import { hasSeveral, hasSignInPage, isLocal, isOnBehalf, secretOf, usualAccount } from './derived.js'
import type { Issue } from './error.js'
import { groupIssues, groupPaths, groupsOf } from './groups.js'
import type { Settings } from './schema/schema.js'
import { isStdio, type ServerSettings } from './schema/server.js'

const SECRET = 'a secret of 32 or more characters, the same for all replicas'
const ADDRESS = 'the address at which clients reach the bridge'

type Check = (settings: Settings, listen: Listen) => Issue[]

/** The checks, with the options they read. */
const CHECKS: readonly (readonly [reads: readonly (keyof Settings)[], check: Check])[] = [
  [['mcpServers', 'discover', 'listen', 'groups', 'auth'], servers],
  [['mcpServers', 'discover', 'groups', 'auth'], groupIssues],
  [['redis', 'stateKeys'], required('redis', 'stateKeys', SECRET)],
  [['publish', 'publicUrl'], required('publish', 'publicUrl', ADDRESS)],
  [['redis'], shared],
  [['redis', 'replicas'], between],
  [['listen', 'admin', 'tls'], encryption],
  [['auth', 'discover'], authentication],
  [['auth', 'publicUrl'], identity],
  [['auth', 'allowUnauthenticated', 'listen'], ofEach(signIn)],
  [[], ofEach(certificates)],
  [[], ofEach(sharing)],
  [[], ofEach(chosen)],
  [['auth', 'allowUnauthenticated', 'listen'], exposure],
  [['listen', 'admin', 'groups', 'auth', 'publicUrl'], collisions],
  [['admin', 'inspect'], inspection],
  [['audit', 'listen'], auditing],
]

/**
 * Issues of the settings as a whole. Options in `wrong` are missing in the settings, so checks that read them are skipped.
 */
export function inconsistencies(settings: Settings, wrong: ReadonlySet<string> = new Set()): Issue[] {
  const listen = wrong.has('listen') ? { kind: 'stdio' as const } : parseListen(settings.listen)
  const checks = CHECKS.filter(([reads]) => !reads.some((option) => wrong.has(option)))
  return checks.flatMap(([, check]) => check(settings, listen))
}

function ofEach(check: (name: string, own: ServerSettings, settings: Settings, listen: Listen) => Issue[]): Check {
  return (settings, listen) =>
    Object.entries(settings.mcpServers).flatMap(([name, own]) => check(name, own, settings, listen))
}

function servers(settings: Settings, listen: Listen): Issue[] {
  const { mcpServers, discover } = settings
  const count = Object.keys(mcpServers).length
  // Discovered servers are not known yet.
  if (discover.length > 0) return []
  if (count === 0) return [{ path: 'mcpServers', message: 'has no enabled server: enable one' }]
  return listen.kind === 'http' ? [] : onStdio(settings)
}

/** On stdio the bridge serves one server or one group. */
function onStdio(settings: Settings): Issue[] {
  const count = Object.keys(settings.mcpServers).length
  const groups = [...groupsOf(settings).keys()]
  if (groups.length === 1 || (groups.length === 0 && count === 1)) return []
  if (groups.length > 1) {
    const message = `has ${groups.join(', ')}, but on stdio the bridge serves one: choose it with --group <name>`
    return [{ path: 'groups', message }]
  }
  const message = `has ${count} servers and no group of them, but on stdio the bridge serves one: choose it with --server <name>`
  return [{ path: 'mcpServers', message }]
}

/** An option that requires another one. */
function required(option: 'redis' | 'publish', other: 'stateKeys' | 'publicUrl', what: string): Check {
  return (settings) => {
    const isThere = settings[other] !== undefined && settings[other].length > 0
    return settings[option] && !isThere ? [{ path: other, message: `is required with "${option}": ${what}` }] : []
  }
}

/** A Redis address that is ambiguous or unusable. */
function shared({ redis }: Settings): Issue[] {
  if (!redis) return []
  const { url, sentinels, cluster, ca, cert, key } = redis
  const issue = (option: string, message: string): Issue => ({ path: `redis${option}`, message })
  if (url === undefined && cluster.length === 0)
    return [issue('', 'has to have the address of Redis in "url", or addresses of nodes in "cluster"')]
  if (url !== undefined && cluster.length > 0) return [issue('.cluster', 'replaces "url": remove one of them')]
  if (sentinels.length > 0 && cluster.length > 0)
    return [issue('.sentinels', 'cannot be combined with "cluster": a Redis Cluster has no Sentinels')]
  const issues: Issue[] = []
  const secure = [url, ...sentinels, ...cluster].some((one) => one?.startsWith('rediss:'))
  const first = ca !== undefined ? 'ca' : cert !== undefined ? 'cert' : key !== undefined ? 'key' : undefined
  if (first !== undefined && !secure) issues.push(issue(`.${first}`, 'is for rediss:// addresses'))
  if ((cert === undefined) !== (key === undefined))
    issues.push(
      cert === undefined ? issue('.cert', 'is required with "key"') : issue('.key', 'is required with "cert"'),
    )
  return issues
}

/** An address for other replicas without any replicas. */
function between({ redis, replicas }: Settings): Issue[] {
  if (redis || replicas.address === undefined) return []
  return [{ path: 'replicas.address', message: 'is for replicas that share a Redis: set "redis" or remove it' }]
}

/** A certificate without a TLS address, and the reverse. */
function encryption({ admin, tls }: Settings, listen: Listen): Issue[] {
  const addresses = { listen, ...(admin !== undefined && { admin: parseListen(admin, 'admin') }) }
  const secure = Object.entries(addresses).flatMap(([name, one]) => (one.kind === 'http' && one.secure ? [name] : []))
  if (tls && secure.length === 0)
    return [{ path: 'tls', message: 'is for https:// addresses: begin "listen" with https://' }]
  if (tls) return []
  return secure.map((path) => ({
    path,
    message: 'begins with https://, which requires "tls" with a certificate and its key',
  }))
}

/** Authentication that is ambiguous is refused. */
function authentication({ auth, mcpServers, discover }: Settings): Issue[] {
  if (auth === undefined) return []
  const { tokens, issuers, forwarded, passthrough } = auth
  if ((tokens !== undefined || issuers !== undefined || forwarded !== undefined) === passthrough)
    return [
      {
        path: 'auth',
        message: 'has to have "tokens", "issuers" or "forwarded", or "passthrough": true instead of them',
      },
    ]
  if (passthrough && discover.length > 0) {
    const message = 'cannot be combined with "discover": found servers would receive the credentials of clients'
    return [{ path: 'auth.passthrough', message }]
  }
  if (passthrough) return passedThrough(mcpServers)
  return tokens === undefined ? [] : principals(tokens)
}

/** Settings of identity providers that cannot work. */
function identity({ auth, publicUrl }: Settings): Issue[] {
  const { issuers, forwarded, browser, scopes = [] } = auth ?? {}
  const issues: Issue[] = []
  if (browser && !issuers) issues.push({ path: 'auth.browser', message: 'is for people of "auth.issuers"' })
  if (browser && issuers && browser.issuer === undefined && issuers.length > 1)
    issues.push({ path: 'auth.browser.issuer', message: 'is required, because there are several "auth.issuers"' })
  if (browser?.issuer !== undefined && issuers && !issuers.some(({ issuer }) => issuer === browser.issuer))
    issues.push({ path: 'auth.browser.issuer', message: 'has to be one of "auth.issuers", byte for byte' })
  if (issuers && publicUrl === undefined)
    issues.push({ path: 'publicUrl', message: `is required with "auth.issuers": ${ADDRESS}` })
  if (publicUrl !== undefined && issuers && /[?#]/.test(publicUrl))
    issues.push({ path: 'publicUrl', message: 'has to have no query and no fragment with "auth.issuers"' })
  if (scopes.length > 0 && !issuers) issues.push({ path: 'auth.scopes', message: 'is for tokens of "auth.issuers"' })
  for (const [i, { issuer, introspection, facade, groups, map }] of (issuers ?? []).entries()) {
    const path = `auth.issuers.${i}`
    const earlier = issuers?.slice(0, i) ?? []
    if (earlier.some((one) => one.issuer === issuer))
      issues.push({ path: `${path}.issuer`, message: `is configured twice: ${issuer}` })
    if (introspection && earlier.some((one) => one.introspection))
      issues.push({
        path: `${path}.introspection`,
        message: 'is allowed at one issuer only: an opaque token does not name its issuer',
      })
    if (facade && earlier.some((one) => one.facade))
      issues.push({ path: `${path}.facade`, message: 'is allowed at one issuer only' })
    if (groups === undefined && Object.keys(map).length > 0)
      issues.push({ path: `${path}.map`, message: 'requires "groups", the name of the claim' })
  }
  const { user, secretHeader, scopes: scopesHeader } = forwarded ?? {}
  if (forwarded && (user === secretHeader || user === scopesHeader || secretHeader === scopesHeader))
    issues.push({ path: 'auth.forwarded', message: 'has to have a different header for each' })
  return issues
}

/** Options of a sign-in that only some grants have. Those grants require the option, except `exchange`. */
const OF_GRANTS = {
  tokenFile: ['token'],
  assertionFile: ['jwt-bearer'],
  idp: ['id-jag'],
  exchange: ['token-exchange'],
} as const

/** Settings of a sign-in that cannot work. */
function signIn(name: string, own: ServerSettings, settings: Settings, listen: Listen): Issue[] {
  if (isStdio(own) || !own.oauth) return []
  if (own.socket !== undefined)
    return [
      {
        path: `mcpServers.${name}.oauth`,
        message: 'cannot be combined with "socket": the bridge does not sign in there',
      },
    ]
  const { auth, allowUnauthenticated } = settings
  const path = `mcpServers.${name}.oauth`
  const { grant, account = usualAccount(own.oauth), clientId, callbackPort } = own.oauth
  const issues: Issue[] = []
  const issue = (key: string, message: string) => issues.push({ path: key === '' ? path : `${path}.${key}`, message })
  if (auth?.passthrough) issue('', 'cannot be combined with "auth.passthrough", which sends the credentials of clients')
  const header = Object.keys(own.headers).find((one) => one.toLowerCase() === 'authorization')
  if (header !== undefined) issue('', `cannot be combined with "headers.${header}": both set the credential`)
  for (const [key, grants] of Object.entries(OF_GRANTS) as [keyof typeof OF_GRANTS, readonly string[]][]) {
    const isGiven = own.oauth[key] !== undefined
    if (grants.includes(grant) && !isGiven && key !== 'exchange') issue(key, `is required for the grant "${grant}"`)
    if (!grants.includes(grant) && isGiven) issue(key, `is for the grant "${grants.join('", "')}" only`)
  }
  if (grant !== 'code' && grant !== 'token' && clientId === undefined)
    issue('clientId', `is required for the grant "${grant}"`)
  if (grant === 'token-exchange' && own.oauth.issuer === undefined)
    issue(
      'issuer',
      'is required for the grant "token-exchange": the tokens of callers are sent there, and nowhere else',
    )
  if (isOnBehalf(own.oauth) && auth?.issuers === undefined)
    issue('grant', `"${grant}" requires "auth.issuers": it exchanges the tokens that callers get there`)
  if (isOnBehalf(own.oauth) && account === 'service')
    issue('account', `cannot be "service" with the grant "${grant}", which is for each caller`)
  if (account === 'principal' && own.session === 'shared' && hasSeveral(settings))
    issue('account', 'has to be "service" with "session": "shared", because several principals share that session')
  const isOpen = listen.kind === 'http' && auth === undefined && allowUnauthenticated && !isLoopback(listen.host)
  if (account === 'principal' && isOpen)
    issue('account', 'has to be "service" if callers are not authenticated, because they cannot be told apart')
  if (callbackPort !== undefined && own.oauth.redirectUri !== undefined)
    issue('callbackPort', 'cannot be combined with "redirectUri", which has a port')
  return issues
}

/** A program that may run only once cannot have a session for each request. */
function sharing(name: string, { process, session }: ServerSettings): Issue[] {
  return process === 'single' && session === 'per-request'
    ? [{ path: `mcpServers.${name}.process`, message: 'cannot be "single" with "session": "per-request"' }]
    : []
}

/** Certificates that are incomplete, or for a server without TLS. */
function certificates(name: string, own: ServerSettings): Issue[] {
  if (isStdio(own)) return []
  const path = `mcpServers.${name}`
  const { ca, cert, key, url } = own
  const first = ca !== undefined ? 'ca' : cert !== undefined ? 'cert' : key !== undefined ? 'key' : undefined
  if (first !== undefined && url.startsWith('http:'))
    return [{ path: `${path}.${first}`, message: 'is for https:// addresses, but this server has an http:// address' }]
  if ((cert === undefined) === (key === undefined)) return []
  const [missing, given] = cert === undefined ? ['cert', 'key'] : ['key', 'cert']
  return [{ path: `${path}.${missing}`, message: `is required with "${given}"` }]
}

/** Servers that cannot receive the client's credential, or have their own. */
function passedThrough(mcpServers: Settings['mcpServers']): Issue[] {
  return Object.entries(mcpServers).flatMap(([name, entry]) => {
    if (isStdio(entry))
      return [{ path: 'auth.passthrough', message: `is for servers with an address, but ${name} is a program` }]
    const own = Object.keys(entry.headers).find((header) => header.toLowerCase() === 'authorization')
    if (own === undefined) return []
    const message = 'cannot be combined with "auth.passthrough": clients without a credential would use this one'
    return [{ path: `mcpServers.${name}.headers.${own}`, message }]
  })
}

/** Tokens that do not identify a principal. */
function principals(tokens: NonNullable<NonNullable<Settings['auth']>['tokens']>): Issue[] {
  const entries = Object.entries(tokens)
  if (entries.length === 0) return [{ path: 'auth.tokens', message: 'is empty, so nobody could call: add one' }]
  return entries.flatMap(([name, secret], i) => {
    const other = entries.slice(0, i).find(([, earlier]) => secretOf(earlier) === secretOf(secret))
    return other ? [{ path: `auth.tokens.${name}`, message: `is the same as that of ${other[0]}` }] : []
  })
}

function exposure({ allowUnauthenticated, auth }: Settings, listen: Listen): Issue[] {
  const isChecked = auth?.tokens ?? auth?.issuers ?? auth?.forwarded
  if (listen.kind === 'stdio' || allowUnauthenticated || isChecked || isLoopback(listen.host)) return []
  const message = `${listen.host} can be reached from other machines, so anybody there could call: require a token with --token '\${TOKEN}' or "auth.tokens", or allow it with --allow-unauthenticated`
  return [{ path: 'listen', message }]
}

/** An inspector that other machines can reach needs configured tokens: one to look, and another one to call servers. */
function inspection({ admin, inspect }: Settings): Issue[] {
  if (!inspect) return []
  const { token, tryToken, try: tries } = inspect
  const issues: Issue[] = []
  const secret = 'set it in the configuration file, to a secret of 16 or more characters'
  if (!isLocal(admin)) {
    const where = 'because other machines can reach the inspector at "admin"'
    if (token === undefined) issues.push({ path: 'inspect.token', message: `is required, ${where}: ${secret}` })
    if (tries === true && tryToken === undefined)
      issues.push({ path: 'inspect.tryToken', message: `is required with "try": true, ${where}: ${secret}` })
  }
  if (tryToken !== undefined && tryToken === token)
    issues.push({
      path: 'inspect.tryToken',
      message: 'is the same as inspect.token, so every viewer could call servers: choose another secret',
    })
  if (tryToken !== undefined && tries === false)
    issues.push({ path: 'inspect.tryToken', message: 'is for "try": true, but calls from the page are off' })
  return issues
}

/** An audit log that goes nowhere, or into the messages for the client. */
function auditing({ audit }: Settings, listen: Listen): Issue[] {
  if (!audit) return []
  if ([audit.file !== undefined, audit.stdout, audit.otlp].filter(Boolean).length !== 1)
    return [{ path: 'audit', message: 'has to have one of "file", "stdout": true and "otlp": true' }]
  return audit.stdout && listen.kind === 'stdio'
    ? [{ path: 'audit.stdout', message: 'cannot be combined with "listen": "stdio", which uses stdout for the client' }]
    : []
}

/** Addresses and paths used twice. */
export function collisions(settings: Settings, listen: Listen): Issue[] {
  const { admin, mcpServers, auth } = settings
  const issues: Issue[] = []
  if (admin !== undefined) {
    const { kind } = parseListen(admin, 'admin')
    if (kind === 'stdio') issues.push({ path: 'admin', message: 'has to be an address like http://127.0.0.1:9090' })
  }
  if (listen.kind === 'stdio') return issues
  const facade = auth?.issuers?.some((one) => one.facade) ? ['register', 'authorize', 'token'] : []
  const own = [...RESERVED, ...facade.map((name) => `${FACADE}/${name}`)]
  const taken = new Map<string, string>(own.map((path) => [path, 'the bridge itself']))
  const hasPage = hasSignInPage(settings, listen)
  const ownerOf = (path: string) =>
    taken.get(path) ?? (hasPage && `${path}/`.startsWith(`${SIGN_IN}/`) ? 'the bridge itself' : undefined)
  for (const [name, paths] of servedPaths(settings, listen)) {
    for (const path of paths) {
      const { stream, messages } = ssePaths(path)
      for (const one of [path, stream, messages]) {
        const owner = ownerOf(one)
        const what =
          owner === name
            ? 'is where HTTP+SSE clients of this server connect: choose another path'
            : `is a path of ${owner}`
        const at = mcpServers[name]?.path === undefined ? 'listen' : `mcpServers.${name}.path`
        if (owner !== undefined) issues.push({ path: at, message: `${one} ${what}` })
        taken.set(one, name)
      }
    }
  }
  for (const [name, paths] of groupPaths(settings, listen)) {
    for (const path of paths) {
      const { stream, messages } = ssePaths(path)
      for (const one of [path, stream, messages]) {
        const owner = ownerOf(one)
        if (owner !== undefined)
          issues.push({ path: groupPathAt(settings, name), message: `${one} is a path of ${owner}` })
        taken.set(one, `the group ${name}`)
      }
    }
  }
  for (const [name, server] of Object.entries(mcpServers)) {
    for (const path of isStdio(server) ? [] : server.paths) {
      const owner = ownerOf(path)
      const message =
        owner === name || owner === 'the bridge itself' ? 'is a path of the bridge itself' : `is a path of ${owner}`
      if (owner !== undefined) issues.push({ path: `mcpServers.${name}.paths`, message: `${path} ${message}` })
      else if (auth?.issuers && path.startsWith('/.well-known/oauth-protected-resource'))
        issues.push({
          path: `mcpServers.${name}.paths`,
          message: `${path} is served by the bridge itself with "auth.issuers"`,
        })
      else taken.set(path, name)
    }
  }
  return issues
}

function groupPathAt({ groups }: Settings, name: string): string {
  if (!groups || !(name in groups)) return 'listen'
  return groups[name]?.path === undefined ? `groups.${name}` : `groups.${name}.path`
}
