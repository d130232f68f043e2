/** Each person signs in to a server with an account of their own, on the page of the bridge, and only their calls use it. */
import t from 'tap'
import { again, agree, questionIn, WHOAMI, whoami } from '../support/asked-to-sign-in.js'
import { Browser } from '../support/browser.js'
import { startCompany } from '../support/company.js'
import { send } from '../support/modern.js'

const SECRET = 'a-secret-of-the-proxy-and-the-bridge'
/** Ways in which people show who they are: with each call, and in a browser. */
const PROXY = { user: 'x-user', secretHeader: 'x-proxy-secret', secret: SECRET }

t.test('a modern client is asked to open the page, the person signs in there, and the call goes on', async (t) => {
  const { url, origin, tokenOf, becomes } = await startCompany(t)
  const token = await tokenOf('alice')
  const asked = await whoami(url, token)
  const question = questionIn(asked)
  t.match(question.url, `${origin}/sign-in/test?t=`)
  t.notMatch(question.url, /alice/, 'A28: nobody is named in the address')
  t.match(question.message, `Sign in to "test" with your own account first: ${origin}/sign-in/test`)
  const browser = new Browser()
  becomes('alice')
  const agreement = await browser.go(question.url)
  t.match(agreement, { status: 200, page: /Sign in to test/ })
  t.match(agreement.page, /“test”/, 'the client that asked')
  const done = await browser.press(agreement, 'Continue')
  t.match(done, { status: 200, page: /You are signed in to <strong>test/ })
  t.equal(done.url.href, `${origin}/sign-in?done=test`)
  const { message } = await whoami(url, token, again(asked))
  t.match(message.result, { content: [{ text: 'alice' }] })
})

t.test('the page lists the state of each account, signs in without a question, and signs out', async (t) => {
  const { url, origin, tokenOf, becomes, vendor } = await startCompany(t)
  becomes('alice')
  const browser = new Browser()
  const before = await browser.go(`${origin}/sign-in`)
  t.match(before.page, /Not signed in/)
  t.match(await agree(browser, `${origin}/sign-in/test`), { page: /Signed in/ })
  const token = await tokenOf('alice')
  t.match((await whoami(url, token)).message.result, { content: [{ text: 'alice' }] })
  const out = await browser.press(await browser.go(`${origin}/sign-in`), 'Sign out of test')
  t.match(out.page, /Not signed in/)
  t.equal(vendor.of('/token/revocation').length, 1, 'the tokens are revoked')
  t.match(questionIn(await whoami(url, token)).url, /sign-in/, 'and the next call asks again')
  const gone = await browser.press(await browser.go(`${origin}/sign-in`), 'Not you?')
  t.match(gone.page, /Goodbye/)
  t.same([...browser.cookiesAt(origin).keys()], [])
})

t.test('a client that cannot open addresses is told where the page is, without a ticket', async (t) => {
  const { url, origin, tokenOf } = await startCompany(t)
  const token = await tokenOf('alice')
  const { message } = await whoami(url, token, WHOAMI, { meta: {} })
  t.match(message.result, { isError: true, _meta: { 'io.github.mcp-bridge/sign_in_required': {} } })
  t.match(JSON.stringify(message), `Sign in to \\"test\\" with your own account first: ${origin}/sign-in/test`)
  t.notMatch(JSON.stringify(message), /\?t=/)
})

t.test('a link that somebody else opens stores nothing for either, and is spent', async (t) => {
  const { url, origin, tokenOf, becomes, vendor, bridges } = await startCompany(t)
  const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')]
  const { url: link } = questionIn(await whoami(url, alice))
  becomes('bob')
  const other = new Browser()
  const refused = await other.go(link)
  t.match(refused, { status: 403, page: /It was made for somebody else/ })
  t.notMatch(refused.page, /alice/)
  t.equal(vendor.of('/auth').length, 0, 'nobody was sent to the server')
  t.equal(bridges[0]?.log.filter(({ event }) => event === 'sign_in_link_foreign').length, 1)
  becomes('alice')
  const own = new Browser()
  const late = await own.press(await own.go(link), 'Continue')
  t.match(late, { status: 400, page: /can be used once/ }, 'the ticket is spent')
  t.equal(vendor.of('/token').length, 0)
  for (const token of [alice, bob]) t.match(questionIn(await whoami(url, token)).url, `${origin}/sign-in/test?t=`)
})

