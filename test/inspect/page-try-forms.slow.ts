/**
 * Forms of the view Try in a real browser: what is wrong stands at its field before anything is sent, completions, tasks, hidden items,
 * and structured content against its schema.
 *
 * Runs in its own process: its browser ends with it.
 */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { problems } from '../support/inspector-page.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { everything, openTry } from '../support/try-page.js'

/** A legacy server with these tools; calls give structured content. */
function serverOf(
  t: Test,
  tools: readonly object[],
  structuredContent?: unknown,
  content: readonly object[] = [],
): Promise<LegacyHttp> {
  return LegacyHttp.start(t, {
    override: ({ message }: { message?: Record<string, unknown> }, response: ServerResponse) => {
      const results: Record<string, object> = {
        'tools/list': { tools },
        'tools/call': { content, structuredContent },
      }
      const result = results[String(message?.['method'])]
      if (result === undefined) return false
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
      return true
    },
  } as never)
}

t.test(
  'a mistake against the schema is shown at its field, and the value is sent only with Call anyway',
  { skip: noBrowser },
  async (t) => {
    const inputSchema = {
      type: 'object',
      properties: {
        size: { type: 'integer', maximum: 9 },
        name: { type: 'string', pattern: '^[a-z]+$' },
        nested: { type: 'object', properties: { x: { type: 'string', minLength: 2 } }, default: { x: 'a' } },
      },
      required: ['size'],
    }
    const outputSchema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
    const server = await serverOf(t, [{ name: 'measured', inputSchema, outputSchema }], { total: 'many' })
    const { browser, shows, press, fill, withoutMistakes } = await openTry(t, { test: { url: server.url } })
    await press('measured', '.items')
    await fill('size', '12')
    await fill('name', 'A1')
    await press('Call', '.trying')
    await shows(/\/size must be <= 9/)
    const wrong = () =>
      browser.evaluate<string[][]>(
        `[...document.querySelectorAll('[aria-invalid=true]')].map((field) => [field.labels[0].textContent.trim(), document.getElementById(field.getAttribute('aria-describedby')).textContent])`,
      )
    t.match(await wrong(), [
      [/^size/, /<= 9/],
      [/^name/, /pattern/],
      [/^x/, /fewer than 2/],
    ])
    t.same(
      server.methods.filter((one) => one === 'tools/call'),
      [],
      'nothing was sent',
    )
    t.same(await problems(browser), [], 'axe-core finds nothing')
    await fill('size', '3')
    await fill('name', 'abc')
    await fill('x', 'ab')
    await press('Call', '.trying')
    await shows(/Invalid against the output schema/)
    await shows(/\/total must be number/)
    t.same(await wrong(), [])
    await fill('size', '12')
    await press('Call', '.trying')
    await shows(/\/size must be <= 9/)
    await press('Call anyway', '.trying')
    await until(() => server.methods.filter((one) => one === 'tools/call').length === 2, 'the call that does not fit')
    withoutMistakes()
  },
)

t.test('a schema that cannot be checked does not keep anybody from calling', { skip: noBrowser }, async (t) => {
  const inputSchema = { type: 'object', properties: { a: { $ref: 'https://evil.example/schema.json' } } }
  const server = await serverOf(t, [{ name: 'remote', inputSchema }], {})
  const { shows, press, withoutMistakes } = await openTry(t, { test: { url: server.url } })
  await press('remote', '.items')
  await press('Call', '.trying')
  await shows(/Other documents are not read/)
  await until(() => server.methods.includes('tools/call'), 'the call')
  withoutMistakes()
})

t.test(
  'arguments of prompts are completed while somebody types, by keyboard, with what is known of others',
  { skip: noBrowser },
  async (t) => {
    const { browser, asks, press, withoutMistakes } = await openTry(t, { everything })
    await asks(/Prompts \d+/)
    await press('completable-prompt', '.items')
    const type = async (label: string, text: string, ...keys: string[]) => {
      await browser.evaluate(
        `[...document.querySelectorAll('.trying label')].find((one) => one.textContent.trim().startsWith(${JSON.stringify(label)})).control.focus()`,
      )
      await browser.type(text)
      await until(() => browser.evaluate<boolean>(`Boolean(document.querySelector('[role=listbox]'))`), 'completions')
      for (const key of keys) await browser.press(key)
    }
    const textNow = () => browser.evaluate<string>(`document.activeElement.value`)
    await type('department', 'E', 'ArrowDown')
    t.match(
      await browser.evaluate(`{
      const field = document.activeElement
      const option = document.getElementById(field.getAttribute('aria-activedescendant'))
      ;[field.getAttribute('role'), field.getAttribute('aria-expanded'), option.getAttribute('role'), option.textContent]
    }`),
      ['combobox', 'true', 'option', 'Engineering'],
    )
    t.same(await problems(browser), [], 'axe-core finds nothing while completions are shown')
    await browser.press('Enter')
    t.equal(await textNow(), 'Engineering')
    t.notOk(await browser.evaluate(`Boolean(document.querySelector('.outcome'))`), 'the key has sent nothing')
    await type('name', 'A', 'ArrowUp')
    t.equal(await browser.evaluate(`document.querySelector('[aria-selected=true]').textContent`), 'Alice')
    await browser.press('Escape')
    t.notOk(await browser.evaluate(`Boolean(document.querySelector('[role=listbox]'))`), 'Escape closes the list')
    t.equal(await textNow(), 'A')
    withoutMistakes()
  },
)

t.test('a legacy server is asked for a task, whose states and result are shown', { skip: noBrowser }, async (t) => {
  const { browser, asks, press, fill, as, withoutMistakes } = await openTry(t, { everything })
  await as('2025-11-25')
  await asks(/Tools \d+/)
  await press('simulate-research-query', '.items')
  await fill('topic', 'python')
  await browser.evaluate(`{
    const box = document.querySelector('.trying input[type=checkbox][id=""], .trying .buttons input[type=checkbox]')
    if (!box.checked) box.click()
  }`)
  await press('Call', '.trying')
  await asks(/task \S+: working/)
  await asks(/Research Report/i)
  withoutMistakes()
})

t.test('what is hidden is listed with the reason', { skip: noBrowser }, async (t) => {
  const tools = { deny: ['get-*'] }
  const { browser, asks, withoutMistakes } = await openTry(t, {
    everything: { ...everything, tools, scopes: { echo: ['talk'] } },
  })
  await asks(/Hidden \d+/)
  await asks(/get-sum\s+tool: "tools\.deny" of the server has "get-\*"/)
  await asks(/echo\s+tool: Callers need the scope talk/)
  t.same(await problems(browser), [], 'axe-core finds nothing')
  withoutMistakes()
})

t.test('an image of too many pixels is not decoded, and the next one is drawn', { skip: noBrowser }, async (t) => {
  const huge = Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR', 'latin1'),
    Buffer.from([0, 0, 0xfd, 0xe8, 0, 0, 0xfa, 0, 8, 6, 0, 0, 0]),
  ])
  const small = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const content = [huge.toString('base64'), small].map((data) => ({ type: 'image', data, mimeType: 'image/png' }))
  const server = await serverOf(t, [{ name: 'pictures', inputSchema: { type: 'object' } }], undefined, content)
  const { browser, shows, press, withoutMistakes } = await openTry(t, { test: { url: server.url } })
  await press('pictures', '.items')
  await press('Call', '.trying')
  await shows(/The image is too large to be drawn: 65000 × 64000 pixels/)
  await until(() => browser.evaluate<boolean>(`document.querySelector('canvas.picture')?.width === 1`), 'the other')
  withoutMistakes()
})
