/** Each person enters a key of their own for a server on the page of the bridge, and only their calls use it. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { again, bearer, questionIn, WHOAMI, whoami } from '../support/asked-to-sign-in.js'
import { Browser } from '../support/browser.js'
import { type Company, type CompanyOptions, startCompany } from '../support/company.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { sendText } from '../support/plain-http.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { eventsIn } from '../support/sights.js'

t.setTimeout(120_000)

type Json = Record<string, unknown>
type Era = 'modern' | 'legacy'

const HEADER = 'x-api-key'
const keyOf = (who: string) => `own-key-of-${who}-0123456789`
const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
type Who = keyof typeof TOKENS

/** A server that knows people by their keys, and says to each who they are. */
async function keyed(t: Test, era: Era, read = (value: unknown) => value) {
  const refused = new Set<string>()
  const override = (
    { headers, message }: { headers: Json; message: Json | undefined },
    response: ServerResponse,
  ): boolean => {
    const [, who] = /^own-key-of-(\w+)-/.exec(String(read(headers[HEADER] ?? headers['authorization']))) ?? []
    if (who === undefined || refused.has(who)) {
      response.writeHead(401).end('What key is that?')
      return true
    }
    if (message?.['method'] !== 'tools/call') return false
    const result = { ...(era === 'modern' && { resultType: 'complete' }), content: [{ type: 'text', text: who }] }
    sendText(response, JSON.stringify({ jsonrpc: '2.0', id: message['id'], result }))
    return true
  }
  const server = await (era === 'modern' ? ModernHttp : LegacyHttp).start(t, { override, sessions: true } as object)
  return { server, refused }
}

/** A company whose people have keys for a server. */
async function start(t: Test, url: string, options: CompanyOptions = {}, more: Json = {}): Promise<Company> {
  const { settings, ...rest } = options
  return startCompany(t, {
    auth: { tokens: TOKENS },
    ...rest,
    settings: { mcpServers: { test: { url, account: { header: HEADER }, ...more } }, ...settings },
  })
}

/** A browser in which a person has shown their token. */
async function browserOf(origin: string, who: Who): Promise<Browser> {
  const browser = new Browser()
  await browser.press(await browser.go(`${origin}/sign-in`), 'Sign in', { token: TOKENS[who] })
  return browser
}

async function enter(browser: Browser, address: string, key: string) {
  return browser.press(await browser.go(address), 'Store', { key })
}

const said = ({ message }: { message: Json }) =>
  (message['result'] as { content?: { text: string }[] } | undefined)?.content?.[0]?.text

for (const era of ['modern', 'legacy'] as const)
  t.test(`a call to a ${era} server asks for the key, its person enters it, and the call goes on`, async (t) => {
    const { server } = await keyed(t, era)
    const { url, origin, bridges } = await start(t, server.url)
    const asked = await whoami(url, TOKENS.alice)
    const question = questionIn(asked)
    t.match(question.url, `${origin}/sign-in/test?t=`)
    t.match(question.message, `Enter your own key for "test" first: ${origin}/sign-in/test`)
    t.equal(server.received.length, 0, 'nothing is sent without a key')
    const browser = await browserOf(origin, 'alice')
    const form = await browser.go(question.url)
    t.match(form, { status: 200, page: /Your key for test.*“test”/s })
    t.match(form.page, /type="password" autocomplete="off"/)
    const done = await browser.press(form, 'Store', { key: `  ${keyOf('alice')}\n` })
    t.match(done, { status: 200, page: /There is a key for <strong>test/ })
    t.notMatch(done.page, /own-key-of/)
    t.equal(said(await whoami(url, TOKENS.alice, again(asked))), 'alice')
    t.match(questionIn(await whoami(url, TOKENS.bob)).url, /sign-in/, 'nobody else has it')
    const legacy = await LegacyClient.open(url, { headers: bearer(TOKENS.alice) })
    t.equal(said(await legacy.call('whoami')), 'alice')
    for (const { headers } of server.received) {
      t.equal(headers[HEADER], keyOf('alice'))
      t.notOk('authorization' in headers)
    }
    t.notMatch(JSON.stringify(bridges[0]?.log), /own-key-of/)
  })

