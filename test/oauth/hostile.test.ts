/** Servers and authorization servers that break a rule: a clear failure, no browser window, and nothing that is stored. */
import { existsSync, readdirSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { until } from '../support/eventually.js'
import { type Script, ScriptedAs } from '../support/scripted-as.js'
import { Protected, reasonOf, type Signing, signingIn } from '../support/signing-in.js'

/** Nobody was asked, registered or given anything, and nothing is kept. */
const nothingHappened = (t: Test, as: ScriptedAs | undefined, { visits, shown, folder }: Signing) => {
  t.equal(visits.length, 0, 'no browser')
  t.equal(shown.length, 0, 'no address is shown')
  t.same(as?.requests.filter(({ path }) => !path.startsWith('/.well-known/')) ?? [], [], 'no request but for metadata')
  t.same(existsSync(folder) ? readdirSync(folder) : [], [], 'nothing is stored')
}

t.test('does not fetch metadata of another origin, wherever the challenge points', async (t) => {
  const as = await ScriptedAs.start(t)
  const elsewhere = await Protected.start(t, as.issuer)
  const server = await Protected.start(t, as.issuer)
  const signing = signingIn(t, { server })
  await signing.unauthorized(undefined, elsewhere.challenge())
  t.same(elsewhere.asked, [])
  t.same(server.asked, ['/.well-known/oauth-protected-resource/mcp'])
})

t.test('metadata that do not cover the server lead to no registration and no browser', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  for (const resource of [
    'https://evil.example/mcp',
    `${server.origin}/other`,
    `${server.origin}/mcp/further`,
    'mcp',
  ]) {
    const signing = signingIn(t, { server })
    server.metadata = { resource, authorization_servers: [as.issuer] }
    t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_unsafe', message: resource })
    nothingHappened(t, as, signing)
  }
  t.same(as.requests, [], 'the authorization server was not even looked at')
})

t.test('invalid, large or slow metadata of a resource are a clear failure', async (t) => {
  const cases: Record<string, [metadata: object | ((response: ServerResponse) => void), reason: string]> = {
    'no resource': [{ authorization_servers: ['https://a.example'] }, 'auth_unsafe'],
    'no authorization server': [{ resource: 'own', authorization_servers: [] }, 'auth_failed'],
    'not even a list': [{ resource: 'own', authorization_servers: 'https://a.example' }, 'auth_failed'],
    'a mebibyte': [(response) => response.end(`{"resource":"${'x'.repeat(1024 * 1024)}"}`), 'upstream_unavailable'],
    'HTTP 500': [(response) => response.writeHead(500).end(), 'upstream_unavailable'],
    'HTTP 403': [(response) => response.writeHead(403).end(), 'auth_failed'],
    'a redirect': [(response) => response.writeHead(302, { location: '/else' }).end(), 'auth_failed'],
    'a connection that ends': [(response) => response.destroy(), 'upstream_unavailable'],
    'slow bytes': [
      (response) => {
        const timer = setInterval(() => response.write(' '), 1_000)
        response.on('close', () => clearInterval(timer))
      },
      'upstream_unavailable',
    ],
  }
  for (const [name, [metadata, reason]] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const server = await Protected.start(t)
      server.metadata =
        'resource' in metadata && metadata.resource === 'own' ? { ...metadata, resource: server.url } : metadata
      const signing = signingIn(t, { server })
      t.match(await reasonOf(signing.unauthorized()), { reason })
      nothingHappened(t, undefined, signing)
    })
  }
})

