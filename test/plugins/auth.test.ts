/** Who a request is taken to be from, and how it is refused, without anything of the bridge around it. */
import { createHash } from 'node:crypto'
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { type AuthOptions, auth } from '../../src/clients/plugins/auth.js'
import type { ProtectedEndpoint } from '../../src/clients/plugins/protected-resource.js'
import { type Answer, send } from '../support/modern.js'
import { raw } from '../support/raw.js'

const ALICE = 'alice-0123456789abcdef'
const BOB = 'bob-0123456789abcdef'
const tokens = { kind: 'tokens', tokens: { alice: ALICE, bob: BOB } } as const
const passthrough = { kind: 'passthrough' } as const
const METADATA = 'https://b.example/.well-known/oauth-protected-resource/mcp'

/** An endpoint whose metadata are there. */
const at = (metadata: string, scope?: string): ReadonlyMap<string, ProtectedEndpoint> => {
  const resource = 'https://b.example/mcp'
  return new Map([
    ['/mcp', { resource, metadata, addresses: new Set([resource]), scope, challengeFor: () => 'Bearer' }],
  ])
}

/** An app that answers with what the plugin made of the request. */
async function start(t: Test, options: AuthOptions): Promise<string> {
  const app = fastify()
  app.setErrorHandler((error, _request, reply) => {
    const { status, message } = Fault.from(error)
    return reply.code(status).send({ error: message })
  })
  await app.register(auth, options)
  app.get('/mcp', async ({ principal, credential }) => ({ principal, credential: credential ?? null }))
  app.get('/open/:name', async ({ principal }) => ({ principal }))
  t.teardown(() => app.close())
  return app.listen({ host: '127.0.0.1', port: 0 })
}

const ask = (base: string, authorization?: string | string[], path = '/mcp') =>
  send('GET', base + path, undefined, { authorization })

const told = ({ status, headers }: Answer) => [status, headers['www-authenticate']]
const digest = (text: string) => `t:${createHash('sha256').update(text).digest('hex').slice(0, 32)}`

t.test('without authentication, all callers are one principal, whatever they send', async (t) => {
  for (const [loopback, principal] of [
    [true, 'local'],
    [false, 'anon'],
  ] as const) {
    const base = await start(t, { mode: { kind: 'none', loopback } })
    for (const shown of [undefined, `Bearer ${ALICE}`, 'Basic YTpi'])
      t.same((await ask(base, shown)).message, { principal, credential: null }, shown ?? 'nothing')
  }
})

t.test('a token determines its principal, and is not passed on', async (t) => {
  const base = await start(t, { mode: tokens })
  const rows: [name: string, shown: string, principal: string][] = [
    ['the first', `Bearer ${ALICE}`, 'alice'],
    ['the last', `Bearer ${BOB}`, 'bob'],
    ['the scheme in lower case', `bearer ${BOB}`, 'bob'],
    ['the scheme in upper case', `BEARER ${BOB}`, 'bob'],
    ['several spaces between', `Bearer   ${BOB}`, 'bob'],
    ['space behind, which is not of the value', `Bearer ${BOB}  `, 'bob'],
  ]
  for (const [name, shown, principal] of rows)
    t.same((await ask(base, shown)).message, { principal, credential: null }, name)
})

t.test('distinguishes a missing token from a wrong one', async (t) => {
  const base = await start(t, { mode: tokens })
  const none = [401, 'Bearer']
  const wrong = [401, 'Bearer error="invalid_token"']
  const rows: [name: string, shown: string | undefined, told: unknown[]][] = [
    ['nothing', undefined, none],
    ['an empty header', '', none],
    ['another scheme', 'Basic YWxpY2U6YQ==', none],
    ['another scheme with the token', `Token ${ALICE}`, none],
    ['the token without scheme', ALICE, none],
    ['a scheme that begins like it', `Bearerx ${ALICE}`, none],
    ['a tab where the space should be', `Bearer\t${ALICE}`, none],
    ['the scheme alone', 'Bearer', none],
    ['an empty token', 'Bearer   ', none],
    ['an unknown token', 'Bearer nobody-0123456789abcdef', wrong],
    ['the name of a principal', 'Bearer alice', wrong],
    ['the token in other case', `Bearer ${ALICE.toUpperCase()}`, wrong],
    ['the beginning of a token', `Bearer ${ALICE.slice(0, -1)}`, wrong],
    ['more than a token', `Bearer ${ALICE}x`, wrong],
    ['a token with a space in it', `Bearer ${ALICE.slice(0, 5)} ${ALICE.slice(5)}`, wrong],
    ['a tab before the token', `Bearer \t${ALICE}`, wrong],
    ['two tokens', `Bearer ${ALICE} ${BOB}`, wrong],
    ['two tokens with a comma', `Bearer ${ALICE}, Bearer ${BOB}`, wrong],
    ['a token in quotes', `Bearer "${ALICE}"`, wrong],
    ['a token beyond ASCII', 'Bearer \xe4lice-0123456789abcdef', wrong],
    ['a name that every object has', 'Bearer constructor', wrong],
    ['a long token', `Bearer ${'x'.repeat(8_000)}`, wrong],
  ]
  for (const [name, shown, expected] of rows) t.same(told(await ask(base, shown)), expected, name)
})

