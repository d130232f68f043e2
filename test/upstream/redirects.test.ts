import t from 'tap'
import { MAX_REDIRECTS, Redirects, redirectedTo } from '../../src/servers/transport/redirects.js'

const URL_ = new URL('https://example.com/mcp?a=1')
const to = (location: string, status = 307) => ({ status, headers: { location } })

t.test('a redirect of one principal affects no other', async (t) => {
  const redirects = new Redirects(URL_)
  t.equal(redirects.next('ann', '/mcp?a=1', to('/ann/'), 0), '/ann/')
  t.equal(redirects.pathFor('ann'), '/ann/')
  t.equal(redirects.pathFor('bob'), '/mcp?a=1')
})

t.test('follows only 307 and 308 on the same origin', async (t) => {
  const asked = '/mcp/x'
  t.equal(redirectedTo(URL_, asked, to('../y?z')), '/y?z')
  t.equal(redirectedTo(URL_, asked, to('https://example.com/y', 308)), '/y')
  t.equal(redirectedTo(URL_, asked, to('//example.com/y')), '/y')
  t.equal(redirectedTo(URL_, asked, to('https://example.com//')), '//', 'a path, not a host')
  t.equal(redirectedTo(URL_, '//', to('/y')), '/y')
  t.equal(redirectedTo(URL_, '//other.com/x', to('y')), '//other.com/y')
  for (const location of [
    'http://example.com/y',
    '//other.com/y',
    'https://example.com:8443/y',
    'blob:https://example.com/y',
  ])
    t.equal(redirectedTo(URL_, asked, to(location)), undefined, location)
  for (const status of [200, 300, 301, 302, 303, 304, 404])
    t.equal(redirectedTo(URL_, asked, to('/y', status)), undefined)
  t.equal(redirectedTo(URL_, asked, { status: 307, headers: {} }), undefined)
})

t.test('forgets a stored path that no longer exists, and the oldest ones beyond the bound', async (t) => {
  const redirects = new Redirects(URL_)
  redirects.next('ann', '/mcp?a=1', to('/there'), 0)
  redirects.next('ann', '/there', { status: 404, headers: { 'content-type': 'application/json' } }, 0)
  t.equal(redirects.pathFor('ann'), '/there', 'JSON may be about the session')
  redirects.next('ann', '/elsewhere', { status: 410, headers: {} }, 0)
  t.equal(redirects.pathFor('ann'), '/there', 'another path')
  t.equal(redirects.next('ann', '/there', { status: 404, headers: {} }, 0), '/mcp?a=1')
  t.equal(redirects.pathFor('ann'), '/mcp?a=1')
  for (let n = 0; n <= 1_000; n++) redirects.next(`p${n}`, '/mcp?a=1', to('/there'), 0)
  t.equal(redirects.pathFor('p0'), '/mcp?a=1')
  t.equal(redirects.pathFor('p1'), '/there')
  t.equal(redirects.next('ann', '/mcp?a=1', to('/there'), MAX_REDIRECTS), undefined)
})