t.test('does not use metadata whose issuer differs by a byte', async (t) => {
  const variants: Record<string, (issuer: string) => string> = {
    'two slashes at the end': (issuer) => `${issuer}//`,
    'a query': (issuer) => `${issuer}/?x`,
    'the name in the place of the address': (issuer) => issuer.replace('127.0.0.1', 'localhost'),
    'a path': (issuer) => `${issuer}/tenant`,
    'another scheme': (issuer) => issuer.replace('http:', 'https:'),
    'upper case': (issuer) => issuer.replace('http', 'HTTP'),
    'somebody else': () => 'https://honest.example',
  }
  for (const [name, variant] of Object.entries(variants)) {
    await t.test(name, async (t) => {
      const as = await ScriptedAs.start(t, { metadata: (own) => ({ ...own, issuer: variant(String(own['issuer'])) }) })
      const server = await Protected.start(t, as.issuer)
      const signing = signingIn(t, { server })
      const { reason, message } = await reasonOf(signing.unauthorized())
      t.equal(reason, 'auth_unsafe')
      t.ok(message.includes(as.issuer) && message.includes(variant(as.issuer)), 'the message shows both')
      nothingHappened(t, as, signing)
    })
  }
})

t.test('looks for metadata in order, and uses the first that exist', async (t) => {
  const paths = (as: ScriptedAs) => as.requests.map(({ path }) => path).filter((path) => path.includes('.well-known'))
  const root = await ScriptedAs.start(t, { place: '/.well-known/openid-configuration' })
  await signingIn(t, { server: await Protected.start(t, root.issuer) }).unauthorized()
  t.same(paths(root), ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'])
  const tenant = await ScriptedAs.start(t, { path: '/t1', place: '/t1/.well-known/openid-configuration' })
  await signingIn(t, { server: await Protected.start(t, tenant.issuer) }).unauthorized()
  t.same(paths(tenant), [
    '/.well-known/oauth-authorization-server/t1',
    '/.well-known/openid-configuration/t1',
    '/t1/.well-known/openid-configuration',
  ])
  const nowhere = await ScriptedAs.start(t, { metadata: () => undefined })
  const signing = signingIn(t, { server: await Protected.start(t, nowhere.issuer) })
  t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_failed', message: nowhere.issuer })
  nothingHappened(t, nowhere, signing)
})

t.test('an authorization server that does not declare S256 opens no browser', async (t) => {
  for (const methods of [undefined, [], ['plain'], 'S256', null]) {
    const as = await ScriptedAs.start(t, {
      metadata: ({ code_challenge_methods_supported: _own, ...rest }) => ({
        ...rest,
        ...(methods !== undefined && { code_challenge_methods_supported: methods }),
      }),
    })
    const server = await Protected.start(t, as.issuer)
    const signing = signingIn(t, { server })
    t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_unsafe', message: /oauth\.pkce/ })
    nothingHappened(t, as, signing)
    const assuming = signingIn(t, { server, settings: { pkce: 'assume' } })
    await assuming.unauthorized()
    t.match(as.of('/authorize')[0]?.params.get('code_challenge_method'), 'S256', 'it is sent all the same')
  }
})

t.test('does not use endpoints without TLS, unless they and the server are on this machine', async (t) => {
  for (const endpoint of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint']) {
    for (const address of [
      'http://as.example/x',
      'javascript:alert(1)',
      'file:///etc/passwd',
      'ftp://as.example',
      '//as.example/x',
      'x',
    ]) {
      const as = await ScriptedAs.start(t, { metadata: (own) => ({ ...own, [endpoint]: address }) })
      const signing = signingIn(t, { server: await Protected.start(t, as.issuer) })
      t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_unsafe' }, `${endpoint} ${address}`)
      nothingHappened(t, as, signing)
    }
  }
})

/** Addresses that are not on the web, or that readers understand differently. */
const OFF_THE_WEB = [
  'file:///etc',
  'javascript:1',
  'javascript://as.example/%0aalert(1)',
  'data:application/json,{}',
  'urn:example:issuer',
  'blob:https://as.example/1',
  'about:blank',
  'mailto:a@as.example',
  'JaVaScRiPt:1',
  'chrome://settings',
  'ws://as.example',
]
const UNREADABLE = [
  '',
  ' ',
  'x',
  '//as.example',
  '/etc',
  'https://',
  'https://as.example:99999',
  'https://a b',
  'https:\\\\x',
  'https://u:p@as.example',
]

t.test('an issuer that is not a web address is unsafe', async (t) => {
  for (const issuer of [...OFF_THE_WEB, ...UNREADABLE]) {
    const server = await Protected.start(t, issuer)
    const signing = signingIn(t, { server })
    t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_unsafe' }, issuer)
    nothingHappened(t, undefined, signing)
  }
})

t.test('a challenge cannot name metadata that are not on the web', async (t) => {
  for (const address of [...OFF_THE_WEB, ...UNREADABLE]) {
    const server = await Protected.start(t, 'file:///etc')
    const signing = signingIn(t, { server })
    const challenge = `Bearer resource_metadata="${address}"`
    t.match(await reasonOf(signing.unauthorized(undefined, challenge)), { reason: 'auth_unsafe' }, address)
    t.same(server.asked, ['/.well-known/oauth-protected-resource/mcp'], 'the server is asked instead')
    nothingHappened(t, undefined, signing)
  }
})

t.test('metadata with addresses that are not on the web are unsafe, also those that nobody uses', async (t) => {
  const ofIssuer = [
    'authorization_endpoint',
    'token_endpoint',
    'registration_endpoint',
    'revocation_endpoint',
    'userinfo_endpoint',
    'introspection_endpoint',
    'device_authorization_endpoint',
    'pushed_authorization_request_endpoint',
    'jwks_uri',
    'op_tos_uri',
    'service_documentation',
  ]
  for (const member of ofIssuer)
    for (const address of OFF_THE_WEB) {
      const as = await ScriptedAs.start(t, { metadata: (own) => ({ ...own, [member]: address }) })
      const signing = signingIn(t, { server: await Protected.start(t, as.issuer) })
      t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_unsafe' }, `${member} ${address}`)
      nothingHappened(t, as, signing)
    }
  for (const member of ['jwks_uri', 'resource_documentation', 'resource_policy_uri', 'resource_tos_uri'])
    for (const address of OFF_THE_WEB) {
      const as = await ScriptedAs.start(t)
      const server = await Protected.start(t)
      server.metadata = { resource: server.url, authorization_servers: [as.issuer], [member]: address }
      const signing = signingIn(t, { server })
      t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_unsafe' }, `${member} ${address}`)
      nothingHappened(t, as, signing)
    }
})

t.test('endpoints with a user name, a password or a fragment are unsafe', async (t) => {
  for (const endpoint of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint'])
    for (const address of ['https://u:p@as.example/x', 'https://u@as.example/x', 'https://as.example/x#y']) {
      const as = await ScriptedAs.start(t, { metadata: (own) => ({ ...own, [endpoint]: address }) })
      const signing = signingIn(t, { server: await Protected.start(t, as.issuer) })
      t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_unsafe' }, `${endpoint} ${address}`)
      nothingHappened(t, as, signing)
    }
})

t.test('ignores members that are not addresses', async (t) => {
  const as = await ScriptedAs.start(t, {
    metadata: (own) => ({
      ...own,
      jwks_uri: '/keys',
      userinfo_endpoint: '',
      op_tos_uri: 7,
      service_documentation: null,
    }),
  })
  await signingIn(t, { server: await Protected.start(t, as.issuer) }).unauthorized()
  t.equal(as.of('/token').length, 1)
})

t.test('a registration with an address that is not on the web is unsafe', async (t) => {
  for (const member of ['registration_client_uri', 'client_uri', 'logo_uri']) {
    const as = await ScriptedAs.start(t, { register: () => [201, { client_id: 'c', [member]: 'javascript:1' }] })
    const signing = signingIn(t, { server: await Protected.start(t, as.issuer) })
    t.match(await reasonOf(signing.unauthorized()), { reason: 'auth_unsafe' }, member)
    t.equal(signing.visits.length, 0)
  }
})

t.test('accepts an answer that names the issuer, or any if the metadata do not require it', async (t) => {
  const supported =
    (says: boolean): Script['metadata'] =>
    (own) => ({ ...own, authorization_response_iss_parameter_supported: says })
  const rows: [name: string, says: boolean, callback: Script['callback'], taken: boolean][] = [
    ['said and named', true, undefined, true],
    ['said and left out', true, (params) => params.delete('iss'), false],
    ['not said and left out', false, (params) => params.delete('iss'), true],
    ['not said and named', false, undefined, true],
    ['another', true, (params) => params.set('iss', 'https://evil.example'), false],
    ['not said, another', false, (params) => params.set('iss', 'https://evil.example'), false],
    ['with a slash', true, (params) => params.set('iss', `${params.get('iss')}/`), false],
    ['with two slashes', true, (params) => params.set('iss', `${params.get('iss')}//`), false],
    ['with a path', true, (params) => params.set('iss', `${params.get('iss')}/tenant`), false],
    ['empty', false, (params) => params.set('iss', ''), false],
    ['twice', true, (params) => params.append('iss', 'https://evil.example'), false],
    [
      'another, with an error',
      false,
      (params) => {
        params.set('iss', 'https://evil.example')
        params.delete('code')
        params.set('error', 'CANARY-error')
        params.set('error_description', 'CANARY-description')
      },
      false,
    ],
  ]
  for (const [name, says, callback, taken] of rows) {
    await t.test(name, async (t) => {
      const metadata = supported(says)
      const as = await ScriptedAs.start(t, { ...(metadata && { metadata }), ...(callback && { callback }) })
      const { unauthorized, visits, logged, store, account } = signingIn(t, {
        server: await Protected.start(t, as.issuer),
      })
      const outcome = await reasonOf(unauthorized())
      t.equal(as.of('/token').length, taken ? 1 : 0)
      const visit = await visits[0]
      if (taken) return t.equal(visit?.status, 200)
      t.match(outcome, { reason: 'auth_unsafe' })
      t.equal(visit?.status, 400)
      t.notMatch(JSON.stringify([outcome, visit?.page, logged]), /CANARY|evil/, 'nothing of the answer is shown')
      t.notOk((await store.read(account.key))?.token)
    })
  }
})

t.test('an answer with another state changes nothing, and a state is valid for one answer', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const callbacks: URL[] = []
  const { unauthorized, store, account, visits } = signingIn(t, {
    server,
    person: async (address) => {
      const { visit } = await import('../support/person.js')
      const { callback } = await visit(address, { back: false })
      const own = callback as URL
      callbacks.push(own)
      const statuses: number[] = []
      for (const state of [
        undefined,
        '',
        'x',
        own.searchParams.get('state')?.slice(0, -1),
        `${own.searchParams.get('state')}x`,
      ]) {
        const other = new URL(own)
        if (state === undefined) other.searchParams.delete('state')
        else other.searchParams.set('state', state)
        const before = JSON.stringify(await store.read(account.key))
        statuses.push((await fetch(other)).status)
        t.equal(JSON.stringify(await store.read(account.key)), before)
      }
      const twice = new URL(own)
      twice.searchParams.append('state', 'x')
      statuses.push((await fetch(twice)).status)
      t.same(statuses, [400, 400, 400, 400, 400, 400])
      let release = () => {}
      as.script.hold = new Promise((resolve) => {
        release = resolve
      })
      const first = fetch(own)
      await until(() => as.of('/token').length === 1)
      t.equal((await fetch(own)).status, 400, 'while the first is being redeemed')
      release()
      t.equal((await first).status, 200)
      return { address: new URL(address), callback: own, status: 200, page: '' }
    },
  })
  await unauthorized()
  await visits[0]
  t.equal(as.of('/token').length, 1)
  const record = await store.read(account.key)
  t.equal(record?.pending, undefined)
  t.notMatch(
    JSON.stringify(record),
    callbacks[0]?.searchParams.get('state') ?? 'no callback',
    'only a digest of the state is kept',
  )
  t.ok((as.of('/authorize')[0]?.params.get('state')?.length ?? 0) >= 43, 'of 256 bits')
})
