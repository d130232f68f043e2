/** What a bridge says of the servers that it fronts, and that others can rely on it. */
import { fastify } from 'fastify'
import t from 'tap'
import { wellKnown } from '../../src/clients/plugins/well-known.js'
import { readManifest } from '../../src/services/discovery/manifest.js'
import {
  type Fronted,
  type Publication,
  publishedManifest,
  publisherOf,
  publishing,
} from '../../src/services/discovery/publish.js'
import { verifyManifest } from '../../src/services/discovery/trust/jws.js'
import { NOW, publisherWith } from '../support/trust.js'

const HOUR = 3_600_000
const ed = await publisherWith('ed25519')
const ec = await publisherWith('p256')
const github: Fronted = { name: 'github', path: '/github/mcp', identity: { name: 'GitHub MCP', version: '3.1.0' } }
const files: Fronted = {
  name: 'files',
  path: '/files/mcp',
  identity: { name: 'files', version: '1' },
  description: 'Files',
  capabilities: { tools: {} },
  auth: { type: 'bearer' },
}
const publication = (...servers: Fronted[]): Publication => ({
  publisher: 'bridge.example',
  base: 'https://bridge.example:8443/',
  servers,
})

t.test('the document has the address and the name of each server, and refers to the server for the rest', async (t) => {
  const { serial, issued, expires, publisher, servers } = readManifest(
    publishedManifest(publication(github, files), NOW),
  )
  t.same(
    { serial, issued, expires, publisher },
    { serial: NOW / 1000, issued: NOW, expires: NOW + 7 * 24 * HOUR, publisher: 'bridge.example' },
  )
  t.match(servers, [
    {
      name: 'github',
      serverName: 'GitHub MCP',
      version: '3.1.0',
      transports: [{ type: 'streamable-http', url: 'https://bridge.example:8443/github/mcp' }],
      protocolRevisions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
      tools: 'runtime',
    },
    { name: 'files', description: 'Files', capabilities: { tools: {} }, auth: { type: 'bearer' } },
  ])
})

t.test('does not publish an invalid manifest', async (t) => {
  const wrong: [Partial<Publication>, Partial<Fronted>][] = [
    [{ publisher: 'Not A Host' }, {}],
    [{ base: 'http://bridge.example/' }, {}],
    [{}, { name: '../x' }],
    [{}, { identity: { name: '', version: '1' } }],
  ]
  for (const [all, one] of wrong)
    t.throws(() => publishedManifest({ ...publication({ ...github, ...one }), ...all }, NOW), { name: 'ManifestError' })
})

t.test('the publisher is the host unless configured otherwise', async (t) => {
  const cases = {
    'https://Bridge.Example/x': 'bridge.example',
    'http://127.0.0.1:8080': '127.0.0.1',
    'http://[::1]:8080': 'ip6---1',
  }
  for (const [base, publisher] of Object.entries(cases)) {
    t.equal(publisherOf(base), publisher)
    const published = { base: base.startsWith('https') ? base : 'https://x.example', publisher, servers: [github] }
    t.doesNotThrow(() => publishedManifest(published, NOW))
  }
})

t.test('its bytes change only with its content or each hour, and its serial increases', async (t) => {
  let now = NOW + 10_500
  let content = publication(github)
  const published = publishing({ content: () => content, now: () => now })
  const serials: number[] = []
  const next = async () => {
    const { manifest } = await published()
    serials.push(readManifest(manifest).serial)
    return Buffer.from(manifest).toString()
  }
  const first = await next()
  now += 60_000
  t.equal(await next(), first)
  content = publication(github, files)
  t.not(await next(), first)
  // At once after another: a serial is one document.
  content = publication(github)
  t.not(await next(), first)
  now = NOW + HOUR + 1
  await next()
  now = NOW + 2 * HOUR - 1
  await next()
  t.same(
    serials.map((serial) => serial - NOW / 1000),
    [10, 10, 70, 71, 3600, 3600],
  )
})

t.test('replicas that serve the same document have the same bytes from the next hour on', async (t) => {
  let now = NOW
  const replicas = [1, 2].map(() => {
    now += 1_000
    const made = publishing({ content: () => publication(github), key: ed.signing, now: () => now })
    return { made, before: made() }
  })
  const befores = await Promise.all(replicas.map(({ before }) => before))
  t.not(Buffer.from(befores[0]?.manifest ?? []).toString(), Buffer.from(befores[1]?.manifest ?? []).toString())
  now = NOW + HOUR
  const [one, other] = await Promise.all(replicas.map(({ made }) => made()))
  t.same(one, other)
})

for (const [name, publisher] of Object.entries({ Ed25519: ed, 'P-256': ec }))
  t.test(`with a key of ${name} it is signed, and served as signed`, async (t) => {
    const app = fastify()
    const published = publishing({ content: () => publication(github), key: publisher.signing, now: () => NOW })
    await app.register(wellKnown, { published })
    t.teardown(() => app.close())
    const [manifest, jws] = await Promise.all([
      app.inject('/.well-known/mcp.json'),
      app.inject('/.well-known/mcp.json.jws'),
    ])
    t.match(manifest, {
      statusCode: 200,
      headers: { 'content-type': /^application\/json/, 'cache-control': 'public, max-age=300' },
    })
    t.match(jws, {
      statusCode: 200,
      headers: { 'content-type': 'application/jose', 'cache-control': 'public, max-age=300' },
    })
    const verification = await verifyManifest({
      bytes: manifest.rawPayload,
      jws: jws.rawPayload,
      keysOf: () => [publisher.key],
      lastOf: () => undefined,
      now: NOW,
    })
    t.match(verification, { trusted: true, keyId: publisher.key.id })
  })

t.test('without a key there is no signature', async (t) => {
  const app = fastify()
  app.setErrorHandler((error: { fault?: string }, _request, reply) => reply.code(404).send({ fault: error.fault }))
  await app.register(wellKnown, { published: publishing({ content: () => publication(github), now: () => NOW }) })
  t.teardown(() => app.close())
  t.equal((await app.inject('/.well-known/mcp.json')).statusCode, 200)
  t.same((await app.inject('/.well-known/mcp.json.jws')).json(), { fault: 'noSuchPath' })
})
