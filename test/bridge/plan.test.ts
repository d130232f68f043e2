/** What a reload makes anew when an option changes: nothing, the mount, or its server with its processes and sessions. */
import t from 'tap'
import { losesCallers, mountSettings, planOf } from '../../src/app/mount-settings.js'
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
/** What is made anew. */
type Anew = 'nothing' | 'mount' | 'server'
/** Bounds, times and keys, which are applied while everything goes on. */
const APPLIED = ['limits', 'timeouts', 'compat', 'stateKeys']
const APPLIED_OF_SERVER = ['path', 'timeouts', 'strictRevisions', 'start']
/** Options of what clients see and may call: the server itself stays. Every other option is of the server, also a new one. */
const POLICIES_OF_SERVER = [
  'scopes',
  'unscoped',
  'tools',
  'prompts',
  'resources',
  'events',
  'schemas',
  'results',
  'cache',
  'cacheFor',
  'paths',
]
/** Options of the bridge as a whole, of which no mount is made. */
const AROUND = [
  ...[
    '$schema',
    'adminToken',
    'groups',
    'lists',
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
const anew = (changed: object, name?: string): Anew => {
  const [before, now] = [plan({}, name), plan(changed, name)]
  if (before.server !== now.server) return 'server'
  return before.policies === now.policies ? 'nothing' : 'mount'
}

for (const name of Object.keys(ENTRIES)) {
  t.test(
    `an option of a server entry (${name}) makes the server anew, except those of policies, times and path`,
    async (t) => {
      t.ok(SERVER_KEYS.size > 10)
      for (const key of SERVER_KEYS) {
        const entry = { ...settings.mcpServers[name], [key]: DIFFERENT }
        const expected = APPLIED_OF_SERVER.includes(key)
          ? 'nothing'
          : POLICIES_OF_SERVER.includes(key)
            ? 'mount'
            : 'server'
        t.equal(anew({ mcpServers: { ...settings.mcpServers, [name]: entry } }, name), expected, key)
      }
    },
  )
}

t.test('an option of a server entry that the bridge does not know makes nothing anew', async (t) => {
  for (const [name, entry] of Object.entries(settings.mcpServers))
    for (const key of ['autoApprove', 'disabledTools', 'toString'])
      t.equal(anew({ mcpServers: { ...settings.mcpServers, [name]: { ...entry, [key]: DIFFERENT } } }, name), 'nothing')
})

t.test('an option of the bridge makes servers anew, except those that are applied or affect no mount', async (t) => {
  for (const key of OPTIONS.filter((key) => !['mcpServers', 'auth', ...APPLIED].includes(key))) {
    const expected = AROUND.includes(key) ? 'nothing' : ['audit', 'metricsTools'].includes(key) ? 'mount' : 'server'
    t.equal(anew({ [key]: ADDRESSES[key] ?? DIFFERENT }), expected, key)
  }
})

for (const group of ['timeouts', 'limits', 'compat'] as const) {
  t.test(`no option of "${group}" makes anything anew, except the first limit of tools`, async (t) => {
    for (const key of Object.keys(fileSchema.shape[group].unwrap().shape))
      if (key !== 'tools') t.equal(anew({ [group]: { ...settings[group], [key]: DIFFERENT } }), 'nothing', key)
    if (group === 'limits') t.equal(anew({ limits: { ...settings.limits, tools: [{}] } }), 'mount')
  })
}

t.test(
  'principals and their scopes make a mount anew only if its tools need scopes, and their secrets never',
  async (t) => {
    const withTokens = (tokens: object, scopes: object = {}) => {
      const all = (tokens: object) => {
        const entry = { ...settings.mcpServers['address'], scopes }
        return { ...settings, mcpServers: { address: entry }, auth: { ...settings.auth, tokens } } as Settings
      }
      const [before, now] = [all({ alice: TOKEN, bob: OTHER }), all(tokens)].map((one) =>
        planOf('address', mountSettings('address', one)),
      )
      if (before?.server !== now?.server) return 'server'
      return before?.policies === now?.policies ? 'nothing' : 'mount'
    }
    const rule = { '*': ['read'] }
    for (const scopes of [{}, rule]) {
      t.equal(withTokens({ alice: OTHER, bob: TOKEN }, scopes), 'nothing')
      t.equal(withTokens({ alice: { token: OTHER, scopes: [] }, bob: OTHER }, scopes), 'nothing')
    }
    const scoped = { alice: { token: TOKEN, scopes: ['read'] }, bob: OTHER }
    t.equal(withTokens(scoped), 'nothing')
    t.equal(withTokens(scoped, rule), 'mount')
    t.equal(withTokens({ alice: TOKEN, bob: OTHER, carol: 'one-more-token-of-length' }), 'nothing')
    t.equal(withTokens({ alice: TOKEN }), 'server', 'a single principal may use all of a bound')
    t.equal(anew({ auth: { passthrough: true } }), 'server')
    t.notMatch(JSON.stringify(plan({})), TOKEN)
  },
)

t.test('a configuration loses callers if it has no longer their token, their provider or their way in', async (t) => {
  const callers = (auth: object | undefined) => ({ ...settings, auth }) as Settings
  const loses = (before: object | undefined, now: object | undefined) => losesCallers(callers(before), callers(now))
  const [alice, both] = [{ tokens: { alice: TOKEN } }, { tokens: { alice: TOKEN, bob: OTHER } }]
  const providers = (...names: string[]) => ({ issuers: names.map((issuer) => ({ issuer })) })
  t.notOk(loses(alice, both))
  t.notOk(loses(alice, { tokens: { alice: OTHER } }))
  t.notOk(loses(providers('https://one.example'), providers('https://one.example', 'https://two.example')))
  t.ok(loses(both, alice))
  t.ok(loses(undefined, alice))
  t.ok(loses(alice, undefined))
  t.ok(loses(providers('https://one.example', 'https://two.example'), providers('https://two.example')))
  t.ok(loses({ forwarded: {} }, alice))
})

t.test('the plan excludes other servers, and includes what discovery found about its own', async (t) => {
  t.equal(anew({ mcpServers: { address: settings.mcpServers['address'] } }), 'nothing')
  const own = mountSettings('address', settings)
  t.not(planOf('address', own, 'pinned').server, planOf('address', own).server)
})
