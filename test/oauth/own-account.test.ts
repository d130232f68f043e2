/** Each person signs in to a server with an account of their own, on the page of the bridge, and only their calls use it. */
import t from 'tap'
import { Browser } from '../support/browser.js'
import { startCompany } from '../support/company.js'
import { type Answer, CAPABILITIES, call } from '../support/modern.js'

const WHOAMI = { name: 'whoami', arguments: {} }
const ABLE = { [CAPABILITIES]: { elicitation: { url: {} } } }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** The question in an answer, if it is one. */
function questionIn({ message }: Answer): { url: string; state: string; message: string } {
  const { inputRequests, requestState } = (message.result ?? {}) as {
    inputRequests?: Record<string, { params: { url: string; message: string } }>
    requestState?: string
  }
  const { params } = inputRequests?.['sign-in'] ?? {}
  return { url: params?.url ?? '', message: params?.message ?? '', state: requestState ?? '' }
}

t.test('a modern client is asked to open the page, the person signs in there, and the call goes on', async (t) => {
  const { url, origin, tokenOf, becomes } = await startCompany(t)
  const headers = bearer(await tokenOf('alice'))
  const asked = questionIn(await call(url, 'tools/call', WHOAMI, { headers, meta: ABLE }))
  t.match(asked.url, `${origin}/sign-in/test?t=`)
  t.notMatch(asked.url, /alice/, 'A28: nobody is named in the address')
  t.match(asked.message, `Sign in to "test" with your own account first: ${origin}/sign-in/test`)
  const browser = new Browser()
  becomes('alice')
  const agreement = await browser.go(asked.url)
  t.match(agreement, { status: 200, page: /Sign in to test/ })
  t.match(agreement.page, /“test”/, 'the client that asked')
  const done = await browser.press(agreement, 'Continue')
  t.match(done, { status: 200, page: /You are signed in to <strong>test/ })
  t.equal(done.url.href, `${origin}/sign-in?done=test`)
  const inputResponses = { 'sign-in': { action: 'accept' } }
  const again = { ...WHOAMI, inputResponses, requestState: asked.state }
  const { message } = await call(url, 'tools/call', again, { headers, meta: ABLE })
  t.match(message.result, { content: [{ text: 'alice' }] })
})
