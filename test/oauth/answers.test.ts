/** Answers of token endpoints: those that are irregular are understood, those that are wrong are refused. */
import t, { type Test } from 'tap'
import { type Answer, ScriptedAs } from '../support/scripted-as.js'
import { Protected, reasonOf, signingIn } from '../support/signing-in.js'

const good = { access_token: 'CANARY-access', token_type: 'Bearer', expires_in: 3600 }
const never = new AbortController().signal

const obtained = async (t: Test, answer: Answer, settings = {}) => {
  const as = await ScriptedAs.start(t, { token: () => answer })
  const server = await Protected.start(t, as.issuer)
  const signing = signingIn(t, { server, settings })
  const challenge = server.challenge(', scope="a b"')
  const header = await signing.unauthorized(undefined, challenge).catch((error: Error) => error)
  return { as, signing, header, record: await signing.store.read(signing.account.key) }
}

t.test('understands answers that deviate from RFC 6749', async (t) => {
  const cases: Record<string, [answer: Answer, token: object]> = {
    'no token_type': [[200, { access_token: 'CANARY-access' }], { expires: undefined }],
    'token_type in lower case': [[200, { ...good, token_type: 'bearer' }], {}],
    'HTTP 201': [[201, good], {}],
    'a list of scopes': [[200, { ...good, scope: ['a', 'c'] }], { granted: ['a', 'c'] }],
    'no scope': [[200, good], { granted: ['a', 'b'] }],
    'scope that is null': [[200, { ...good, scope: null }], { granted: ['a', 'b'] }],
    'expires_in as a text': [[200, { ...good, expires_in: '60' }], {}],
    'expires_in that is null': [[200, { ...good, expires_in: null }], { expires: undefined }],
    'expires_in that is no time': [[200, { ...good, expires_in: 'soon' }], { expires: undefined }],
    'expires_in below zero': [[200, { ...good, expires_in: -1 }], { expires: undefined }],
    'members that are null': [
      [200, { ...good, refresh_token: null, error: null, id_token: null }],
      { refresh: undefined },
    ],
    'an empty refresh token': [[200, { ...good, refresh_token: '' }], { refresh: undefined }],
    'an ID token that nobody asked for': [[200, { ...good, id_token: 'no.jwt' }], {}],
    'another content type': [[200, good, { 'content-type': 'text/html' }], {}],
    'no content type that is known': [[200, good, { 'content-type': '' }], {}],
  }
  for (const [name, [answer, token]] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const { header, record } = await obtained(t, answer)
      t.equal(header, 'Bearer CANARY-access')
      t.match(record?.token, { access: 'CANARY-access', type: 'bearer', ...token })
    })
  }
})

