/** The token of the inspector in a configuration: where it may stand, and which texts can be one. */
import t from 'tap'
import { type ConfigSources, isCallable, parseSettings } from '../../src/config/settings.js'

const SECRETS: ConfigSources = {
  env: { VIEWERS: 'a-token-of-an-environment' },
  // A file as a Windows editor writes it, with a byte order mark (R4).
  read: (path) => `\ufeffa-token-of${path.replaceAll('/', '-')}\r\n`,
}
const parse = (token: string) =>
  parseSettings({ mcpServers: { a: { url: 'https://a.example/mcp' } }, inspect: { token } }, SECRETS).inspect?.token

t.test('accepts a reference to a variable or a file', async (t) => {
  t.equal(parse('${VIEWERS}'), 'a-token-of-an-environment')
  t.equal(parse('${file:/run/viewers}'), 'a-token-of-run-viewers')
  t.equal(parse('a-token-of-the-configuration'), 'a-token-of-the-configuration')
  t.throws(() => parse('${NOT_SET_ANYWHERE}'), {
    message: /inspect\.token: the environment variable NOT_SET_ANYWHERE is not set/,
  })
})

t.test('accepts only characters that no program encodes after the # of an address', async (t) => {
  const good = ['abcdefghijklmnop', 'ABC.def_123~+/=-', `-${'9'.repeat(100)}`]
  for (const token of good) {
    t.equal(parse(token), token)
    t.equal(new URL(`http://127.0.0.1/inspect#${token}`).hash, `#${token}`)
  }
  const wrong = [
    'fifteen-letters',
    '/begins-like-a-place',
    'a"quoted"-token-here',
    'a%41-token-with-percent',
    'a token with spaces',
  ]
  for (const token of [...wrong, 'a-<tag>-in-a-token', 'a-token-with-ümlauts', 'a-token-with-a-#-in-it'])
    t.throws(
      () => parse(token),
      { message: /inspect\.token: has to be 16 or more letters.*cannot begin with \// },
      token,
    )
})

t.test(
  'calls from the inspector: off in a file, and with a token of their own if other machines reach them',
  async (t) => {
    const of = (inspect: object, more: object = {}) =>
      parseSettings({ mcpServers: { a: { url: 'https://a.example/mcp' } }, inspect, ...more }, SECRETS)
    const outside = { admin: 'http://0.0.0.0:9090' }
    const token = 'a-token-of-the-viewers'
    const tryToken = '${VIEWERS}'
    t.equal(isCallable(of({})), false)
    t.equal(isCallable(of({ try: true })), true)
    t.equal(isCallable(of({ try: 'loopback' })), true)
    t.equal(isCallable(of({ try: 'loopback' }, { admin: 'http://127.0.0.1:9090' })), true)
    t.equal(isCallable(of({ try: 'loopback', token }, outside)), false)
    t.equal(isCallable(of({ try: true, token, tryToken }, outside)), true)
    t.equal(of({ try: true, token, tryToken }).inspect?.tryToken, 'a-token-of-an-environment')
    t.throws(() => of({ try: true, token }, outside), { message: /inspect\.tryToken: is required with "try": true/ })
    t.throws(() => of({ try: true, token, tryToken: token }), { message: /inspect\.tryToken: is the same/ })
    t.throws(() => of({ token, tryToken }), { message: /inspect\.tryToken: is for "try": true/ })
  },
)

t.test('names of principals that the bridge uses itself are refused', async (t) => {
  for (const name of ['inspector', 'service', 'local', 'anon'])
    t.throws(
      () => parseSettings({ mcpServers: {}, auth: { tokens: { [name]: 'a-secret-of-16-characters' } } }, SECRETS),
      { message: /is reserved for/ },
      name,
    )
})
