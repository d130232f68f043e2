/** References to environment variables in a configuration: where they are replaced, and by what. */
import t from 'tap'
import { examine, examineOffline, parseSettings, type Settings } from '../../src/config/settings.js'
import { run, says, startProgram } from '../support/cli.js'
import { temporaryFile } from '../support/folder.js'

type Json = Record<string, unknown>

const SECRET = 'x'.repeat(32)
const LEAST = { mcpServers: { a: { url: 'https://a.example/mcp' } } }

function settingsOf(input: Json, env: Record<string, string> = {}): Settings {
  return parseSettings({ ...LEAST, ...input }, { env, read: () => '' })
}

t.test('references are replaced in texts of every option', async (t) => {
  const rows: [input: Json, env: Record<string, string>, read: (settings: Settings) => unknown, expected: unknown][] = [
    [{ publicUrl: 'https://${H}/tools' }, { H: 'h.example' }, (s) => s.publicUrl, 'https://h.example/tools'],
    [{ publicUrl: '${URL}' }, { URL: 'https://h.example' }, (s) => s.publicUrl, 'https://h.example'],
    [{ allowedHosts: ['${H}', 'b.example'] }, { H: 'a.example' }, (s) => s.allowedHosts, ['a.example', 'b.example']],
    [{ allowedOrigins: ['https://${H}'] }, { H: 'a.example' }, (s) => s.allowedOrigins, ['https://a.example']],
    [{ listen: 'http://127.0.0.1:${PORT}/mcp' }, { PORT: '9999' }, (s) => s.listen, 'http://127.0.0.1:9999/mcp'],
    [{ listen: 'http://127.0.0.1:${PORT:-7777}' }, {}, (s) => s.listen, 'http://127.0.0.1:7777'],
    [{ admin: 'http://127.0.0.1:${env:PORT}' }, { PORT: '9' }, (s) => s.admin, 'http://127.0.0.1:9'],
    [{ trustedProxies: ['${NET}'] }, { NET: '10.0.0.0/8' }, (s) => s.trustedProxies, ['10.0.0.0/8']],
    [{ log: { level: '${LEVEL}' } }, { LEVEL: 'debug' }, (s) => s.log.level, 'debug'],
    [{ audit: { file: '${DIR}/audit' } }, { DIR: '/var' }, (s) => s.audit?.file, '/var/audit'],
    [{ stateKeys: ['${KEY}'] }, { KEY: SECRET }, (s) => s.stateKeys, [SECRET]],
    [{ publicUrl: 'https://h.example/$${H}' }, {}, (s) => s.publicUrl, 'https://h.example/${H}'],
    [{ mcpServers: { a: { url: 'https://${H}:${PORT}/mcp' } } }, { H: 'h', PORT: '1' }, urlOf, 'https://h:1/mcp'],
  ]
  for (const [input, env, read, expected] of rows) t.same(read(settingsOf(input, env)), expected, JSON.stringify(input))
  for (const input of [
    { publicUrl: 'https://${MISSING}' },
    { allowedHosts: ['${MISSING}'] },
    { listen: 'http://h:${MISSING}' },
  ])
    t.throws(() => settingsOf(input), { message: /the environment variable MISSING is not set/ }, JSON.stringify(input))
})

function urlOf({ mcpServers }: Settings): string {
  return (mcpServers['a'] as { url: string }).url
}

