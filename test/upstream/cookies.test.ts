import t from 'tap'
import { Cookies } from '../../src/servers/transport/cookies.js'

const ADDRESS = new URL('http://shop.example.com:8080/mcp')

async function jar(...set: string[]): Promise<Cookies> {
  const cookies = new Cookies(ADDRESS)
  cookies.keepFrom('/mcp', { 'set-cookie': set })
  await cookies.settled
  return cookies
}

/** The cookies of a request to this path. */
function sent(cookies: Cookies, path: string): string {
  const none: Record<string, string> = {}
  return cookies.addTo(path, none)['cookie'] ?? ''
}

t.test('sends cookies as their attributes say, and the last value counts', async (t) => {
  const cookies = await jar('a=1; Path=/', 'b=2; Path=/mcp', 'c=3; Path=/other', 'd=4; Domain=example.com; Path=/')
  cookies.keepFrom('/mcp', { 'set-cookie': 'a=5; Path=/' })
  t.equal(sent(cookies, '/mcp?x'), 'b=2; a=5; d=4')
  t.equal(sent(cookies, '/other/'), 'c=3; a=5; d=4')
  cookies.keepFrom('/mcp', { 'set-cookie': 'a=; Path=/; Max-Age=0' })
  t.equal(sent(cookies, '/'), 'd=4')
})

t.test('does not send cookies for other hosts, for a public suffix, or for HTTPS only', async (t) => {
  const cookies = await jar(
    'a=1; Domain=other.com',
    'b=2; Domain=com',
    'c=3; Secure',
    '__Host-d=4; Path=/',
    'LB=1; Path=/',
  )
  t.match(sent(cookies, '/mcp'), /LB=1/)
  t.notMatch(sent(cookies, '/mcp'), /[abc]=/)
})

t.test('bounds cookies in number and length', async (t) => {
  const cookies = await jar(
    ...Array.from({ length: 30 }, (_, n) => `c${n}=1; Path=/`),
    `long=${'x'.repeat(5_000)}; Path=/`,
  )
  t.equal(sent(cookies, '/mcp').split('; ').length, 20)
  cookies.keepFrom('/mcp', { 'set-cookie': 'c3=2; Path=/' })
  t.match(sent(cookies, '/mcp'), /c3=2/)
})

t.test('configured cookies stay, and without cookies nothing is added', async (t) => {
  const headers = { cookie: 'own=1' }
  t.equal((await jar('LB=1; Path=/')).addTo('/mcp', headers).cookie, 'own=1; LB=1')
  t.equal((await jar('bad')).addTo('/mcp', headers), headers)
})

t.test('keeps the order of a cookie that arrives while the jar is loading', async (t) => {
  const cookies = new Cookies(ADDRESS)
  cookies.keepFrom('/mcp', { 'set-cookie': 'LB=1; Path=/' })
  cookies.keepFrom('/mcp', { 'set-cookie': 'LB=2; Path=/' })
  await cookies.settled
  t.equal(sent(cookies, '/mcp'), 'LB=2')
  t.equal(cookies.settled, undefined)
})