t.test('a person without a ticket gets an account of their own, whoever asked them to open the page', async (t) => {
  const { url, origin, tokenOf, becomes } = await startCompany(t)
  const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')]
  becomes('bob')
  await agree(new Browser(), `${origin}/sign-in/test`)
  t.match((await whoami(url, bob)).message.result, { content: [{ text: 'bob' }] })
  t.match(questionIn(await whoami(url, alice)).url, /sign-in/)
})

t.test('a redirect without the cookie, with the one of another, or once more stores nothing', async (t) => {
  const { url, origin, tokenOf, becomes, vendor } = await startCompany(t)
  const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')]
  becomes('alice')
  const browser = new Browser()
  const [action, form] = browser.form(await browser.go(`${origin}/sign-in/test`), 'Continue')
  const leaving = await browser.step(action, form)
  const away = /content="0;url=([^"]*)"/.exec(leaving.page)?.[1]?.replace(/&#38;/g, '&') ?? ''
  let shown = await browser.step(away)
  while (!shown.headers.get('location')?.startsWith(origin))
    shown = await browser.step(new URL(shown.headers.get('location') ?? '', shown.url).href)
  const callback = shown.headers.get('location') ?? ''
  t.match(await new Browser().go(callback), { status: 400, page: /opened in another browser/ }, 'without the cookie')
  becomes('bob')
  const other = new Browser()
  await other.go(`${origin}/sign-in`)
  t.match(await other.go(callback), { status: 400 }, 'of another person')
  becomes('alice')
  const second = new Browser()
  await second.go(`${origin}/sign-in`)
  t.match(await second.go(callback), { status: 400 }, 'of the same person in another browser')
  t.equal(vendor.grants('authorization_code').length, 0)
  for (const token of [alice, bob]) t.match(questionIn(await whoami(url, token)).url, /sign-in/)
  t.match(await browser.go(callback), { status: 200, page: /You are signed in/ })
  t.match(await browser.go(callback), { status: 400 }, 'replayed')
  t.equal(vendor.grants('authorization_code').length, 1)
  t.match((await whoami(url, alice)).message.result, { content: [{ text: 'alice' }] })
})

t.test('forms of other pages change nothing, and pages cannot be framed, cached or scripted', async (t) => {
  const { url, origin, tokenOf, becomes, vendor } = await startCompany(t)
  becomes('alice')
  const browser = new Browser()
  const page = await browser.go(`${origin}/sign-in/test?x=<script>alert(1)</script>`)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/)
  t.equal(page.headers.get('cache-control'), 'no-store')
  t.notMatch(page.page, /<script/)
  const cookies = [...browser.cookiesAt(origin).keys()]
  t.same(cookies, ['__Host-mcp-bridge'])
  const [action, form] = browser.form(page, 'Continue')
  const without = new URLSearchParams([...form].filter(([name]) => name !== 'secret'))
  const wrong = new URLSearchParams({ ...Object.fromEntries(form), secret: 'x.y' })
  for (const body of [without, wrong]) t.match(await browser.step(action, body), { status: 400 })
  t.match(await browser.step(action, form, { 'sec-fetch-site': 'cross-site' }), { status: 400 })
  for (const from of ['https://evil.example', 'null'])
    t.match(await browser.step(action, form, { origin: from }), { status: 403 }, from)
  const other = new Browser()
  becomes('bob')
  const [, ofAnother] = other.form(await other.go(`${origin}/sign-in/test`), 'Continue')
  t.match(await browser.step(action, ofAnother), { status: 400 }, 'the secret of another browser')
  t.match(await new Browser().step(action, form), { status: 400 }, 'without the cookie')
  t.equal(vendor.of('/auth').length, 0)
  const foreign = await send('GET', `${origin}/sign-in`, undefined, { host: 'evil.example' })
  t.equal(foreign.status, 403)
  t.match(await new Browser().go(`${origin}/sign-in/nowhere`), { status: 404 })
  t.match(questionIn(await whoami(url, await tokenOf('alice'))).url, /sign-in/)
})

t.test('the cookie is for this host, TLS and no scripts', async (t) => {
  const { origin, becomes } = await startCompany(t)
  becomes('alice')
  const browser = new Browser()
  const seen: string[] = []
  let next = `${origin}/sign-in`
  for (let step = 0; step < 20; step++) {
    const shown = await browser.step(next)
    seen.push(...shown.headers.getSetCookie().filter((line) => line.startsWith('__Host-mcp-bridge')))
    const location = shown.headers.get('location')
    if (location === null) break
    next = new URL(location, shown.url).href
  }
  t.equal(seen.length, 3, 'for the way there, for the person, and no more for the way')
  for (const line of seen) t.match(line, /; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=\d+$/)
  t.notMatch(seen.join('\n'), /alice/)
})

