/** Misspelt names in a configuration: what was probably meant is said. */
import t from 'tap'
import { ConfigError, parseSettings, unknownKeys } from '../../src/config/settings.js'

const sources = { env: {}, read: () => '' }
const entry = { command: 'x' }
const issuesOf = (settings: object) => {
  try {
    parseSettings({ mcpServers: { a: entry }, ...settings }, sources)
    return ''
  } catch (error) {
    return error instanceof ConfigError ? error.message : String(error)
  }
}

t.test('refuses a misspelt option, and suggests the nearest one at the same place', async (t) => {
  const cases: [settings: object, said: string][] = [
    [{ timeouts: { drainTimout: 1 } }, 'timeouts.drainTimout: is not an option: did you mean "drainTimeout"?'],
    [{ Listen: 'stdio' }, 'Listen: is not an option: did you mean "listen"?'],
    [
      { mcpServers: { 'a.b': { ...entry, timeouts: { cal: 1 } } } },
      'mcpServers.a.b.timeouts.cal: is not an option: did you mean "call"?',
    ],
    [
      { mcpServers: { a: { url: 'https://x/mcp', oauth: { scope: 'x' } } } },
      'mcpServers.a.oauth.scope: is not an option: did you mean "scopes"?',
    ],
    [{ auth: { token: {} } }, 'auth.token: is not an option: did you mean "tokens"?'],
    [{ limits: { elephants: 1 } }, 'limits.elephants: is not an option'],
  ]
  for (const [settings, said] of cases) t.equal(issuesOf(settings), said)
})

t.test('ignores unknown keys of an entry, and suggests the nearest one for a misspelt key', async (t) => {
  const mcpServers = { a: { ...entry, sesion: 'shared', autoApprove: [] } }
  t.match(unknownKeys({ mcpServers }), [
    { path: 'mcpServers.a.sesion', message: /ignored: did you mean "session"\?$/ },
    { path: 'mcpServers.a.autoApprove', message: /ignored$/ },
  ])
})

t.test('suggests the misspelt key for an entry without "command"', async (t) => {
  t.match(issuesOf({ mcpServers: { a: { comand: 'npx' } } }), /It has "comand": did you mean "command"\?/)
})