t.test('an IPv6 address gets its brackets where it is the host of an address, and nowhere else', async (t) => {
  const env = {
    IP: 'fd00::1:2',
    LOOP: '::1',
    MAPPED: '::ffff:10.0.0.1',
    BOTH: '[fd00::1]',
    V4: '10.0.0.1',
    NAME: 'redis',
    PASS: 'a::b::c',
  }
  const redis = (url: string) => ({ redis: { url }, stateKeys: [SECRET] })
  const url = (address: string) => ({ mcpServers: { a: { url: address } } })
  const rows: [input: Json, read: (settings: Settings) => unknown, expected: unknown][] = [
    [
      { ...redis('redis://h'), replicas: { address: 'http://${IP}:8090' } },
      (s) => s.replicas.address,
      'http://[fd00::1:2]:8090',
    ],
    [
      { ...redis('redis://h'), replicas: { address: 'https://${V4}:8090' } },
      (s) => s.replicas.address,
      'https://10.0.0.1:8090',
    ],
    [redis('redis://${IP}'), (s) => s.redis?.url, 'redis://[fd00::1:2]'],
    [redis('rediss://user:${PASS}@${LOOP}:6379/1'), (s) => s.redis?.url, 'rediss://user:a::b::c@[::1]:6379/1'],
    [redis('redis://${NAME}:6379'), (s) => s.redis?.url, 'redis://redis:6379'],
    [redis('redis://${env:IP}:6379'), (s) => s.redis?.url, 'redis://[fd00::1:2]:6379'],
    [redis('redis://${NOT:-fd00::9}:6379'), (s) => s.redis?.url, 'redis://[fd00::9]:6379'],
    [url('http://${MAPPED}:1/mcp'), urlOf, 'http://[::ffff:10.0.0.1]:1/mcp'],
    [url('http://${BOTH}:1/mcp'), urlOf, 'http://[fd00::1]:1/mcp'],
    [url('http://[${IP}]:1/mcp'), urlOf, 'http://[fd00::1:2]:1/mcp'],
    [url('http://h.example/${IP}'), urlOf, 'http://h.example/fd00::1:2'],
    [url('http://h.example/?a=${IP}'), urlOf, 'http://h.example/?a=fd00::1:2'],
    [{ listen: 'http://${LOOP}:8080/mcp' }, (s) => s.listen, 'http://[::1]:8080/mcp'],
    [{ publicUrl: 'https://${IP}/tools' }, (s) => s.publicUrl, 'https://[fd00::1:2]/tools'],
    [{ allowedHosts: ['${IP}', '${V4}', '${NAME}'] }, (s) => s.allowedHosts, ['[fd00::1:2]', '10.0.0.1', 'redis']],
    [{ trustedProxies: ['${IP}', '${LOOP}/128'] }, (s) => s.trustedProxies, ['fd00::1:2', '::1/128']],
    [
      { mcpServers: { a: { command: 'x', args: ['--host', '${IP}', 'redis://${IP}:1', '${PASS}'] } } },
      ({ mcpServers: { a } }) => (a as { args: string[] }).args,
      ['--host', 'fd00::1:2', 'redis://[fd00::1:2]:1', 'a::b::c'],
    ],
  ]
  for (const [input, read, expected] of rows) t.same(read(settingsOf(input, env)), expected, JSON.stringify(input))
})

t.test(
  'a value in quotes or spaces is told at the start and by check, with its variable and place, and never shown',
  async (t) => {
    const config = {
      listen: 'http://127.0.0.1:0/mcp',
      mcpServers: { a: { url: 'http://127.0.0.1:1/mcp', headers: { Authorization: 'Bearer ${KEY_OF_A}' } } },
      stateKeys: ['${STATE_KEY}'],
    }
    const file = temporaryFile(t, 'bridge.json', config)
    const env = { KEY_OF_A: '"canary-of-a"', STATE_KEY: `'${'canary-key'.repeat(4)}'` }
    const said = [
      /mcpServers\.a\.headers\.Authorization.*KEY_OF_A has quotes around its value: write it without them, also in a file for docker --env-file/,
      /stateKeys\.0.*STATE_KEY has quotes around its value/,
    ]
    const checked = await run(t, ['check', '--config', file], env)
    t.equal(checked.code, 0)
    const started = startProgram(t, ['--config', file, '--log-format', 'json'], env)
    for (const part of said) {
      t.match(checked.stdout, part)
      await says(started, new RegExp(`"event":"config_suspicious".*${part.source}`))
    }
    t.notMatch(checked.stdout + started.stderr(), /canary/)
    for (const [value, by] of [
      ['canary-of-a\r', 'spaces or line breaks'],
      [' canary-of-a', 'spaces or line breaks'],
    ] as const) {
      const { stdout } = await run(t, ['check', '--config', file], { KEY_OF_A: value, STATE_KEY: SECRET })
      t.match(stdout, new RegExp(`KEY_OF_A has ${by} around its value`))
    }
    const sound = await run(t, ['check', '--config', file], { KEY_OF_A: 'a"b"', STATE_KEY: SECRET })
    t.notMatch(sound.stdout, /quotes/)
  },
)

