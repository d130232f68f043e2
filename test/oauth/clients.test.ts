/** As whom the bridge signs in: by the configuration, a document, or a registration; and to whom it shows itself. */
import t from 'tap'
import { Oidc } from '../support/oidc.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { Protected, reasonOf, signingIn } from '../support/signing-in.js'

const document = 'https://client.example/mcp-bridge.json'

t.test('uses the configuration first, then a client ID document, then a registration', async (t) => {
  const as = await ScriptedAs.start(t, { metadata: (own) => ({ ...own, client_id_metadata_document_supported: true }) })
  const server = await Protected.start(t, as.issuer)
  const idOf = async (settings: object) => {
    await signingIn(t, { server, settings }).unauthorized()
    return as.of('/authorize').at(-1)?.params.get('client_id')
  }
  t.equal(await idOf({ clientId: 'own', clientMetadataUrl: document }), 'own')
  t.equal(await idOf({ clientMetadataUrl: document }), document)
  t.equal(as.of('/register').length, 0)
  t.equal(await idOf({}), 'client-1')
  as.script = {}
  t.equal(await idOf({ clientMetadataUrl: document }), 'client-2', 'nobody said that documents are read')
})

t.test('a client with a document signs in at a real authorization server', async (t) => {
  const oidc = await Oidc.start(t, {
    documents: {
      [document]: {
        client_id: document,
        client_name: 'MCP Bridge',
        redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    },
  })
  const server = await Protected.start(t, oidc.issuer)
  const { unauthorized } = signingIn(t, { server, settings: { clientMetadataUrl: document } })
  t.match(await unauthorized(undefined, server.challenge(', scope="mcp:read"')), /^Bearer /)
  t.equal(oidc.of('/reg').length, 0)
})

t.test('a registration has all required members, and one redirect URI', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  await signingIn(t, { server }).unauthorized(undefined, server.challenge(', scope="a b"'))
  const [registered] = as.of('/register')
  t.same(
    { ...registered?.body, redirect_uris: undefined },
    {
      client_name: 'MCP Bridge',
      redirect_uris: undefined,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      scope: 'a b',
    },
  )
  const [redirectUri] = registered?.body['redirect_uris'] as string[]
  t.match(redirectUri, /^http:\/\/localhost:\d+\/callback$/)
  t.equal(as.of('/authorize')[0]?.params.get('redirect_uri'), redirectUri)
  t.equal(as.of('/token')[0]?.params.get('redirect_uri'), redirectUri)
})

