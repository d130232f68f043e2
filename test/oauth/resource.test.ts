import fc from 'fast-check'
import t from 'tap'
import { canonicalResource, covers } from '../../src/services/oauth/resource.js'
import {
  issuerMetadataPlaces,
  legacyMetadataPlace,
  resourceMetadataPlaces,
} from '../../src/services/oauth/well-known.js'

const endpoint = 'https://a.example/v1/mcp'

t.test('a resource covers its path and the paths below it', async (t) => {
  for (const resource of [
    'https://a.example/v1/mcp',
    'https://a.example/v1/mcp/',
    'https://a.example/v1',
    'https://a.example/v1/',
    'https://a.example/',
    'https://a.example',
    'HTTPS://A.example:443/v1',
  ])
    t.ok(covers(resource, endpoint), resource)
})

t.test('a resource does not cover addresses beside its path', async (t) => {
  for (const resource of [
    'https://b.example/v1/mcp',
    'https://a.example.b.example/v1/mcp',
    'https://sub.a.example/v1/mcp',
    'http://a.example/v1/mcp',
    'https://a.example:8443/v1/mcp',
    'https://a.example/v1/mc',
    'https://a.example/v1/mcp2',
    'https://a.example/v1/mcp/x',
    'https://a.example/v1/../v2',
    'https://a.example/v1/mcp#x',
    'https://a.example/v1/mcp#',
    'https://a.example/v1/mcp?x=1',
    'https://user@a.example/v1/mcp',
    'https://a.example/V1/mcp',
    'https://a.example\\@b.example/v1/mcp',
    ' https://a.example/v1/mcp',
    'urn:a',
    'a.example/v1/mcp',
    '',
  ])
    t.notOk(covers(resource, endpoint), resource)
  t.ok(covers('https://a.example/mcp?tenant=1', 'https://a.example/mcp?tenant=1'))
  t.notOk(covers('https://a.example/mcp?tenant=1', 'https://a.example/mcp?tenant=2'))
})

t.test('every endpoint is covered by its canonical resource, and by those above it', async () => {
  const segment = fc.stringMatching(/^[a-z0-9]{1,6}$/)
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 5 }), fc.nat(5), (segments, keep) => {
      const url = `https://a.example/${segments.join('/')}`
      const above = `https://a.example/${segments.slice(0, keep).join('/')}`
      return covers(canonicalResource(url), url) && covers(above, url)
    }),
  )
})

t.test('a canonical resource has neither query nor trailing slash', async (t) => {
  t.equal(canonicalResource('https://a.example/'), 'https://a.example')
  t.equal(canonicalResource('https://a.example/v1/mcp/?a=b'), 'https://a.example/v1/mcp')
})

t.test('looks for metadata at each allowed place in order, and nowhere else', async (t) => {
  const base = 'https://a.example/.well-known/oauth-protected-resource'
  t.same(resourceMetadataPlaces(endpoint), [`${base}/v1/mcp`, base])
  t.same(resourceMetadataPlaces('https://a.example/'), [base])
  t.same(resourceMetadataPlaces('https://a.example/mcp?t=1'), [`${base}/mcp?t=1`, base])
  t.same(issuerMetadataPlaces('https://as.example'), [
    'https://as.example/.well-known/oauth-authorization-server',
    'https://as.example/.well-known/openid-configuration',
  ])
  t.same(issuerMetadataPlaces('https://as.example/'), issuerMetadataPlaces('https://as.example'))
  t.same(issuerMetadataPlaces('https://as.example/t1/'), [
    'https://as.example/.well-known/oauth-authorization-server/t1',
    'https://as.example/.well-known/openid-configuration/t1',
    'https://as.example/t1/.well-known/openid-configuration',
  ])
  t.equal(legacyMetadataPlace(endpoint), 'https://a.example/.well-known/oauth-authorization-server')
})
