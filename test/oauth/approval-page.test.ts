/** People approve calls at the page of the bridge, where they prove who they are. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseSettings } from '../../src/config/settings.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import type { Json, Question } from '../matrix/client.js'
import { as, browserOf, type Person, TOKENS } from '../support/approving.js'
import { Browser } from '../support/browser.js'
import { startCompany } from '../support/company.js'
import { temporaryFolder } from '../support/folder.js'
import { type Answer, CAPABILITIES, call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'

const OPENS = { [CAPABILITIES]: { elicitation: { url: {} } } }

async function start(t: Test, tools: Json = {}, settings: Json = {}, replicas = 1, context: object = {}) {
  const server = await ModernHttp.start(t)
  const own = { url: server.url, tools: { approve: ['echo'], approveBy: 'page', ...tools } }
  const company = await startCompany(t, {
    auth: { tokens: TOKENS },
    replicas,
    context,
    settings: { mcpServers: { test: own }, ...settings },
  })
  const ask = (who: Person, params: Json = {}, meta: Json = OPENS) =>
    call(company.url, 'tools/call', { name: 'echo', arguments: { path: '/a' }, ...params }, { headers: as(who), meta })
  return { ...company, server, ask, called: () => server.of('tools/call').length }
}

const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json)
const questionIn = ({ message }: Answer) =>
  (message.result?.['inputRequests'] as Record<string, Question>)['approval']?.params as {
    url: string
    message: string
  }
const again = ({ message }: Answer, action = 'accept') => ({
  inputResponses: { approval: { action } },
  requestState: message.result?.['requestState'],
})
const textIn = ({ message }: Answer) => (message.result?.['content'] as { text: string }[] | undefined)?.[0]?.text

t.test('a person opens the address, sees the call, and lets it run', async (t) => {
  const { ask, origin, called } = await start(t)
  const asked = await ask('ada')
  const { url, message } = questionIn(asked)
  t.equal(message, 'Run the tool "echo" of the server "test"? Decide on this page.')
  t.match(url, new RegExp(`^${origin}/sign-in/approve/[\\w-]{22}$`), 'it tells nothing about the call')
  const browser = new Browser()
  const welcome = await browser.go(url)
  t.match(welcome.page, /Who are you\?/)
  t.notMatch(welcome.page, /\/a/)
  const shown = await browser.press(welcome, 'Sign in', { token: TOKENS.ada })
  t.match(shown, { status: 200, page: /<dt>Tool<\/dt><dd>echo<\/dd>/ })
  t.match(shown.page, /<pre>path: &#34;\/a&#34;<\/pre>/)
  t.match(shown.page, /a client that calls itself “test”/)
  t.equal(called(), 0)
  t.match((await browser.press(shown, 'Run')).page, /It is run/)
  t.equal(textIn(await ask('ada', again(asked))), '{"path":"/a"}')
  t.match(textIn(await ask('ada', again(asked))), /was used before/)
  t.ok(questionIn(await ask('ada')).url, 'the next call is asked for again')
  t.equal(called(), 1)
})

t.test('a call waits for the person, and its client is told to come again', async (t) => {
  const { ask, origin, called } = await start(t)
  const asked = await ask('ada')
  const waiting = ask('ada', again(asked))
  const browser = await browserOf('ada', origin)
  await browser.press(await browser.go(questionIn(asked).url), 'Run')
  t.equal(textIn(await waiting), '{"path":"/a"}')
  const second = await ask('ada')
  const { message } = await ask('ada', again(second))
  t.same(Object.keys(message.result ?? {}).sort(), ['requestState', 'resultType'], 'no questions: it is to come again')
  await browser.press(await browser.go(questionIn(second).url), 'Do not run')
  const last = await ask('ada', { requestState: message.result?.['requestState'] })
  t.match(textIn(last), /the person has refused it/)
  t.equal(called(), 1)
})

t.test('a client that opens no addresses is told the address, and an equal call runs after that', async (t) => {
  const { ask, origin, called } = await start(t)
  const first = await ask('ada', {}, {})
  t.match(first.message.result, { isError: true, _meta: { 'io.github.mcp-bridge/approval_required': {} } })
  const [url = ''] = /http\S+(?=,)/.exec(textIn(first) ?? '') ?? []
  t.match(url, `${origin}/sign-in/approve/`)
  t.equal(textIn(await ask('ada', {}, {})), textIn(first), 'it is one question')
  const browser = await browserOf('ada', origin)
  await browser.press(await browser.go(url), 'Run')
  t.match(textIn(await ask('ada', { arguments: { path: '/' } }, {})), /has to approve/, 'other arguments')
  t.match(textIn(await ask('bob', {}, {})), /has to approve/, 'another person')
  t.equal(textIn(await ask('ada', {}, {})), '{"path":"/a"}')
  t.match(textIn(await ask('ada', {}, {})), /has to approve/, 'once')
  t.equal(called(), 1)
})

t.test('nobody decides for somebody else, in any way', async (t) => {
  const { ask, origin, called } = await start(t)
  const asked = await ask('ada')
  const { url } = questionIn(asked)
  const bob = await browserOf('bob', origin)
  const foreign = await bob.go(url)
  t.match(foreign, { status: 404, page: /There is no such question for you/ })
  t.notMatch(foreign.page, /echo|\/a&#34;/)
  // With a form of his own, and with hers.
  const ada = await browserOf('ada', origin)
  const shown = await ada.go(url)
  const [action, form] = ada.form(shown, 'Run')
  t.equal((await bob.go(action, form)).status, 400)
  const own = questionIn(await ask('bob', { arguments: { path: '/b' } })).url
  const [, forged] = bob.form(await bob.go(own), 'Run')
  t.equal((await bob.go(action, forged)).status, 400)
  t.equal((await ada.go(action, form, { origin: 'https://evil.example' })).status, 403)
  t.equal((await ada.go(action, form, { 'sec-fetch-site': 'cross-site' })).status, 400)
  for (const choice of ['window', 'yes', ''])
    t.equal((await ada.go(action, new URLSearchParams({ ...Object.fromEntries(form), choice }))).status, 400, choice)
  t.equal((await ada.step(`${action}?choice=run`)).status, 200, 'to look changes nothing')
  t.match(
    textIn(
      await ask('bob', {
        arguments: { path: '/b' },
        ...again(await ask('bob', { arguments: { path: '/b' } }), 'decline'),
      }),
    ),
    /refused/,
  )
  t.match((await ask('bob', again(asked))).message.error, { code: -32602 })
  t.equal(called(), 0)
  // Two windows: the first decision counts.
  t.match((await ada.go(action, form)).page, /It is run/)
  const late = ada.form(shown, 'Do not run')
  t.equal((await ada.go(...late)).status, 400)
  t.equal((await ada.go(url)).status, 404)
  t.equal(textIn(await ask('ada', again(asked))), '{"path":"/a"}')
})

t.test('hostile names and arguments are text, and secrets are not shown', async (t) => {
  const { url, origin } = await start(t, { approve: ['*'] })
  const hostile = { '<script>': '</pre><button>Run</button>\u202e', path: 'a\nb: "c"' }
  const browser = await browserOf('ada', origin)
  const name = '<b>"no such tool\u{e0041}'
  const headers = { ...as('ada'), 'mcp-name': `=?base64?${Buffer.from(name).toString('base64')}?=` }
  const asked = await call(url, 'tools/call', { name, arguments: hostile }, { headers, meta: OPENS })
  const { page } = await browser.go(questionIn(asked).url)
  t.notMatch(page, /<script>|<b>|<\/pre><button>/)
  t.match(page, /&#60;b&#62;&#34;no such tool\\u\{e0041\}/)
  t.match(page, /path: &#34;a\\nb: \\&#34;c\\&#34;&#34;/)
  t.match(page, '\\u{202e}')
})

t.test('for a while, and refusals at the client', async (t) => {
  const file = join(temporaryFolder(t), 'audit.jsonl')
  const { ask, origin, called } = await start(t, { approveFor: '10m' }, { audit: { file } })
  const browser = await browserOf('ada', origin)
  const asked = await ask('ada')
  const shown = await browser.go(questionIn(asked).url)
  t.match(shown.page, /the tool runs with any arguments/)
  t.match((await browser.press(shown, 'Run, and ask no more for 10 minutes')).page, /It is run/)
  t.equal(textIn(await ask('ada', again(asked))), '{"path":"/a"}')
  t.equal(textIn(await ask('ada', { arguments: { path: '/b' } }, {})), '{"path":"/b"}')
  for (const action of ['decline', 'cancel']) {
    const other = await ask('bob')
    t.match(textIn(await ask('bob', again(other, action))), /was not run: the person has/)
    t.equal((await browser.go(questionIn(other).url)).status, 404)
  }
  t.equal(called(), 2)
  t.same(
    linesOf(file).flatMap(({ principal, approval, outcome }) =>
      approval ? `${principal} ${approval} ${outcome}` : [],
    ),
    [
      'ada asked asks',
      'ada window decided',
      'ada page ok',
      'ada window ok',
      'bob asked asks',
      'bob refused refused',
      'bob asked asks',
      'bob cancelled refused',
    ],
  )
})

t.test(
  'what is decided at the page is written and counted when it is, also for a client that never returns',
  async (t) => {
    const file = join(temporaryFolder(t), 'audit.jsonl')
    const metrics = new Metrics({ version: '1' })
    const { ask, origin, called } = await start(t, {}, { audit: { file } }, 1, { metrics })
    const counts = async () => {
      const text = await metrics.text([])
      return ['asked', 'approved', 'refused', 'expired'].map((event) =>
        Number(new RegExp(`approvals_total\\{server="test",event="${event}"\\} (\\d+)`).exec(text)?.[1]),
      )
    }
    const browser = await browserOf('ada', origin)
    const decide = async (choice: string) => {
      const asked = await ask('ada')
      const shown = await browser.go(questionIn(asked).url)
      t.equal((await browser.press(shown, choice)).status, 200)
      t.equal((await browser.press(shown, choice)).status, 400, 'a second decision is none')
      return asked
    }
    const gone = await decide('Do not run')
    t.same(await counts(), [1, 0, 1, 0])
    const [first, second] = linesOf(file)
    t.match(first, { principal: 'ada', approval: 'asked', outcome: 'asks', tool: 'echo' })
    t.match(second, { principal: 'ada', server: 'test', method: 'tools/call', tool: 'echo', client_name: 'test' })
    t.match(second, { approval: 'refused', outcome: 'decided', digest: first?.['digest'], time: String })
    t.match(textIn(await ask('ada', again(gone))), /the person has refused it/)
    t.same(await counts(), [1, 0, 1, 0], 'and not again when the client comes after all')
    const approved = await decide('Run')
    t.match(linesOf(file).at(-1), { principal: 'ada', approval: 'page', outcome: 'decided' })
    t.equal(called(), 0)
    t.equal(textIn(await ask('ada', again(approved))), '{"path":"/a"}')
    t.match(linesOf(file).at(-1), { principal: 'ada', approval: 'page', outcome: 'ok' })
    await ask('ada', again(await ask('ada'), 'decline'))
    t.same(await counts(), [3, 1, 2, 0])
  },
)

t.test(
  'people who sign in at the identity provider come back to the question, and only the caller can answer',
  async (t) => {
    const server = await ModernHttp.start(t)
    const own = { url: server.url, tools: { approve: ['echo'], approveBy: 'page' } }
    const { url, tokenOf, becomes } = await startCompany(t, { settings: { mcpServers: { test: own } } })
    const headers = { authorization: `Bearer ${await tokenOf('alice')}` }
    const params = { name: 'echo', arguments: { path: '/a' } }
    const asked = await call(url, 'tools/call', params, { headers, meta: OPENS })
    becomes('bob')
    t.equal((await new Browser().go(questionIn(asked).url)).status, 404)
    becomes('alice')
    const browser = new Browser()
    const shown = await browser.go(questionIn(asked).url)
    t.match(shown, { status: 200, page: /<pre>path: &#34;\/a&#34;<\/pre>/ })
    t.match((await browser.press(shown, 'Run')).page, /It is run/)
    const answer = await call(url, 'tools/call', { ...params, ...again(asked) }, { headers, meta: OPENS })
    t.equal(textIn(answer), '{"path":"/a"}')
  },
)

t.test('a question that is too old cannot be answered', async (t) => {
  const { ask, origin, called } = await start(t, {}, { timeouts: { answer: 1_000 } })
  const browser = await browserOf('ada', origin)
  const asked = await ask('ada')
  const shown = await browser.go(questionIn(asked).url)
  t.match(textIn(await ask('ada', again(asked))), /the answer came too late|is not known any more/)
  t.equal((await browser.press(shown, 'Run')).status, 400)
  t.equal(called(), 0)
})

t.test('replicas share questions and answers', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const shared = { redis: { url: redis.url }, stateKeys: ['a key of at least thirty-two characters'] }
  const { ask, origin, called } = await start(t, {}, shared, 2)
  const browser = await browserOf('ada', origin)
  for (let round = 1; round <= 4; round++) {
    const asked = await ask('ada')
    t.match((await browser.press(await browser.go(questionIn(asked).url), 'Run')).page, /It is run/)
    const both = await Promise.all([ask('ada', again(asked)), ask('ada', again(asked))])
    t.same(both.map((one) => textIn(one) === '{"path":"/a"}').sort(), [false, true])
    t.equal(called(), round)
  }
})

t.test('a page that is not served is a mistake of the configuration', async (t) => {
  const tools = { approve: ['a'], approveBy: 'page' }
  const mcpServers = { x: { url: 'https://mcp.example.com/mcp', tools } }
  const said = (settings: object) => {
    try {
      parseSettings({ mcpServers, ...settings }, { env: {}, read: () => '' })
      return 'nothing'
    } catch (error) {
      return JSON.stringify((error as { issues: unknown }).issues)
    }
  }
  const listen = 'http://127.0.0.1:0/mcp'
  const auth = { tokens: TOKENS }
  t.match(said({ listen, auth }), /tools\.approveBy/)
  t.match(said({ listen, publicUrl: 'https://mcp.example.com' }), /tools\.approveBy/)
  t.match(said({ listen, auth, publicUrl: 'http://mcp.example.com' }), /tools\.approveBy/)
  t.equal(said({ listen, auth, publicUrl: 'https://mcp.example.com' }), 'nothing')
})