t.test('a flow registers once, although another registration was refused', async (t) => {
  const as = await ScriptedAs.start(t, {
    register: ({ body }) =>
      String(body['redirect_uris']).includes('localhost')
        ? [400, { error: 'invalid_redirect_uri', error_description: 'CANARY' }]
        : [200, { client_id: 'by-address' }],
  })
  const { unauthorized, logged } = signingIn(t, { server: await Protected.start(t, as.issuer) })
  t.match(await unauthorized(), /^Bearer /)
  t.match(as.of('/authorize')[0]?.params.get('redirect_uri'), /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
  t.equal(as.of('/register').length, 2)
  t.notMatch(logged.join(), /CANARY/)
})

t.test(
  'a real authorization server that does not know the scopes of a resource registers the bridge without them',
  async (t) => {
    const oidc = await Oidc.start(t, { registersScopes: false })
    const server = await Protected.start(t, oidc.issuer)
    const { unauthorized } = signingIn(t, { server })
    t.match(await unauthorized(undefined, server.challenge(', scope="mcp:read"')), /^Bearer /)
  },
)

t.test('authenticates as the registration says', async (t) => {
  const rows: [supported: string[] | undefined, answer: object, method: string][] = [
    [['none'], { client_secret: 'given-anyway' }, 'none'],
    [undefined, { client_secret: 'secret' }, 'client_secret_basic'],
    [undefined, {}, 'none'],
    [['client_secret_post', 'client_secret_basic'], { client_secret: 'secret' }, 'client_secret_basic'],
    [['client_secret_post'], { client_secret: 'secret' }, 'client_secret_post'],
    [
      ['none', 'client_secret_post'],
      { client_secret: 's', token_endpoint_auth_method: 'client_secret_post' },
      'client_secret_post',
    ],
    [['client_secret_basic'], { token_endpoint_auth_method: 'none' }, 'none'],
  ]
  for (const [supported, answer, method] of rows) {
    const as = await ScriptedAs.start(t, {
      metadata: ({ token_endpoint_auth_methods_supported: _own, ...rest }) => ({
        ...rest,
        ...(supported && { token_endpoint_auth_methods_supported: supported }),
      }),
      register: () => [201, { client_id: 'id', ...answer }],
    })
    await signingIn(t, { server: await Protected.start(t, as.issuer) }).unauthorized()
    const [token] = as.of('/token')
    const used = token?.headers.authorization
      ? 'client_secret_basic'
      : token?.params.has('client_secret')
        ? 'client_secret_post'
        : 'none'
    t.equal(used, method, JSON.stringify([supported, answer]))
  }
})

t.test('an invalid or useless registration is a clear failure', async (t) => {
  const rows: [answer: [number, Record<string, unknown>], reason: string, said: RegExp][] = [
    [[400, { error: 'invalid_client_metadata' }], 'auth_failed', /invalid_client_metadata.*oauth\.clientId/],
    [[401, { error: 'invalid_token' }], 'auth_failed', /invalid_token/],
    [[403, {}], 'auth_failed', /HTTP 403/],
    [[503, {}], 'upstream_unavailable', /HTTP 503/],
    [[201, {}], 'auth_unsafe', /registration/],
    [[201, { client_id: 'a\nb' }], 'auth_unsafe', /registration/],
    [[201, { client_id: 'id', token_endpoint_auth_method: 'private_key_jwt' }], 'auth_failed', /private_key_jwt/],
    [[201, { client_id: 'id', token_endpoint_auth_method: 'client_secret_post' }], 'auth_failed', /client_secret_post/],
  ]
  for (const [answer, reason, said] of rows) {
    const as = await ScriptedAs.start(t, { register: () => answer })
    const { unauthorized, visits } = signingIn(t, { server: await Protected.start(t, as.issuer) })
    t.match(await reasonOf(unauthorized()), { reason, message: said })
    t.equal(visits.length, 0)
  }
})

t.test('without any registration, the error says what to configure, and where', async (t) => {
  const as = await ScriptedAs.start(t, { metadata: ({ registration_endpoint: _own, ...rest }) => rest })
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, visits } = signingIn(t, { server })
  t.match(await reasonOf(unauthorized()), {
    reason: 'client_needed',
    message: /oauth\.clientId.*http:\/\/localhost:\d+\/callback/,
  })
  t.equal(visits.length, 0)
})

t.test('a configured client of another issuer is an error, and no registration replaces it', async (t) => {
  const as = await ScriptedAs.start(t)
  const other = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, visits } = signingIn(t, {
    server,
    settings: { clientId: 'id', clientSecret: 'CANARY-secret', issuer: other.issuer },
  })
  t.match(await reasonOf(unauthorized()), { reason: 'client_needed', message: as.issuer })
  t.equal(visits.length, 0)
  t.same([...as.requests, ...other.requests], [])
})

t.test('the configured issuer is used in place of one that differs by a slash', async (t) => {
  const as = await ScriptedAs.start(t, { path: '/tenant' })
  const server = await Protected.start(t, `${as.issuer}/`)
  t.match(await reasonOf(signingIn(t, { server }).unauthorized()), { reason: 'auth_unsafe', message: /--issuer/ })
  const { unauthorized } = signingIn(t, { server, settings: { clientId: 'id', issuer: as.issuer } })
  t.match(await unauthorized(), /^Bearer /)
})

t.test('an issuer without a path equals the one with a trailing slash', async (t) => {
  for (const inResource of ['', '/'])
    for (const inMetadata of ['', '/']) {
      const what = JSON.stringify({ inResource, inMetadata })
      const as = await ScriptedAs.start(t, {
        metadata: (own) => ({ ...own, issuer: `${own['issuer']}${inMetadata}` }),
        callback: (params) => params.set('iss', `${params.get('iss')}${inMetadata}`),
      })
      const server = await Protected.start(t, `${as.issuer}${inResource}`)
      const signing = signingIn(t, { server })
      const sent = await signing.unauthorized()
      t.match(sent, /^Bearer /, what)
      const renewed = await signing.unauthorized(sent)
      t.not(renewed, sent, `${what}: renewed`)
      as.script = {}
      server.metadata = { resource: server.url, authorization_servers: [as.issuer] }
      const { unauthorized, visits } = signingIn(t, { server, folder: signing.folder })
      t.not(await unauthorized(renewed), renewed, `${what}: renewed when its spelling has changed`)
      t.equal(visits.length, 0, `${what}: without another sign-in`)
      t.equal(as.of('/register').length, 1, what)
    }
})