t.test('answers without a token are a clear failure, and nothing of them is shown or stored', async (t) => {
  const text = 'CANARY-description'
  const cases: Record<string, [answer: Answer, reason: string, said?: RegExp]> = {
    'an error': [[400, { error: 'invalid_request', error_description: text }], 'auth_failed', /invalid_request/],
    'an error with HTTP 200': [
      [200, { error: 'invalid_grant', error_description: text }],
      'auth_failed',
      /invalid_grant/,
    ],
    'an error beside a token': [[200, { ...good, error: 'invalid_grant' }], 'auth_failed', /invalid_grant/],
    'an error beside a challenge': [
      [401, { error: 'invalid_client', error_description: text }, { 'www-authenticate': 'Basic realm="CANARY-realm"' }],
      'auth_failed',
      /invalid_client/,
    ],
    'an error code that is none': [[400, { error: 'CANARY <script>' }], 'auth_failed', /unknown/],
    'a challenge alone': [[401, '', { 'www-authenticate': 'Bearer realm="CANARY-realm"' }], 'auth_failed'],
    'HTTP 400 without a word': [[400, ''], 'auth_failed'],
    'HTTP 500': [[500, { error: 'server_error', error_description: text }], 'upstream_unavailable'],
    'HTTP 503': [[503, ''], 'upstream_unavailable'],
    'HTTP 429': [[429, ''], 'upstream_unavailable'],
    'temporarily unavailable': [[400, { error: 'temporarily_unavailable' }], 'upstream_unavailable'],
    'a redirect': [[307, '', { location: 'https://evil.example/CANARY' }], 'auth_failed'],
    'no JSON': [[200, `<html>${text}</html>`], 'auth_failed'],
    'a list': [[200, '[]'], 'auth_failed'],
    'no token': [[200, { token_type: 'Bearer' }], 'auth_failed'],
    'an empty token': [[200, { ...good, access_token: '' }], 'auth_failed'],
    'a number for a token': [[200, { ...good, access_token: 42 }], 'auth_failed'],
    'a token with a line break': [[200, { ...good, access_token: 'a\r\nx-evil: 1' }], 'auth_failed'],
    'a token that fits no header': [[200, { ...good, access_token: 'x'.repeat(16_385) }], 'auth_failed'],
    'a refresh token that is none': [[200, { ...good, refresh_token: { a: 1 } }], 'auth_failed'],
    'a token that wants proofs': [[200, { ...good, token_type: 'DPoP' }], 'auth_failed'],
    'a token of an unknown kind': [[200, { ...good, token_type: 'mac' }], 'auth_failed'],
    'a mebibyte': [[200, { ...good, access_token: 'x'.repeat(1024 * 1024) }], 'upstream_unavailable'],
  }
  for (const [name, [answer, reason, said = /./]] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const { header, record, signing } = await obtained(t, answer)
      t.match(header, { row: { reason }, message: said })
      const { cause, message } = header as Error
      t.notMatch(
        JSON.stringify([message, String(cause), signing.logged, await signing.visits[0]]).replace(
          /CANARY-code-\d/g,
          '',
        ),
        /CANARY/,
      )
      t.notOk(record?.token)
      t.notMatch(JSON.stringify(record), /CANARY/)
    })
  }
})

t.test('passes on Retry-After of the authorization server', async (t) => {
  const { header } = await obtained(t, [429, '', { 'retry-after': '17' }])
  t.match(header, { retryAfter: 17 })
})

t.test(
  'form-encodes Basic credentials, and sends them unencoded where the authorization server requires it',
  async (t) => {
    const settings = { clientId: 'id-with.dots', clientSecret: 'a+b/c=%:ä' }
    const encoded = `Basic ${Buffer.from('id-with.dots:a%2Bb%2Fc%3D%25%3A%C3%A4').toString('base64')}`
    const plain = `Basic ${Buffer.from('id-with.dots:a+b/c=%:ä').toString('base64')}`
    for (const wanted of [encoded, plain]) {
      const as = await ScriptedAs.start(t, {
        metadata: (own) => ({ ...own, token_endpoint_auth_methods_supported: ['client_secret_basic'] }),
        token: ({ headers }) => (headers.authorization === wanted ? undefined : [401, { error: 'invalid_client' }]),
      })
      const server = await Protected.start(t, as.issuer)
      const { unauthorized, account } = signingIn(t, { server, settings })
      const first = await unauthorized()
      t.match(first, /^Bearer /)
      const again = await unauthorized(first)
      t.not(again, first)
      t.same(
        as.of('/token').map(({ headers }) => headers.authorization),
        wanted === encoded ? [encoded, encoded] : [encoded, plain, plain],
        'what has worked is kept',
      )
      t.match(await account.authorization(never), again)
    }
  },
)

t.test('a client whose encoding changes nothing is refused once', async (t) => {
  const as = await ScriptedAs.start(t, { token: () => [401, { error: 'invalid_client' }] })
  const server = await Protected.start(t, as.issuer)
  const { unauthorized } = signingIn(t, { server, settings: { clientId: 'id-1.a', clientSecret: 'secret-2_x' } })
  t.match(await reasonOf(unauthorized()), { reason: 'auth_failed' })
  t.equal(as.of('/token').length, 1)
})