t.test('a legacy client is told where the page is, and gets the address where it can open one', async (t) => {
  const { server } = await keyed(t, 'legacy')
  const { url, origin } = await start(t, server.url)
  const told = await LegacyClient.open(url, { headers: bearer(TOKENS.bob) })
  t.match(JSON.stringify((await told.call('whoami')).message), `${origin}/sign-in/test`)
  const browser = await browserOf(origin, 'alice')
  await enter(browser, `${origin}/sign-in/test`, keyOf('alice'))
  const able = { elicitation: { url: {} } }
  const own = await LegacyClient.open(url, { headers: bearer(TOKENS.alice), capabilities: able })
  t.equal(said(await own.call('whoami')), 'alice')
  await browser.press(await browser.go(`${origin}/sign-in`), 'Delete the key for test')
  const { error } = (await own.call('whoami')).message
  t.match(error, { code: -32042, data: { elicitations: [{ mode: 'url' }] } })
  const [{ url: link }] = error?.data?.['elicitations'] as [{ url: string }]
  await enter(browser, link, keyOf('alice'))
  t.equal(said(await own.call('whoami')), 'alice')
})

t.test('the page replaces and deletes a key, which is never shown', async (t) => {
  const { server, refused } = await keyed(t, 'modern')
  const { url, origin } = await start(t, server.url)
  const browser = await browserOf(origin, 'alice')
  const page = () => browser.go(`${origin}/sign-in`)
  t.match((await page()).page, /No key.*Enter key/s)
  await enter(browser, `${origin}/sign-in/test`, keyOf('bob'))
  t.equal(said(await whoami(url, TOKENS.alice)), 'bob', 'the key decides at the server')
  const stored = await page()
  t.match(stored.page, /Key stored.*Replace.*Delete/s)
  const replacing = await browser.go(`${origin}/sign-in/test`)
  t.match(replacing.page, /It replaces the one/)
  for (const { page: text } of [stored, replacing]) t.notMatch(text, /own-key-of/)
  await browser.press(replacing, 'Store', { key: keyOf('alice') })
  t.equal(said(await whoami(url, TOKENS.alice)), 'alice')
  refused.add('alice')
  const asked = await whoami(url, TOKENS.alice)
  t.match(questionIn(asked).url, /sign-in/, 'a key that the server refuses is asked for again')
  await enter(browser, questionIn(asked).url, keyOf('alicia'))
  t.equal(said(await whoami(url, TOKENS.alice, again(asked))), 'alicia')
  t.match((await browser.press(await page(), 'Delete the key for test')).page, /No key/)
  const before = server.received.length
  t.match(questionIn(await whoami(url, TOKENS.alice)).url, /sign-in/)
  t.equal(server.received.length, before)
})

t.test('a key that cannot be a header is refused in the form, and the link stays good', async (t) => {
  const { server } = await keyed(t, 'modern')
  const { url, origin } = await start(t, server.url)
  const browser = await browserOf(origin, 'alice')
  const { url: link } = questionIn(await whoami(url, TOKENS.alice))
  for (const [key, wrong] of [
    ['', /Enter a key/],
    ['   ', /Enter a key/],
    ['two\r\nx-admin: yes', /in one line/],
    ['nul\0', /in one line/],
    ['schlüssel', /of ASCII/],
    ['x'.repeat(4_097), /at most 4096/],
  ] as const) {
    const answer = await enter(browser, link, key)
    t.match(answer, { status: 400, page: wrong })
    if (key.trim().length > 3) t.notOk(answer.page.includes(key), 'and is not shown')
  }
  t.match(questionIn(await whoami(url, TOKENS.alice)).url, /sign-in/, 'nothing is stored')
  t.match(await enter(browser, link, keyOf('alice')), { status: 200 })
  t.equal(said(await whoami(url, TOKENS.alice)), 'alice')
  t.match(await enter(browser, link, keyOf('bob')), { status: 400, page: /can be used once/ })
  t.equal(said(await whoami(url, TOKENS.alice)), 'alice')
})