t.test('a server of 2025-03-26 may name itself with a slash', async (t) => {
  const as = await ScriptedAs.start(t, {
    metadata: (own) => ({ ...own, issuer: `${own['issuer']}/` }),
    callback: (params) => params.set('iss', `${params.get('iss')}/`),
  })
  const server = await Protected.start(t)
  Object.defineProperty(server, 'url', { value: `${as.origin}/mcp` })
  const { unauthorized } = signingIn(t, { server })
  const sent = await unauthorized()
  t.match(sent, /^Bearer /)
  t.not(await unauthorized(sent), sent, 'renewed')
})

t.test('a configured client belongs to its issuer in either spelling', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const settings = { clientId: 'id' }
  const { unauthorized, folder } = signingIn(t, { server, settings })
  const sent = await unauthorized()
  as.script = { metadata: (own) => ({ ...own, issuer: `${own['issuer']}/` }) }
  t.match(await signingIn(t, { server, settings, folder }).unauthorized(sent), /^Bearer /)
})

t.test('nothing of one issuer goes to another when the metadata of the server change', async (t) => {
  const first = await ScriptedAs.start(t, {
    register: () => [201, { client_id: 'first-client', client_secret: 'first-secret' }],
  })
  const second = await ScriptedAs.start(t)
  const server = await Protected.start(t, first.issuer)
  const { unauthorized, store, account } = signingIn(t, { server })
  const sent = await unauthorized()
  server.metadata = { resource: server.url, authorization_servers: [second.issuer] }
  const before = first.requests.length
  const again = await unauthorized(sent)
  t.not(again, sent)
  t.equal(first.requests.length, before, 'the first is not asked any more')
  t.equal(second.of('/register').length, 1)
  const seen = JSON.stringify(second.requests)
  for (const secret of ['first-client', 'first-secret', sent.replace('Bearer ', ''), 'CANARY-refresh-1-of'])
    t.notOk(
      second.of('/token').some(({ params }) => params.get('refresh_token')?.startsWith(secret)) ||
        seen.includes(`"${secret}"`),
      secret,
    )
  t.same(
    second.of('/token').map(({ params }) => params.get('grant_type')),
    ['authorization_code'],
  )
  t.match(await store.read(account.key), { token: { issuer: second.issuer }, client: { issuer: second.issuer } })
})

t.test('the issuer of a token is used while the server names it', async (t) => {
  const first = await ScriptedAs.start(t)
  const second = await ScriptedAs.start(t)
  const server = await Protected.start(t, first.issuer)
  const { unauthorized } = signingIn(t, { server })
  const sent = await unauthorized()
  server.metadata = { resource: server.url, authorization_servers: [second.issuer, first.issuer] }
  await unauthorized(sent)
  t.equal(second.requests.length, 0)
  t.same(
    first.of('/token').map(({ params }) => params.get('grant_type')),
    ['authorization_code', 'refresh_token'],
  )
})

t.test('the resource has the bytes of the metadata in every request, or is in none', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const sentBy = async (resource: string | undefined, settings: object = {}) => {
    server.metadata = resource === undefined ? undefined : { resource, authorization_servers: [as.issuer] }
    const before = as.requests.length
    const { unauthorized } = signingIn(t, { server, settings })
    await unauthorized(await unauthorized())
    const requests = as.requests.slice(before).filter(({ path }) => path === '/authorize' || path === '/token')
    t.equal(requests.length, 3)
    t.same(new Set(requests.map(({ params }) => params.getAll('resource').length)).size, 1)
    return [...new Set(requests.map(({ params }) => params.get('resource')))]
  }
  const { origin } = server
  for (const resource of [server.url, `${server.url}/`, origin, `${origin}/`, origin.replace('http', 'HTTP')])
    t.same(await sentBy(resource), [resource])
  t.same(await sentBy(server.url, { resource: false }), [null])
  t.same(await sentBy(server.url, { resource: 'urn:other' }), ['urn:other'])
  t.same(await sentBy(undefined, { issuer: as.issuer }), [server.url], 'where the server says nothing, its own address')
})

