/** Clients of 2025-03-26, which look for the authorization server at the root of the server. */
import t from 'tap'
import { Entra } from '../support/entra.js'
import { until } from '../support/eventually.js'
import { startGuarded, text } from '../support/guarded-bridge.js'
import { send } from '../support/modern.js'
import { Oidc } from '../support/oidc.js'
import { CALLBACK, oldKit, provider, signedIn } from '../support/sdk-sign-in.js'
import { TokenIssuer } from '../support/token-issuer.js'

const ROOT = '/.well-known/oauth-authorization-server'
const documentAt = (url: string, headers = {}) => send('GET', new URL(ROOT, url).href, undefined, headers)

t.test('a client of 2025-03-26 signs in, with what the issuer says of itself', async (t) => {
  const audience = 'api://bridge'
  const oidc = await Oidc.start(t, { jwt: true, scopes: 'mcp', defaultResource: audience })
  const { url } = await startGuarded(t, { auth: { issuers: [{ issuer: oidc.issuer, audience }] } }, {}, [
    'test',
    'stock',
  ])
  for (const path of ['/mcp', '/test/mcp']) {
    // oidc-provider grants nothing if nothing is asked for.
    const person = provider({ scope: 'mcp' })
    const client = await signedIn(t, await oldKit(), new URL(path, url).href, person)
    const name = (await client.listTools()).tools.map((tool) => tool.name).find((one) => one.endsWith('read')) ?? ''
    t.match(await client.callTool({ name, arguments: {} }), text('read'), path)
    t.notOk(new URLSearchParams(person.kept['asked'] as never).has('resource'), 'it knows no resources')
  }
  const published = await fetch(oidc.issuer + ROOT)
  const { message, headers } = await documentAt(url, { host: 'evil.example', origin: 'https://page.example' })
  t.same(message, await published.json(), 'as it is')
  t.match(headers, { 'access-control-allow-origin': '*', 'cache-control': 'max-age=300' })
})

t.test('a client of 2025-03-26 signs in through the facade', async (t) => {
  const entra = await Entra.start(t, [CALLBACK])
  const facade = { clientId: Entra.id, clientSecret: Entra.secret, scopes: [`api://${Entra.id}/mcp`] }
  const { url } = await startGuarded(t, { auth: { issuers: [{ issuer: entra.issuer, audience: Entra.id, facade }] } })
  const client = await signedIn(t, await oldKit(), url, provider())
  t.match(await client.callTool({ name: 'read', arguments: {} }), text('read'))
})

t.test('an issuer that is away is asked again after a while, and not for each client', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { url } = await startGuarded(t, { auth: { issuers: [{ issuer: issuer.url }] } })
  await until(() => issuer.asked.includes('/jwks'), 'the keys, which the bridge asks for at the start')
  const before = issuer.asked.length
  issuer.instead = (_path, response) => void response.writeHead(503).end()
  const away = await Promise.all(Array.from({ length: 20 }, () => documentAt(url)))
  t.same(new Set(away.map(({ status, headers }) => `${status} ${headers['retry-after']}`)), new Set(['503 5']))
  t.ok(issuer.asked.length - before <= 2, issuer.asked.join())
})

t.test('with several issuers there is no document, because none of them is the one', async (t) => {
  const issuers = [await TokenIssuer.start(t), await TokenIssuer.start(t)].map(({ url }) => ({ issuer: url }))
  const { url } = await startGuarded(t, { auth: { issuers } })
  t.equal((await documentAt(url)).status, 404)
})

t.test('metadata of another issuer are not given out', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { url } = await startGuarded(t, { auth: { issuers: [{ issuer: issuer.url }] } })
  issuer.instead = (_path, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end('{"issuer":"https://evil.example"}')
  const { status, text: said } = await documentAt(url)
  t.equal(status, 503)
  t.notMatch(said, /evil/)
})
