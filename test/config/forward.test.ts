/** What a configuration says of headers of callers and of their own keys: what is taken, and what cannot be meant. */
import t from 'tap'
import {
  ConfigError,
  forwardedTo,
  hasSignInPage,
  parseListen,
  parseSettings,
  type ServerSettings,
  signInOf,
} from '../../src/config/settings.js'

const url = 'https://mcp.example.com/mcp'
const parse = (server: object, more: object = {}) =>
  parseSettings(
    { mcpServers: { a: 'command' in server ? server : { url, ...server } }, ...more },
    { env: {}, read: String },
  )
const issuesOf = (server: object, more: object = {}): string[] => {
  try {
    parse(server, more)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.issues.map(({ path, message }) => `${path} ${message}`)
  }
}

t.test('takes true, a name or an object, whatever their case', async (t) => {
  const forward = {
    'X-Api-Key': true,
    'x-jira': 'Authorization',
    'X-Team': { as: 'X-Org', require: true, replace: true },
  }
  const settings = parse({ forward })
  const own = settings.mcpServers['a'] as ServerSettings
  t.same(forwardedTo(own), [
    { from: 'x-api-key', to: 'x-api-key', isRequired: false, replaces: false },
    { from: 'x-jira', to: 'authorization', isRequired: false, replaces: false },
    { from: 'x-team', to: 'x-org', isRequired: true, replaces: true },
  ])
  t.equal(signInOf(own, settings), undefined, 'callers bring what the server wants')
})

t.test('signs in beside forwarded headers only where that is configured', async (t) => {
  const settings = parse({ forward: { 'x-team': true }, oauth: {} })
  t.match(signInOf(settings.mcpServers['a'] as ServerSettings, settings), { grant: 'code' })
})

t.test('refuses what must not be sent, or would replace a credential', async (t) => {
  const auth = { tokens: { anna: 'token-of-anna-0123456789' } }
  const proxied = { user: 'x-user', secretHeader: 'x-secret', secret: 'secret-of-the-proxy-0123456789abcdef' }
  const cases: [server: object, more: object, issue: RegExp][] = [
    ...['host', 'Cookie', 'connection', 'te', 'transfer-encoding', 'upgrade', 'content-length', 'content-type'].map(
      (name): [object, object, RegExp] => [{ forward: { [name]: true } }, {}, /belongs to the connection or to the/],
    ),
    ...['mcp-session-id', 'Mcp-Param-x', 'proxy-authorization', 'accept', 'traceparent', 'last-event-id', 'dpop'].map(
      (name): [object, object, RegExp] => [{ forward: { 'x-key': name } }, {}, /belongs to the connection or to the/],
    ),
    [{ forward: { Authorization: true } }, { auth }, /forward\.authorization is for the bridge itself/],
    [{ forward: { 'x-user': true } }, { auth: { forwarded: proxied } }, /says to the bridge who calls/],
    [{ forward: { 'x-a': 'x-key', 'x-b': 'X-Key' } }, {}, /forward\.x-b is sent as x-key, like another/],
    [{ forward: { 'x-key': true }, headers: { 'X-Key': 'own' } }, {}, /would replace x-key in "headers"/],
    [{ forward: { 'x-key': 'authorization' }, headers: { Authorization: 'own' } }, {}, /would replace authorization/],
    [{ forward: { 'x-key': 'authorization' }, oauth: {} }, {}, /cannot be combined with "oauth"/],
    [
      { forward: { 'x-key': { as: 'authorization', replace: true } }, oauth: {} },
      {},
      /cannot be combined with "oauth"/,
    ],
    [
      { forward: { 'x-key': 'authorization' } },
      { auth: { passthrough: true } },
      /cannot be combined with "auth.passth/,
    ],
    [{ forward: { 'x-key': true }, session: 'shared' }, {}, /cannot be combined with "session": "shared"/],
    [{ command: 'x', forward: { 'x-key': true } }, {}, /a program gets no headers/],
    [{ forward: { 'x key': true } }, {}, /name of a header/],
    [{ forward: { 'x-key': false } }, {}, /has to be true, a string or an object/],
  ]
  for (const [server, more, issue] of cases) t.match(issuesOf(server, more).join('\n'), issue)
  t.same(issuesOf({ forward: { 'x-key': { replace: true } }, headers: { 'x-key': 'own' } }), [])
})

const PAGE = { publicUrl: 'https://mcp.example.com', auth: { tokens: { anna: 'token-of-anna-0123456789' } } }

t.test('people enter their own keys where there is a page for that', async (t) => {
  const settings = parse({ account: { header: 'X-Api-Key', prefix: 'Key ' } }, PAGE)
  const own = settings.mcpServers['a'] as ServerSettings
  t.match(signInOf(own, settings), { account: 'principal', apiKey: { header: 'x-api-key', prefix: 'Key ' } })
  t.ok(hasSignInPage(settings, parseListen(settings.listen)))
})

t.test('refuses keys of people that nobody could enter, or that could not be sent', async (t) => {
  const account = { header: 'x-key' }
  const cases: [server: object, more: object, issue: RegExp][] = [
    [{ account }, {}, /account requires the page where people enter their keys/],
    [{ account }, { auth: PAGE.auth }, /requires the page/],
    [{ account }, { ...PAGE, publicUrl: 'http://mcp.example.com' }, /requires the page/],
    [{ account }, { ...PAGE, listen: 'stdio' }, /requires the page/],
    [{ account }, { ...PAGE, auth: { passthrough: true } }, /requires the page/],
    [{ account: { header: 'cookie' } }, PAGE, /belongs to the connection or to the protocol/],
    [{ account: { header: 'x key' } }, PAGE, /name of a header/],
    [{ account: { header: 'x-key', prefix: 'a\r\nb' } }, PAGE, /visible ASCII/],
    [{ account: {} }, PAGE, /account\.header is missing/],
    [{ account, headers: { 'X-Key': 'own' } }, PAGE, /would replace x-key in "headers"/],
    [{ account, forward: { 'x-a': 'x-key' } }, PAGE, /cannot be combined with "forward" of x-key/],
    [{ account, oauth: {} }, PAGE, /cannot be combined with "oauth"/],
    [{ account, socket: '/run/x.sock' }, PAGE, /cannot be combined with "socket"/],
    [{ account, session: 'shared' }, PAGE, /cannot be combined with "session": "shared"/],
    [{ command: 'x', account }, PAGE, /a program gets no headers/],
  ]
  for (const [server, more, issue] of cases) t.match(issuesOf(server, more).join('\n'), issue)
})
