/** Checks combinations of options that the schema cannot express: a table of checks, and those of no larger subject. */
import { namesInWords } from '../base/texts/nearest.js'
import { type Listen, parseListen } from './addresses.js'
import { ADDRESS, authentication, exposure, identity, signIn } from './authentication.js'
import { approving, chosen } from './chosen.js'
import { collisions } from './collisions.js'
import { isLocal } from './derived.js'
import type { Issue } from './error.js'
import { forwarding } from './forwarding.js'
import { groupIssues, groupsOf } from './groups.js'
import { addressesOf, isStdio } from './kinds.js'
import { ownKeys } from './own-keys.js'
import { databaseOf, sameAccess } from './redis-address.js'
import type { Settings } from './schema/schema.js'
import type { ServerSettings } from './schema/server.js'

const SECRET = 'a secret of 32 or more characters, the same for all replicas'

type Check = (settings: Settings, listen: Listen) => Issue[]

/** The checks, with the options they read. */
const CHECKS: readonly (readonly [reads: readonly (keyof Settings)[], check: Check])[] = [
  [['mcpServers', 'discover', 'listen', 'groups', 'auth'], servers],
  [['mcpServers', 'discover', 'groups', 'auth'], groupIssues],
  [['redis', 'stateKeys'], required('redis', 'stateKeys', SECRET)],
  [['publish', 'publicUrl'], required('publish', 'publicUrl', ADDRESS)],
  [['redis'], shared],
  [['redis', 'replicas'], between],
  [['workers', 'listen', 'replicas', 'inspect', 'adminToken'], together],
  [['listen', 'admin', 'tls'], encryption],
  [['auth', 'discover'], authentication],
  [['auth', 'publicUrl', 'oauth'], identity],
  [['auth', 'allowUnauthenticated', 'listen'], ofEach(signIn)],
  [['auth'], ofEach(forwarding)],
  [['auth', 'publicUrl', 'listen'], ofEach(ownKeys)],
  [[], ofEach(certificates)],
  [[], ofEach(sharing)],
  [[], ofEach(several)],
  [[], ofEach(chosen)],
  [['auth', 'publicUrl', 'listen'], ofEach(approving)],
  [['auth', 'allowUnauthenticated', 'listen'], exposure],
  [['listen', 'admin', 'groups', 'auth', 'publicUrl'], collisions],
  [['admin', 'inspect'], inspection],
  [['admin', 'adminToken'], managing],
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
  const message = `has ${count} servers and no group of them, but on stdio the bridge serves one: choose it with --server <name>: ${namesInWords(Object.keys(settings.mcpServers))}`
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
  const { url, sentinels, cluster } = redis
  const issue = (option: string, message: string): Issue => ({ path: `redis${option}`, message })
  if (url === undefined && cluster.length === 0)
    return [issue('', 'has to have the address of Redis in "url", or addresses of nodes in "cluster"')]
  if (url !== undefined && cluster.length > 0) return [issue('.cluster', 'replaces "url": remove one of them')]
  if (sentinels.length > 0 && cluster.length > 0)
    return [issue('.sentinels', 'cannot be combined with "cluster": a Redis Cluster has no Sentinels')]
  for (const [option, addresses, why] of [
    ['sentinels', sentinels, 'Sentinels have no databases: write it into "url"'],
    ['cluster', cluster, 'a Redis Cluster has only database 0'],
  ] as const) {
    const [first = ''] = addresses
    const numbered = addresses.findIndex((one) => databaseOf(one) > 0)
    if (numbered >= 0) return [issue(`.${option}.${numbered}`, `cannot have the number of a database: ${why}`)]
    const differing = addresses.findIndex((one) => !sameAccess(first, one))
    if (differing >= 0)
      return [
        issue(
          `.${option}.${differing}`,
          'has another scheme, user or password than the first address, which counts for all',
        ),
      ]
  }
  const isPlain = ![url, ...sentinels, ...cluster].some((one) => one?.startsWith('rediss:'))
  return pemIssues('redis', redis, isPlain ? 'is for rediss:// addresses' : undefined)
}

