/** A5: no address out of a document leads inside, in whatever place and spelling it stands. */
import t, { type Test } from 'tap'
import type { Network } from '../../src/services/oauth/reach.js'
import { visit } from '../support/person.js'
import { type Protected, reasonOf, signingIn } from '../support/signing-in.js'
import { INSIDE, MALFORMED } from '../support/spellings.js'
import { makeCa, serveTls } from '../support/tls.js'
import { setTrap } from '../support/trap.js'

const trap = await setTrap(t)
const ca = await makeCa()
const certificate = await ca.serverOptions(['mcp.example', 'as.example'])
const PUBLIC = '93.184.215.14'

type Place = 'issuer' | 'authorization_endpoint' | 'token_endpoint' | 'registration_endpoint'

/** A server and its authorization server on the Internet, which name `address` in one place. */
const world = async (t: Test) => {
  let wrong: { place: Place; address: string } | undefined
  const { port, asked } = await serveTls(t, certificate, ({ url = '', headers: { host = '' } }, response) => {
    const json = (value: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    const named = (place: Place, address: string) => (wrong?.place === place ? wrong.address : address)
    const issuer = `https://as.example:${port}`
    if (url.startsWith('/.well-known/oauth-protected-resource'))
      return json({ resource: `https://${host}/mcp`, authorization_servers: [named('issuer', issuer)] })
    if (url === '/.well-known/oauth-authorization-server')
      return json({
        issuer,
        authorization_endpoint: named('authorization_endpoint', `${issuer}/authorize`),
        token_endpoint: named('token_endpoint', `${issuer}/token`),
        registration_endpoint: named('registration_endpoint', `${issuer}/register`),
        token_endpoint_auth_methods_supported: ['none'],
        code_challenge_methods_supported: ['S256'],
      })
    if (url === '/register') return json({ client_id: 'id' }, 201)
    if (url === '/token') return json({ access_token: 'token', token_type: 'Bearer' })
    return response.writeHead(404).end()
  })
  const server = { url: `https://mcp.example:${port}/mcp`, challenge: () => 'Bearer' } as Protected
  return {
    server,
    asked,
    set: (place: Place, address: string) => {
      wrong = { place, address }
    },
  }
}

/** Finds the servers of the test, which are to be reached as if they were on the Internet. */
const network: Network = { ca: ca.cert, resolve: async () => ['127.0.0.1'], timeLimit: 120_000 }
const allow = ['as.example']
const nobody = () => Promise.reject(new Error('nobody was to come'))

t.test('signs in to the same servers where no address is private', async (t) => {
  const { server } = await world(t)
  const { unauthorized } = signingIn(t, {
    server,
    network,
    settings: { allow },
    person: async (address) => {
      const params = new URL(address).searchParams
      return visit(`${params.get('redirect_uri')}?code=c&state=${params.get('state')}`)
    },
  })
  t.equal(await unauthorized(), 'Bearer token')
})

t.test('an issuer that is not public must be listed', async (t) => {
  const { server, asked } = await world(t)
  const { unauthorized, visits } = signingIn(t, { server, network, person: nobody })
  t.match(await reasonOf(unauthorized()), { reason: 'auth_unsafe', message: /oauth\.allow/ })
  t.equal(visits.length, 0)
  t.same(asked, ['/.well-known/oauth-protected-resource/mcp'])
})

for (const place of ['issuer', 'authorization_endpoint', 'token_endpoint', 'registration_endpoint'] as const) {
  t.test(`private addresses in other spellings, as ${place}`, async (t) => {
    const { server, set } = await world(t)
    for (const [name, host] of [...INSIDE, ...MALFORMED]) {
      set(place, `https://${host}:${trap.port}/x`)
      const { unauthorized, visits, store, account } = signingIn(t, {
        server,
        network,
        settings: { allow },
        person: nobody,
      })
      t.match(await reasonOf(unauthorized()), { reason: 'auth_unsafe' }, name)
      t.equal(visits.length, 0, `${name}: no browser`)
      t.notOk((await store.read(account.key))?.pending, `${name}: nothing has begun`)
    }
    t.same(await trap.caught(), [], 'nobody came to the trap')
  })
}

t.test('refuses a host that resolves to another address the next time', async (t) => {
  const { server, set } = await world(t)
  const turns: Record<string, string[]> = { 'turning.example': [PUBLIC] }
  const resolve = async (host: string) => turns[host] ?? ['127.0.0.1']
  set('token_endpoint', `https://turning.example:${trap.port}/token`)
  const { unauthorized, store, account } = signingIn(t, {
    server,
    network: { ...network, resolve },
    settings: { allow },
    person: async (address) => {
      turns['turning.example'] = ['127.0.0.1']
      const params = new URL(address).searchParams
      return visit(`${params.get('redirect_uri')}?code=CANARY&state=${params.get('state')}`)
    },
  })
  t.match(await reasonOf(unauthorized()), { reason: 'auth_unsafe', message: /turning\.example/ })
  t.notOk((await store.read(account.key))?.token)
  t.same(await trap.caught(), [])
})

t.test('a public server cannot send anybody to this machine, although other servers are here', async (t) => {
  const { server, set } = await world(t)
  for (const address of [
    `http://127.0.0.1:${trap.port}`,
    `http://localhost:${trap.port}`,
    `https://localhost:${trap.port}`,
  ]) {
    set('issuer', address)
    const { unauthorized } = signingIn(t, { server, network, settings: { allow }, person: nobody })
    t.match(await reasonOf(unauthorized()), { reason: 'auth_unsafe' }, address)
  }
  t.same(await trap.caught(), [])
})

t.test('does not sign in to a server without TLS that is not on this machine', async (t) => {
  const server = { url: `http://mcp.example:${trap.port}/mcp`, challenge: () => 'Bearer' } as Protected
  const { unauthorized } = signingIn(t, { server, network, settings: { allow }, person: nobody })
  t.match(await reasonOf(unauthorized()), { reason: 'auth_unsafe' })
  t.same(await trap.caught(), [])
})
