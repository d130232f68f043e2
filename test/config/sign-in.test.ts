/** What a configuration says of signing in to servers: what is taken, and what cannot be meant. */
import t from 'tap'
import { readConfigFile } from '../../src/config/formats/config-file.js'
import { ConfigError, OPTIONS, parseSettings, type ServerSettings, signInOf } from '../../src/config/settings.js'

const elsewhere = { env: { SECRET: 'hush' }, read: String }
const url = 'https://mcp.example.com/mcp'
const parse = (server: object, more: object = {}) => {
  const settings = parseSettings({ mcpServers: { a: server }, ...more }, elsewhere)
  return signInOf(settings.mcpServers['a'] as ServerSettings, settings)
}
const issuesOf = (server: object, more: object = {}) => {
  try {
    parse(server, more)
    return []
  } catch (error) {
    return error instanceof ConfigError
      ? error.issues.map(({ path, message }) => `${path} ${message}`)
      : [String(error)]
  }
}

t.test('signs in to a server with an address by default', async (t) => {
  t.match(parse({ url }), { grant: 'code', account: 'principal', wait: 40_000 })
  t.equal(parse({ url, oauth: false }), undefined)
  t.equal(parse({ command: 'x' }), undefined)
  t.equal(parse({ url, headers: { authorization: 'Bearer x' } }), undefined)
  t.equal(parse({ url }, { auth: { passthrough: true } }), undefined)
  t.match(parse({ url, headers: { 'x-api-key': 'x' } }), { grant: 'code' })
  const tokens = { one: 'one-one-one-one-one', two: 'two-two-two-two-two' }
  t.equal(parse({ url, session: 'shared' }, { auth: { tokens } }), undefined, 'one session of several principals')
})

t.test('uses an account per caller for interactive sign-ins, and one for all otherwise', async (t) => {
  t.match(parse({ url, oauth: { grant: 'client_credentials', clientId: 'x' } }), { account: 'service' })
  t.match(parse({ url, oauth: { grant: 'token', tokenFile: '/x' } }), { account: 'service' })
  t.match(parse({ url, oauth: { account: 'service' } }), { account: 'service' })
})

t.test('accepts scopes as a list or a text, and secrets as references', async (t) => {
  t.match(parse({ url, oauth: { scopes: ' a  b ' } }), { scopes: ['a', 'b'] })
  t.match(parse({ url, oauth: { scopes: ['a', 'b'] } }), { scopes: ['a', 'b'] })
  t.match(parse({ url, oauth: { clientId: 'x', clientSecret: '${SECRET}' } }), { clientSecret: 'hush' })
})

t.test('reports each invalid combination with its place', async (t) => {
  const open = { listen: 'http://0.0.0.0:8080/mcp', allowUnauthenticated: true }
  const tokens = { one: 'one-one-one-one-one', two: 'two-two-two-two-two' }
  const issuers = { publicUrl: 'https://mcp.example', auth: { issuers: [{ issuer: 'https://login.example' }] } }
  const idp = { issuer: 'https://login.example', clientId: 'y' }
  const cases: [server: object, more: object, issue: RegExp][] = [
    [{ oauth: { grant: 'token' } }, {}, /oauth\.tokenFile is required for the grant/],
    [{ oauth: { tokenFile: '/x' } }, {}, /oauth\.tokenFile is for the grant "token"/],
    [{ oauth: { grant: 'client_credentials' } }, {}, /oauth\.clientId is required for the grant/],
    [
      { oauth: { grant: 'jwt-bearer', clientId: 'x' } },
      {},
      /oauth\.assertionFile is required for the grant "jwt-bearer"/,
    ],
    [{ oauth: { assertionFile: '/x' } }, {}, /oauth\.assertionFile is for the grant "jwt-bearer" only/],
    [{ oauth: { grant: 'id-jag', clientId: 'x' } }, issuers, /oauth\.idp is required for the grant "id-jag"/],
    [{ oauth: { grant: 'id-jag', idp } }, issuers, /oauth\.clientId is required for the grant "id-jag"/],
    [{ oauth: { grant: 'id-jag', clientId: 'x', idp } }, {}, /oauth\.grant "id-jag" requires "auth\.issuers"/],
    [{ oauth: { exchange: {} } }, {}, /oauth\.exchange is for the grant "token-exchange" only/],
    [
      { oauth: { grant: 'token-exchange', clientId: 'x' } },
      issuers,
      /oauth\.issuer is required for the grant "token-exchange": the tokens of callers are sent there/,
    ],
    [
      { oauth: { grant: 'token-exchange', clientId: 'x', issuer: 'https://login.example' } },
      { auth: { tokens } },
      /oauth\.grant "token-exchange" requires "auth\.issuers"/,
    ],
    [
      { oauth: { grant: 'id-jag', clientId: 'x', idp, account: 'service' } },
      issuers,
      /oauth\.account cannot be "service" with the grant "id-jag"/,
    ],
    [{ oauth: {}, headers: { Authorization: 'x' } }, {}, /oauth cannot be combined with "headers\.Authorization"/],
    [{ oauth: {} }, { auth: { passthrough: true } }, /oauth cannot be combined with "auth\.passthrough"/],
    [{ oauth: {}, session: 'shared' }, { auth: { tokens } }, /oauth\.account has to be "service"/],
    [{ oauth: {} }, open, /oauth\.account has to be "service" if callers are not authenticated/],
    [
      { oauth: { callbackPort: 1, redirectUri: 'http://localhost:2/x' } },
      {},
      /callbackPort cannot be combined with "redirectUri"/,
    ],
    [{ oauth: { redirectUri: 'https://example.com/x' } }, {}, /redirectUri has to be like/],
    [{ oauth: { clientID: 'x' } }, {}, /oauth\.clientID is not an option: did you mean "clientId"\?/],
  ]
  for (const [server, more, issue] of cases) t.match(issuesOf({ url, ...server }, more).join('\n'), issue)
  t.same(issuesOf({ url, oauth: { account: 'service' } }, open), [])
})

t.test('translates sign-in options of other programs with the same meaning', async (t) => {
  const read = (file: object, path: string) =>
    readConfigFile(JSON.stringify(file), { path, home: '/home/ada', options: OPTIONS }).servers
  const gemini = { enabled: true, clientId: 'x', scopes: ['a'], authorizationUrl: 'https://x.example/' }
  t.match(read({ mcpServers: { a: { httpUrl: url, oauth: gemini } } }, '/home/ada/.gemini/settings.json'), {
    a: { oauth: { clientId: 'x', scopes: ['a'], authorizationUrl: undefined } },
  })
  t.match(read({ mcp: { a: { type: 'remote', url, oauth: { scope: 'a b' } } } }, '/x/opencode.json'), {
    a: { oauth: { scopes: 'a b' } },
  })
  t.match(read({ mcp: { a: { type: 'remote', url, oauth: false } } }, '/x/opencode.json'), { a: { oauth: false } })
})