/** Certificates without TLS (`plain` says what they are for), and a certificate or key without the other. */
function pemIssues(
  path: string,
  { ca, cert, key }: Partial<Record<'ca' | 'cert' | 'key', string | undefined>>,
  plain: string | undefined,
): Issue[] {
  const first = ca !== undefined ? 'ca' : cert !== undefined ? 'cert' : key !== undefined ? 'key' : undefined
  if (first !== undefined && plain !== undefined) return [{ path: `${path}.${first}`, message: plain }]
  if ((cert === undefined) === (key === undefined)) return []
  const [missing, given] = cert === undefined ? ['cert', 'key'] : ['key', 'cert']
  return [{ path: `${path}.${missing}`, message: `is required with "${given}"` }]
}

/** An address for other replicas without any replicas. */
function between({ redis, replicas }: Settings): Issue[] {
  if (redis || replicas.address === undefined) return []
  return [{ path: 'replicas.address', message: 'is for replicas that share a Redis: set "redis" or remove it' }]
}

/** What one process alone can do, with several. */
function together({ workers, replicas, inspect, adminToken, mcpServers }: Settings, listen: Listen): Issue[] {
  if (workers === 1) return []
  const alone = Object.entries(mcpServers).find(([, own]) => own.process === 'single')?.[0]
  const port = replicas.address === undefined ? undefined : new URL(replicas.address).port
  const issues: readonly (readonly [is: boolean, path: string, why: string])[] = [
    [
      workers !== 'auto' && listen.kind === 'stdio',
      'workers',
      'has to be 1 with "listen": "stdio": a client on stdio has one process',
    ],
    [inspect !== undefined, 'inspect', 'shows the calls of one process: remove it, or set "workers" to 1'],
    [
      adminToken !== undefined,
      'adminToken',
      'lets operators change the servers of one process: remove it, or set "workers" to 1',
    ],
    [
      alone !== undefined,
      `mcpServers.${alone}.process`,
      'cannot be "single" with "workers": each worker starts its own processes',
    ],
    [
      port !== undefined && port !== '0',
      'replicas.address',
      'has one port, and each worker needs its own: write port 0, or set "workers" to 1',
    ],
  ]
  return issues.flatMap(([is, path, message]) => (is ? [{ path, message }] : []))
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

/** A program that may run only once cannot have a session for each request. */
function sharing(name: string, { process, session }: ServerSettings): Issue[] {
  return process === 'single' && session === 'per-request'
    ? [{ path: `mcpServers.${name}.process`, message: 'cannot be "single" with "session": "per-request"' }]
    : []
}

/** Certificates that are incomplete, or for a server without TLS. */
function certificates(name: string, own: ServerSettings): Issue[] {
  if (isStdio(own)) return []
  const plain = 'is for https:// addresses, but this server has an http:// address'
  return pemIssues(
    `mcpServers.${name}`,
    own,
    addressesOf(own).every((url) => url.startsWith('http:')) ? plain : undefined,
  )
}

/** Addresses that are named twice, and options of servers with one address. */
function several(name: string, own: ServerSettings): Issue[] {
  if (isStdio(own)) return []
  const urls = addressesOf(own)
  const path = `mcpServers.${name}`
  const places = urls.map((url) => url.replace(/[?#].*$/s, '').replace(/\/$/, ''))
  const again = places.findIndex((one, at) => places.indexOf(one) !== at)
  if (again >= 0) return [{ path: `${path}.url.${again}`, message: 'is in the list already' }]
  const single = [
    ...(own.socket === undefined ? [] : ['socket']),
    ...(own.paths.length === 0 ? [] : ['paths']),
    ...(own.oauth ? ['oauth'] : []),
  ]
  const issues = single.map((option) => ({
    path: `${path}.${option}`,
    message: 'is for servers with one address in "url". A name that leads to several can have "resolve": "all"',
  }))
  return urls.length === 1 ? [] : issues
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

/** A token for an address that is not there. */
function managing({ admin, adminToken }: Settings): Issue[] {
  if (adminToken === undefined || admin !== undefined) return []
  return [{ path: 'adminToken', message: 'requires "admin", the address where servers are changed' }]
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
