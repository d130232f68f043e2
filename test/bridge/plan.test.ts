/** What a mount is made of: a change of any of it changes the plan, so that a reload makes the mount anew. */
import t from 'tap'
import { mountSettings, planOf } from '../../src/bridge/mount-settings.js'
import { fileSchema } from '../../src/config/schema/schema.js'
import { OPTIONS, parseSettings, SERVER_KEYS, type Settings } from '../../src/config/settings.js'

const TOKEN = 'a-token-of-some-length'
const OTHER = 'another-token-of-some-length'
const ENTRIES = { program: { command: 'node' }, address: { url: 'http://127.0.0.1/' } }
const settings = parseSettings(
  { mcpServers: ENTRIES, listen: 'http://127.0.0.1:0/mcp', auth: { tokens: { alice: TOKEN } } },
  { env: {}, read: () => '' },
)

/** No value of any option. */
const DIFFERENT = { different: true }
/** Options of the bridge as a whole. What a mount is made of is everything else, and a new option is part of that. */
const AROUND = [
  ...[
    '$schema',
    'groups',
    'discover',
    'registry',
    'discoverAllow',
    'discoverLoopback',
    'readOnlyTools',
    'trustStore',
    'publish',
  ],
  ...[
    'listen',
    'tls',
    'socketMode',
    'admin',
    'metrics',
    'publicUrl',
    'allowedHosts',
    'allowedOrigins',
    'allowUnauthenticated',
    'trustedProxies',
    'log',
    'inspect',
  ],
]

/** Addresses are read, to know whether there is a page for signing in: not with these. */
const ADDRESSES: Readonly<Record<string, string>> = {
  listen: 'http://127.0.0.1:9/other',
  publicUrl: 'http://other.example',
}

const plan = (changed: object, name = 'address') => {
  const all = { ...settings, ...changed } as Settings
  return planOf(name, mountSettings(name, all))
}
const changes = (changed: object, name?: string) => plan(changed, name) !== plan({}, name)

for (const name of Object.keys(ENTRIES)) {
  t.test(`each option of a server entry (${name}) is part of the plan, except where it is served`, async (t) => {
    t.ok(SERVER_KEYS.size > 10)
    for (const key of SERVER_KEYS) {
      const entry = { ...settings.mcpServers[name], [key]: DIFFERENT }
      t.equal(changes({ mcpServers: { ...settings.mcpServers, [name]: entry } }, name), key !== 'path', key)
    }
  })
}

t.test('each option of the bridge is part of the plan, except those known not to affect any mount', async (t) => {
  for (const key of OPTIONS.filter((key) => key !== 'mcpServers' && key !== 'auth'))
    t.equal(changes({ [key]: ADDRESSES[key] ?? DIFFERENT }), !AROUND.includes(key), key)
})

for (const group of ['timeouts', 'limits', 'compat', 'oauth'] as const) {
  t.test(
    `each option of "${group}" is part of the plan, except those for shutdown and for counts before calls`,
    async (t) => {
      for (const key of Object.keys(fileSchema.shape[group].unwrap().shape))
        t.equal(
          changes({ [group]: { ...settings[group], [key]: DIFFERENT } }),
          !/^drain|PerMinute$/.test(key) || key === 'startsPerMinute',
          key,
        )
    },
  )
}

t.test('principals and their scopes are part of the plan, and their secrets are not', async (t) => {
  const withTokens = (tokens: object) => changes({ auth: { ...settings.auth, tokens } })
  t.notOk(withTokens({ alice: OTHER }))
  t.notOk(withTokens({ alice: { token: OTHER, scopes: [] } }))
  t.ok(withTokens({ alice: { token: TOKEN, scopes: ['read'] } }))
  t.ok(withTokens({ alice: TOKEN, bob: OTHER }), 'with several principals, bounds are shared')
  t.ok(changes({ auth: { passthrough: true } }))
  t.notMatch(plan({}), TOKEN)
})

t.test('the plan excludes other servers, and includes what discovery found about its own', async (t) => {
  t.notOk(changes({ mcpServers: { address: settings.mcpServers['address'] } }))
  const own = mountSettings('address', settings)
  t.not(planOf('address', own, 'pinned'), planOf('address', own))
})