t.test('answers all wrong tokens alike, and repeats none', async (t) => {
  const base = await start(t, { mode: tokens })
  const wrong = ['x', ALICE.slice(0, -1), `${ALICE}x`, BOB.slice(1), `${ALICE} ${BOB}`, 'y'.repeat(2_000)]
  const answers = await Promise.all(wrong.map((token) => ask(base, `Bearer ${token}`)))
  t.equal(new Set(answers.map(({ text }) => text)).size, 1)
  const constant = ({ headers: { date: _, ...rest } }: Answer) => JSON.stringify(rest)
  t.equal(new Set(answers.map(constant)).size, 1)
  for (const { text, headers } of answers) t.notMatch(text + JSON.stringify(headers), /0123456789abcdef/)
})

t.test('refuses two Authorization headers, even if they are equal or one of them is valid', async (t) => {
  for (const mode of [tokens, passthrough]) {
    const base = await start(t, { mode })
    for (const both of [
      [`Bearer ${ALICE}`, `Bearer ${ALICE}`],
      [`Bearer ${ALICE}`, 'Bearer x'],
      ['Bearer x', `Bearer ${ALICE}`],
      ['', `Bearer ${ALICE}`],
    ])
      t.equal((await ask(base, both)).status, 400, `${mode.kind}: ${both.join(' and ')}`)
    const differentlyWritten = `GET /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ALICE}\r\nAUTHORIZATION: x\r\n\r\n`
    t.equal((await raw(base, [differentlyWritten])).status, 400, `${mode.kind}: in upper and lower case`)
  }
})

t.test('the challenge names the metadata, if there are any', async (t) => {
  const base = await start(t, { mode: tokens, endpoints: at(METADATA) })
  t.same(told(await ask(base)), [401, `Bearer resource_metadata="${METADATA}"`])
  t.same(told(await ask(base, 'Bearer x')), [401, `Bearer resource_metadata="${METADATA}", error="invalid_token"`])
  const scoped = await start(t, { mode: tokens, endpoints: at(METADATA, 'a b') })
  t.same(told(await ask(scoped)), [401, `Bearer resource_metadata="${METADATA}", scope="a b"`])
  const quoting = await start(t, { mode: tokens, endpoints: at('a"b\\c') })
  t.same(told(await ask(quoting)), [401, String.raw`Bearer resource_metadata="a\"b\\c"`])
})

t.test('with pass-through, tells callers apart by their credentials, and forwards these unchanged', async (t) => {
  const base = await start(t, { mode: passthrough, endpoints: at(METADATA) })
  const rows: [name: string, shown: string | undefined, principal: string][] = [
    ['a token', `Bearer ${ALICE}`, digest(ALICE)],
    ['another', `Bearer ${BOB}`, digest(BOB)],
    ['the scheme in lower case', `bearer ${ALICE}`, digest(ALICE)],
    ['a token with a space', 'Bearer a b', digest('a b')],
    ['another scheme', 'Basic YTpi', digest('Basic YTpi')],
    ['the scheme alone', 'Bearer', 'anon'],
  ]
  for (const [name, shown, principal] of rows)
    t.same((await ask(base, shown)).message, { principal, credential: { authorization: shown } }, name)
  t.same((await ask(base)).message, { principal: 'anon', credential: null })
  t.same((await ask(base, '')).message, { principal: 'anon', credential: null })
  t.match(digest(ALICE), /^t:[0-9a-f]{32}$/)
})

t.test('routes require a token unless they are open, and no other spelling opens one', async (t) => {
  const open = new Set(['/open/:name', '/.well-known/x'])
  const base = await start(t, { mode: tokens, open })
  t.match(await ask(base, undefined, '/open/a?b=c'), { status: 200, message: { principal: 'anon' } })
  t.match(await ask(base, 'Bearer x', '/open/a'), { status: 200, message: { principal: 'anon' } })
  t.equal((await ask(base, undefined, '/.well-known/x?y#z')).status, 404)
  for (const path of ['/mcp', '/%6dcp', '/mcp?/open/', '/mcp?access_token=x'])
    t.equal((await ask(base, undefined, path)).status, 401, path)
  for (const path of ['/nothing', '/open']) t.equal((await ask(base, undefined, path)).status, 404, path)
  const absolute = await raw(base, ['GET http://x/open/../mcp HTTP/1.1\r\nHost: x\r\n\r\n'])
  t.equal(absolute.status, 404, absolute.head)
  t.equal((await ask(base, `Bearer ${ALICE}`, '/nothing')).status, 404)
})

t.test('without open routes, every route requires a token', async (t) => {
  const base = await start(t, { mode: tokens })
  for (const path of ['/mcp', '/open/a']) t.equal((await ask(base, undefined, path)).status, 401, path)
  for (const path of ['/nothing', '/.well-known/oauth-protected-resource'])
    t.equal((await ask(base, undefined, path)).status, 404, path)
})