t.test(
  'offline, texts with references are taken as valid, and references in place of other values are not',
  async (t) => {
    const sources = { env: {}, read: () => '' }
    const valid: Json[] = [
      { publicUrl: 'https://${H}/tools' },
      { publicUrl: '${URL}', publish: {} },
      { listen: 'http://127.0.0.1:${PORT}/mcp' },
      { listen: '${LISTEN}', admin: 'http://${IP}:${PORT}' },
      { allowedHosts: ['${H}', '${H}:8443'], allowedOrigins: ['https://${H}', '${ORIGIN}'] },
      { trustedProxies: ['${NET}'] },
      { log: { level: '${LEVEL}' } },
      { auth: { issuers: [{ issuer: 'https://${H}/realm', audience: '${A}' }] }, publicUrl: '${URL}' },
    ]
    for (const input of valid) t.same(examineOffline({ ...LEAST, ...input }, sources).issues, [], JSON.stringify(input))
    const wrong: [input: Json, path: string][] = [
      [{ limits: { calls: '${N}' } }, 'limits.calls'],
      [{ metrics: '${YES}' }, 'metrics'],
      [{ allowedHosts: '${HOSTS}' }, 'allowedHosts'],
      [{ tls: '${TLS}' }, 'tls'],
      [{ nothing: '${X}' }, 'nothing'],
      [{ log: { nothing: '${X}' } }, 'log.nothing'],
    ]
    for (const [input, path] of wrong) {
      const { issues } = examineOffline({ ...LEAST, ...input }, sources)
      t.same(
        issues.map((issue) => issue.path),
        [path],
        path,
      )
    }
  },
)

t.test('a reference where none is replaced is refused by its name', async (t) => {
  const rows: [input: Json, path: string, message: RegExp][] = [
    [
      { limits: { calls: '${N}' } },
      'limits.calls',
      /has to be a number, not a string, and the reference \$\{N\} stands for a text: write the value itself/,
    ],
    [{ limits: { calls: '${N:-7}' } }, 'limits.calls', /the reference \$\{N\}/],
    [{ metrics: '${env:N}' }, 'metrics', /the reference \$\{env:N\}/],
    [{ allowedHosts: '${N}' }, 'allowedHosts', /the reference \$\{N\}/],
    [{ tls: '${file:/n}' }, 'tls', /the reference \$\{file:\/n\}/],
    [{ auth: { tokens: { '${N}': SECRET } } }, 'auth.tokens.${N}', /a reference in a name.*write the name itself/],
    [
      { auth: { issuers: [{ issuer: 'https://i.example', map: { '${N}': ['write'] } }] } },
      'auth.issuers.0.map.${N}',
      /a reference in a name/,
    ],
  ]
  for (const [input, path, message] of rows) {
    const { issues } = examine({ ...LEAST, ...input }, { env: { N: '5' }, read: () => '5' })
    t.match(issues.find((issue) => issue.path === path)?.message, message, path)
  }
})

t.test('an address with an IPv6 address without brackets is refused with the right spelling', async (t) => {
  const redis = { redis: { url: 'redis://h' }, stateKeys: [SECRET] }
  const rows: [input: Json, path: string][] = [
    [{ listen: 'http://fd00::1:8080/mcp' }, 'listen'],
    [{ admin: 'http://::1:9090' }, 'admin'],
    [{ publicUrl: 'https://fd00::1/tools' }, 'publicUrl'],
    [{ mcpServers: { a: { url: 'http://fd00::1:3000/mcp' } } }, 'mcpServers.a.url'],
    [{ ...redis, replicas: { address: 'http://fd00::1:8090' } }, 'replicas.address'],
    [{ ...redis, redis: { url: 'redis://:secret@fd00::1:6379' } }, 'redis.url'],
    [{ allowedOrigins: ['https://fd00::1'] }, 'allowedOrigins.0'],
  ]
  for (const [input, path] of rows) {
    const { issues } = examine({ ...LEAST, ...input }, { env: {}, read: () => '' })
    const { message } = issues.find((issue) => issue.path === path) ?? {}
    t.match(message, /write an IPv6 address in brackets, as in \[fd00::1\]/, path)
    t.notMatch(message, /secret/)
  }
})