t.test('who has a token of the bridge enters it, and a wrong one is counted', async (t) => {
  const tokens = { alice: 'the-token-of-alice', bob: 'the-token-of-bob-too' }
  const settings = { limits: { wrongTokensPerMinute: 2 } }
  const { url, origin, becomes } = await startCompany(t, { auth: { tokens }, settings })
  becomes('alice')
  const { url: link } = questionIn(await whoami(url, tokens.alice))
  const browser = new Browser()
  const welcome = await browser.go(link)
  t.match(welcome.page, /Your token for this bridge/)
  const wrong = await browser.press(welcome, 'Sign in', { token: 'not-a-token-of-anybody' })
  t.match(wrong, { status: 403, page: /This token is unknown/ })
  const agreement = await browser.press(wrong, 'Sign in', { token: tokens.alice })
  t.match(agreement.page, /You are <strong>alice/)
  t.match(await browser.press(agreement, 'Continue'), { page: /You are signed in/ })
  t.match((await whoami(url, tokens.alice)).message.result, { content: [{ text: 'alice' }] })
  t.match(questionIn(await whoami(url, tokens.bob)).url, `${origin}/sign-in/test?t=`)
  const guesser = new Browser()
  let guess = await guesser.go(`${origin}/sign-in`)
  for (let tries = 0; guess.status !== 429 && tries < 4; tries++) {
    const [action, form] = guesser.form(guess, 'Sign in', { token: 'not-a-token-of-anybody' })
    guess = await guesser.step(action, form)
  }
  t.equal(guess.status, 429)
})

t.test('where a proxy names people, it names them in browsers, too', async (t) => {
  const { url, origin, becomes } = await startCompany(t, { auth: { forwarded: PROXY } })
  becomes('alice')
  const as = (user: string) => ({ 'x-user': user, 'x-proxy-secret': SECRET })
  const { url: link } = questionIn(await whoami(url, 'none', WHOAMI, { headers: as('alice') }))
  const browser = new Browser()
  t.match(await browser.go(link), { status: 401 }, 'without the proxy, nobody is known')
  t.match(await browser.go(link, undefined, { 'x-user': 'alice' }), { status: 401 }, 'nor by a header of somebody')
  t.match(await new Browser().go(`${origin}/sign-in`, undefined, as('bob')), { page: /You are <strong>bob/ })
  const agreement = await browser.go(link, undefined, as('alice'))
  const [action, form] = browser.form(agreement, 'Continue')
  t.match(await browser.step(action, form, as('bob')), { status: 400 }, 'the proxy now says that it is somebody else')
  t.match(await browser.go(action, form, as('alice')), { page: /You are signed in/ })
  const { message } = await whoami(url, 'none', WHOAMI, { headers: as('alice') })
  t.match(message.result, { content: [{ text: 'alice' }] })
})

t.test('whoever declines at the server is told so with the call, and may try again', async (t) => {
  const { url, tokenOf, becomes, vendor } = await startCompany(t)
  const token = await tokenOf('alice')
  const asked = await whoami(url, token)
  becomes('alice')
  vendor.options.declines = true
  const waiting = whoami(url, token, again(asked))
  const page = await agree(new Browser(), questionIn(asked).url)
  t.match(page, { status: 400, page: /Signing in was declined/ })
  t.notMatch(page.page, /CANARY/)
  t.match((await waiting).message.result, { isError: true, _meta: { 'io.github.mcp-bridge/sign_in_refused': {} } })
  vendor.options.declines = false
  const second = await whoami(url, token)
  await agree(new Browser(), questionIn(second).url)
  t.match((await whoami(url, token, again(second))).message.result, { content: [{ text: 'alice' }] })
  const declined = await whoami(url, token, again(asked, 'decline'))
  t.match(declined.message.result, { isError: true, _meta: { 'io.github.mcp-bridge/sign_in_refused': {} } })
})

t.test('a person is told when the identity provider answers with an error, and nobody else is to blame', async (t) => {
  const { origin, becomes } = await startCompany(t)
  becomes('alice')
  const browser = new Browser()
  const leaving = await browser.step(`${origin}/sign-in`)
  const away = new URL(leaving.headers.get('location') ?? '')
  const query = `state=${away.searchParams.get('state')}&error=server_error&iss=${away.origin}`
  const shown = await browser.go(`${origin}/sign-in/browser/callback?${query}`)
  t.match(shown, { status: 400, page: /answered with the error server_error/ })
})
