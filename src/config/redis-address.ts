/** What is wrong with an address of Redis, and how to write it instead. The messages never repeat it: it may have a password. */
import { parseUrl } from '../base/texts/parse-url.js'

const FORM = 'has to be a redis:// or rediss:// address'
const ENCODED =
  'characters such as / ? # @ % in a user or password have to be percent-encoded: / is %2F, # is %23, % is %25'

/** Other ways to name a Redis, and what to write. */
const OTHERS: readonly (readonly [pattern: RegExp, meant: string])[] = [
  [/^(?:redis\+|redis-)?(?:unix|socket):|^\//i, 'it cannot be a unix socket'],
  [/^rediss?[+-]sentinel:/i, 'write the addresses of Sentinels into "sentinels"'],
  [/^rediss?[+-]cluster:/i, 'write the addresses of nodes into "cluster"'],
  [/^(?:redis\+(?:tls|ssl)|valkeys|tls|ssl):/i, 'begin it with rediss://'],
  [/^(?:valkey|tcp):/i, 'begin it with redis://'],
  [/^https?:/i, 'the bridge speaks the protocol of Redis, not HTTP'],
  [/^(?!rediss?:)[^@/]+$/i, 'begin it with redis://, or with rediss:// for TLS'],
  [/^["'].*["']$/, 'write it without quotes'],
  [/^[^@]*,/, 'write several addresses as elements of "cluster" or "sentinels"'],
  [/^rediss?:\/\/.*@/i, ENCODED],
  [/^rediss?:(?!\/\/)/i, 'two slashes follow redis:, as in redis://redis:6379'],
  [/^rediss?:\/\/[^/]*:/i, 'the port is a number from 1 to 65535, as in redis://redis:6379'],
]

/** Options that other libraries read from the query, and what to write. */
const QUERY: readonly (readonly [name: RegExp, meant: string])[] = [
  [/^(?:db|database)$/i, 'write the number of the database as a path, as in redis://redis:6379/1'],
  [/^(?:tls|ssl.*)$/i, 'begin the address with rediss:// for TLS; certificates are "ca", "cert" and "key" of "redis"'],
  [
    /^(?:user(?:name)?|pass(?:word)?|auth)$/i,
    'write user and password before the host, as in redis://user:password@redis:6379',
  ],
  [
    /^(?:sentinel|master|service)/i,
    'write the addresses of Sentinels into "sentinels", and the name of the primary as the host of "url"',
  ],
  [/timeout/i, 'the time limit of a command is "timeout" of "redis"'],
]

/** Undefined if the address can be used. */
export function redisAddressIssue(text: string): string | undefined {
  const url = parseUrl(text)
  if (!url || !/^rediss?:$/.test(url.protocol) || !/^rediss?:\/\//i.test(text)) return `${FORM}${other(text)}`
  if (url.hostname === '') return `${FORM} with a host, as in redis://redis:6379`
  if (!isEncoded(url.username) || !isEncoded(url.password))
    return 'has a "%" in its user or password that begins no percent-encoding: write it as %25'
  if (url.hash !== '') return `cannot have a "#": ${ENCODED}`
  if (url.search !== '') {
    const [name = ''] = url.searchParams.keys()
    const meant = QUERY.find(([known]) => known.test(name))?.[1]
    return `cannot have a query: ${meant ?? 'remove what follows the "?"'}`
  }
  if (!/^\/?$|^\/\d{1,5}$/.test(url.pathname))
    return 'has a path that is not the number of a database: write none, or a number as in redis://redis:6379/1'
  if (url.port === '0') return 'cannot have the port 0'
  return undefined
}

/** The number of the database in an address. */
export function databaseOf(address: string): number {
  return Number(new URL(address).pathname.slice(1))
}

/** Whether two addresses have the same user, password and scheme, or the other one has none. */
export function sameAccess(first: string, other: string): boolean {
  const [a, b] = [new URL(first), new URL(other)]
  const isBare = b.username === '' && b.password === ''
  return a.protocol === b.protocol && (isBare || (a.username === b.username && a.password === b.password))
}

function other(text: string): string {
  const meant = OTHERS.find(([pattern]) => pattern.test(text))?.[1]
  return meant === undefined ? '' : `: ${meant}`
}

function isEncoded(part: string): boolean {
  try {
    decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}