t.test('sends configured parameters, which replace no others', async (t) => {
  const as = await ScriptedAs.start(t, {
    metadata: (own) => ({ ...own, authorization_endpoint: `${own['authorization_endpoint']}?tenant=1&state=no` }),
  })
  const server = await Protected.start(t, as.issuer)
  const params = {
    audience: 'a b',
    prompt: 'consent',
    state: 'mine',
    redirect_uri: 'https://evil.example',
    scope: 'all',
  }
  await signingIn(t, { server, settings: { params } }).unauthorized()
  const [{ params: sent } = { params: new URLSearchParams() }] = as.of('/authorize')
  t.match(Object.fromEntries(sent), { tenant: '1', audience: 'a b', prompt: 'consent', response_type: 'code' })
  t.match(sent.get('redirect_uri'), /^http:\/\/localhost:/)
  t.notMatch(sent.get('state'), /^(?:mine|no)$/)
  t.notOk(sent.has('scope'))
  t.equal(new Set(sent.keys()).size, [...sent.keys()].length, 'each once')
})

t.test('a server of 2025-03-26 is its own authorization server', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = { url: `${as.origin}/mcp`, challenge: () => 'Bearer' } as Protected
  const { unauthorized, account } = signingIn(t, { server })
  const sent = await unauthorized()
  t.match(sent, /^Bearer /)
  t.match(as.of('/.well-known/oauth-authorization-server')[0]?.headers['mcp-protocol-version'], '2025-03-26')
  t.notOk(as.of('/authorize')[0]?.params.has('resource'))
  t.match(await unauthorized(sent), /^Bearer /)
  t.same(
    as.of('/token').map(({ params }) => params.get('grant_type')),
    ['authorization_code', 'refresh_token'],
  )
  t.match(await account.status(), { issuer: as.origin, signedIn: true })
  const modern = signingIn(t, { server, isModern: true })
  t.match(await reasonOf(modern.unauthorized()), { reason: 'auth_failed', message: /oauth\.issuer/ })
})

t.test('a server of 2025-03-26 without metadata has the endpoints of that revision', async (t) => {
  const as = await ScriptedAs.start(t, { metadata: () => undefined, callback: (params) => params.delete('iss') })
  const server = { url: `${as.origin}/v1/mcp`, challenge: () => 'Bearer' } as Protected
  const { unauthorized } = signingIn(t, { server })
  t.match(await unauthorized(), /^Bearer /)
  t.equal(as.of('/register').length, 1)
})

t.test('a server that requires a key and knows no sign-in is not taken for one that does', async (t) => {
  const server = await Protected.start(t)
  const { unauthorized, visits } = signingIn(t, { server })
  t.match(await reasonOf(unauthorized(undefined, 'Bearer')), {
    reason: 'auth_failed',
    message: /"headers".*"oauth\.issuer"/,
  })
  t.equal(visits.length, 0)
})

t.test('does not send a configured client to another issuer that a server names later', async (t) => {
  const first = await ScriptedAs.start(t)
  const second = await ScriptedAs.start(t)
  const server = await Protected.start(t, first.issuer)
  const settings = { clientId: 'own', clientSecret: 'CANARY-secret' }
  const { unauthorized, folder } = signingIn(t, { server, settings })
  const sent = await unauthorized()
  server.metadata = { resource: server.url, authorization_servers: [second.issuer] }
  t.match(await reasonOf(unauthorized(sent)), { reason: 'client_needed', message: /oauth\.issuer/ })
  const robot = signingIn(t, { server, folder, settings: { ...settings, grant: 'client_credentials' as const } })
  t.match(await reasonOf(robot.unauthorized(sent)), { reason: 'client_needed' })
  t.same(
    second.requests.filter(({ path }) => !path.startsWith('/.well-known/')),
    [],
  )
  const told = signingIn(t, { server, folder, settings: { ...settings, issuer: second.issuer } })
  t.match(await told.unauthorized(sent), /^Bearer /, 'unless the configuration says so')
})

t.test('messages show no query of the address of a server', async (t) => {
  const server = await Protected.start(t)
  server.metadata = { resource: 'https://evil.example/mcp?CANARY' }
  const own = { url: `${server.url}?key=CANARY`, challenge: () => server.challenge() } as Protected
  const { message } = await reasonOf(signingIn(t, { server: own }).unauthorized())
  t.match(message, /evil\.example/)
  t.notMatch(message, /CANARY/)
})