t.test('forms of other pages and links of other people store nothing', async (t) => {
  const { server } = await keyed(t, 'modern')
  const { url, origin, bridges } = await start(t, server.url)
  const browser = await browserOf(origin, 'alice')
  const [action, form] = browser.form(await browser.go(`${origin}/sign-in/test`), 'Store', { key: keyOf('alice') })
  const without = new URLSearchParams([...form].filter(([name]) => name !== 'secret'))
  for (const body of [without, new URLSearchParams({ ...Object.fromEntries(form), secret: 'x.y' })])
    t.match(await browser.step(action, body), { status: 400 })
  t.match(await browser.step(action, form, { 'sec-fetch-site': 'cross-site' }), { status: 400 })
  t.match(await browser.step(action, form, { origin: 'https://evil.example' }), { status: 403 })
  t.match(await new Browser().step(action, form), { status: 400 }, 'without the cookie')
  const bob = await browserOf(origin, 'bob')
  t.match(await bob.step(action, form), { status: 400 }, 'in the browser of another')
  const { url: link } = questionIn(await whoami(url, TOKENS.alice))
  t.match(await bob.go(link), { status: 403, page: /It was made for somebody else/ })
  t.equal(bridges[0]?.log.filter(({ event }) => event === 'sign_in_link_foreign').length, 1)
  for (const token of Object.values(TOKENS)) t.match(questionIn(await whoami(url, token)).url, /sign-in/)
  t.equal(server.received.length, 0)
})

t.test('in a group, with a prefix, and beside a server with OAuth, each has its own', async (t) => {
  const plain = await keyed(t, 'legacy')
  const prefixed = await keyed(t, 'modern', (value) => String(value).replace(/^Key /, ''))
  const mcpServers = {
    one: { url: plain.server.url, account: { header: HEADER } },
    two: { url: prefixed.server.url, account: { header: 'Authorization', prefix: 'Key ' } },
  }
  const { origin } = await start(t, plain.server.url, { settings: { mcpServers, groups: { team: {} } } })
  const url = `${origin}/team/mcp`
  for (const who of ['alice', 'bob'] as const) {
    const browser = await browserOf(origin, who)
    for (const name of ['one', 'two']) await enter(browser, `${origin}/sign-in/${name}`, keyOf(`${who}${name}`))
  }
  for (const who of ['alice', 'bob'] as const)
    for (const name of ['one', 'two'])
      t.equal(said(await whoami(url, TOKENS[who], { ...WHOAMI, name: `${name}__whoami` })), `${who}${name}`)
  t.equal(prefixed.server.received.at(-1)?.headers.authorization, `Key ${keyOf('bobtwo')}`)
})

t.test('all replicas use a key that was entered at one, sealed, until it is deleted', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const { server } = await keyed(t, 'modern')
  const shared = { redis: { url: redis.url, timeout: 30_000 }, stateKeys: ['a secret that all the replicas know of'] }
  const { url, origin, bridges } = await start(t, server.url, { replicas: 2, settings: shared })
  const browser = await browserOf(origin, 'alice')
  await enter(browser, `${origin}/sign-in/test`, keyOf('alice'))
  for (let i = 0; i < 4; i++) t.equal(said(await whoami(url, TOKENS.alice)), 'alice')
  await browser.press(await browser.go(`${origin}/sign-in`), 'Delete the key for test')
  await until(
    async () => (await Promise.all([1, 2].map(() => whoami(url, TOKENS.alice)))).every((one) => questionIn(one).url),
    'no replica uses it',
  )
  t.notMatch(JSON.stringify(bridges.map(({ log }) => log)), /own-key-of/)
})

t.test('no key is in what is recorded, logged, measured or said', async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const { server, refused } = await keyed(t, 'modern')
  const company = await start(t, server.url, { context: { recorder: new EventRecorder(ring.record) } })
  const { url, origin, bridges } = company
  await enter(await browserOf(origin, 'alice'), `${origin}/sign-in/test`, keyOf('alice'))
  const texts = [(await whoami(url, TOKENS.alice)).text]
  refused.add('alice')
  texts.push(
    (await whoami(url, TOKENS.alice)).text,
    (await call(url, 'tools/list', {}, { headers: bearer(TOKENS.alice) })).text,
  )
  texts.push(...eventsIn(ring).map((one) => JSON.stringify(one)), JSON.stringify(bridges[0]?.log))
  texts.push(await (await fetch(`${origin}/metrics`)).text())
  t.ok(texts.length > 10)
  for (const text of texts) t.notMatch(text, /own-key-of/)
})
