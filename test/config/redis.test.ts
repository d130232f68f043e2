/** Addresses of Redis: each mistake has an error of its own, which does not repeat a password. */
import t from 'tap'
import { ConfigError, parseSettings } from '../../src/config/settings.js'

const sources = { env: {}, read: () => '' }
const stateKeys = ['k'.repeat(32)]
const issueOf = (redis: object) => {
  try {
    parseSettings({ mcpServers: { a: { command: 'x' } }, stateKeys, redis }, sources)
    return ''
  } catch (error) {
    return error instanceof ConfigError ? error.message : `crash: ${error}`
  }
}

t.test('an address of Redis that cannot be used has an error that says how to write it', async (t) => {
  const wrong: [url: string, says: RegExp][] = [
    ['redis://:secret%@host:6379', /%25/],
    ['redis://us%er:secret@host', /%25/],
    ['redis://:secret%zz@host', /%25/],
    ['redis://:secret/x@host:6379', /percent-encoded/],
    ['redis://:secret#x@host:6379', /percent-encoded/],
    ['redis://:secret?x@host:6379', /percent-encoded/],
    ['redis://host/cache', /number of a database/],
    ['redis://host:6379/1/2', /number of a database/],
    ['redis://host:6379/-1', /number of a database/],
    ['redis://host:6379/1.5', /number of a database/],
    ['redis://host:6379?db=1', /as a path, as in redis:\/\/redis:6379\/1/],
    ['redis://host:6379/?database=1', /as a path/],
    ['rediss://host:6379/0?ssl_cert_reqs=none', /"ca", "cert" and "key"/],
    ['redis://host?password=secret', /before the host/],
    ['redis://host?retries=3', /cannot have a query/],
    ['redis://host/1#secret', /cannot have a "#"/],
    ['redis://', /with a host/],
    ['redis:///1', /with a host/],
    ['redis:host', /has to be a redis:\/\/ or rediss:\/\/ address: two slashes/],
    ['redis:/host', /two slashes/],
    ['redis://host:99999', /has to be a redis:\/\/ or rediss:\/\/ address: the port is a number/],
    ['redis://host:6a', /the port is a number/],
    ['redis://host:6379:6380', /the port is a number/],
    ['redis://host:6379,other:6379', /"cluster" or "sentinels"/],
    ['"redis://host:6379"', /without quotes/],
    ['redis://host:0', /port 0/],
    ['host:6379', /begin it with redis:\/\//],
    ['valkey://host', /begin it with redis:\/\//],
    ['unix:///run/redis.sock', /unix socket/],
    ['/run/redis.sock', /unix socket/],
    ['https://host.upstash.io', /not HTTP/],
    ['redis+sentinel://host/mymaster', /"sentinels"/],
    ['', /has to be a redis:\/\/ or rediss:\/\/ address/],
  ]
  for (const [url, says] of wrong)
    for (const [option, redis] of [
      ['redis.url', { url }],
      ['redis.sentinels.0', { url: 'redis://primary', sentinels: [url] }],
      ['redis.cluster.0', { cluster: [url] }],
    ] as const) {
      const issue = issueOf(redis)
      t.match(issue, says, `${option} ${url}`)
      t.match(issue, new RegExp(`^${option}: `))
      t.notMatch(issue, /secret|\n/)
    }
})

t.test('addresses of one list that cannot all be meant are refused', async (t) => {
  const wrong: [redis: object, says: RegExp][] = [
    [{ cluster: ['redis://a/1'] }, /cluster\.0: cannot have the number of a database/],
    [{ cluster: ['redis://a/0', 'redis://:x@b'] }, /cluster\.1: has another scheme, user or password/],
    [{ cluster: ['redis://a', 'rediss://b'] }, /cluster\.1: has another scheme/],
    [{ url: 'redis://p/1', sentinels: ['redis://a/1'] }, /sentinels\.0: cannot have the number of a database/],
    [{ url: 'redis://p/1', sentinels: ['redis://:x@a', 'redis://:y@b'] }, /sentinels\.1: has another/],
  ]
  for (const [redis, says] of wrong) t.match(issueOf(redis), says)
})

t.test('usual addresses of Redis are valid', async (t) => {
  for (const url of [
    'redis://redis',
    'redis://redis:6379/',
    'rediss://user:p%40ss%25@redis.example.com:6380/15',
    'redis://:p@[::1]:6379/0',
    'REDIS://redis:6379',
  ])
    t.equal(issueOf({ url }), '', url)
  t.equal(issueOf({ url: 'redis://:p@primary/2', sentinels: ['redis://:x@a', 'redis://b:26379/0'] }), '')
  t.equal(issueOf({ cluster: ['redis://:x@a', 'redis://b', 'redis://:x@c/0'] }), '')
})
