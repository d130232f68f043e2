/**
 * A person approves a call in a real browser: what the page looks like, and that its buttons work. With `PICTURE=1`, it takes
 * docs/approval.webp.
 */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { z } from 'zod'
import type { Question } from '../matrix/client.js'
import { as, TOKENS } from '../support/approving.js'
import { Chromium, noBrowser } from '../support/chromium.js'
import { startCompany } from '../support/company.js'
import { until } from '../support/eventually.js'
import { type Answer, CAPABILITIES, CLIENT_INFO, call } from '../support/modern.js'
import { startSdkV1 } from '../support/sdk-v1.js'

const FILE = fileURLToPath(new URL('../../docs/approval.webp', import.meta.url))
const META = { [CAPABILITIES]: { elicitation: { url: {} } }, [CLIENT_INFO]: { name: 'desk', version: '1' } }
const PARAMS = { name: 'send_mail', arguments: { to: ['all@example.com'], subject: 'New prices\u202e', draft: false } }

const addressIn = ({ message }: Answer) =>
  (message.result?.['inputRequests'] as Record<string, Question>)['approval']?.params['url'] as string

t.test('the page asks in a browser, and runs the call when the button is pressed', { skip: noBrowser }, async (t) => {
  let sent = 0
  const address = await startSdkV1(t, (mail) => {
    const inputSchema = { to: z.array(z.string()), subject: z.string(), draft: z.boolean() }
    mail.registerTool('send_mail', { inputSchema }, () => {
      sent++
      return { content: [{ type: 'text', text: 'Sent' }] }
    })
  })
  const mail = { url: address, tools: { approve: ['send_*'], approveBy: 'page', approveFor: '10m' } }
  const { url } = await startCompany(t, { auth: { tokens: TOKENS }, settings: { mcpServers: { mail } } })
  const ask = (more: object = {}) => call(url, 'tools/call', { ...PARAMS, ...more }, { headers: as('ada'), meta: META })
  const asked = await ask()
  const browser = await Chromium.start(t)
  await browser.emulate({ scheme: 'light', width: 760, height: 470 })
  await browser.open(addressIn(asked))
  t.match(await browser.text(), /Who are you\?/)
  await browser.evaluate(`document.querySelector('input[name=token]').value = '${TOKENS.ada}'`)
  const press = (label: string) =>
    browser.evaluate(`[...document.querySelectorAll('button')].find((one) => one.innerText === '${label}').click()`)
  const text = () => browser.evaluate<string>("document.body?.innerText ?? ''")
  await press('Sign in')
  await until(async () => /Run this tool\?/.test(await text()), 'the question')
  const question = await text()
  for (const shown of [/mail/, /send_mail/, /“desk”/, /subject: "New prices\\u\{202e\}"/, /any arguments/])
    t.match(question, shown)
  if (process.env['PICTURE']) await browser.screenshot(FILE)
  t.equal(sent, 0)
  await press('Run')
  await until(async () => /It is run/.test(await text()), 'the answer')
  const { requestState } = asked.message.result ?? {}
  const last = await ask({ inputResponses: { approval: { action: 'accept' } }, requestState })
  t.ok(last.message.result?.['content'], last.text)
  t.equal(sent, 1)
  t.same(browser.mistakes, [])
})
