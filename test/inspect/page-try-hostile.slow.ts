/**
 * A server that wants out of the view Try: each of its texts in each place where a server can put one. Nothing runs, nothing is
 * loaded, nothing leaves.
 *
 * Runs in its own process: its browser ends with it.
 */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { openTry } from '../support/try-page.js'

/** Where a server would like to be asked. */
const OUT = 'https://evil.example/out'
const TEXTS = [
  `<img src=x onerror="globalThis.ran=1">`,
  `<img src="${OUT}.png">`,
  `<script>globalThis.ran=1;fetch("${OUT}")</script>`,
  `<svg onload=globalThis.ran=1><use href="${OUT}#x"/></svg>`,
  `"><svg/onload=globalThis.ran=1>`,
  `' onfocus='globalThis.ran=1' autofocus='`,
  `</pre><iframe srcdoc="<script>parent.ran=1</script>"></iframe>`,
  `</textarea><meta http-equiv="refresh" content="0;url=${OUT}">`,
  `</select></form><form action="${OUT}"><button autofocus>`,
  `<base href="${OUT}"><link rel=stylesheet href="${OUT}.css">`,
  `<style>@import "${OUT}.css";*{background:url(${OUT})}</style>`,
  `<object data="${OUT}"></object><embed src="${OUT}">`,
  `<a href="javascript:globalThis.ran=1">here</a>`,
  'javascript:globalThis.ran=1',
  'data:text/html,<script>opener.ran=1</script>',
  `[link](${OUT}) ![image](${OUT}.png)`,
  '${globalThis.ran=1}{{globalThis.ran=1}}#{globalThis.ran=1}',
  '\u202Eexe.txt\u202C\u0007\u001B]8;;https://evil.example\u0007',
  '__proto__',
  'constructor',
  '\u0000\uD800\uFFFF',
  'x'.repeat(20_000),
]

type Json = Record<string, unknown>
const schemaOf = (text: string) => ({
  type: 'object',
  title: text,
  description: text,
  properties: {
    [text]: { type: 'string', title: text, description: text, default: text, pattern: text, format: text },
    choice: { enum: [text], enumNames: [text], default: text },
    other: { oneOf: [{ const: text, title: text }] },
    either: { anyOf: [{ title: text, type: 'object', properties: { [text]: { $ref: OUT } } }] },
    list: { type: 'array', items: { type: 'string', title: text }, default: [text] },
  },
  required: [text],
})

/** Everything that a server can say, with the text in it. */
const bytes = (text: string) => Buffer.from(text).toString('base64')
const content = (text: string) => [
  { type: 'text', text, annotations: { audience: [text] } },
  { type: 'resource_link', uri: text, name: text, title: text, mimeType: text, icons: [{ src: OUT }] },
  { type: 'resource_link', uri: OUT, name: text },
  { type: 'image', data: bytes(text), mimeType: 'image/svg+xml' },
  { type: 'image', data: bytes(text), mimeType: 'image/png' },
  { type: 'image', data: text, mimeType: 'image/png' },
  { type: 'audio', data: bytes(text), mimeType: 'audio/wav' },
  { type: 'resource', resource: { uri: text, mimeType: 'text/html', text } },
  { type: 'resource', resource: { uri: OUT, mimeType: 'application/pdf', blob: bytes(text) } },
  { type: text, [text]: text },
]
/** The places, each of which is a case with each of the texts. */
const CALLS: [where: string, answer: (text: string) => Json][] = [
  ['content', (text) => ({ result: { content: content(text), isError: true } })],
  [
    'structured content',
    (text) => ({ result: { content: [], structuredContent: { [text]: [text, { [text]: OUT }] } } }),
  ],
  ['an error', (text) => ({ error: { code: -32000, message: text, data: { [text]: text } } })],
]

t.test(
  'each text in each place of what a server says: nothing runs and nothing leaves',
  { skip: noBrowser },
  async (t) => {
    const tools = TEXTS.map((text, i) => ({
      name: `tool-${String(i).padStart(2, '0')}`,
      title: text,
      description: text,
      icons: [{ src: OUT, mimeType: text }],
      annotations: { title: text, [text]: text },
      inputSchema: schemaOf(text),
      outputSchema: { type: 'object', description: text, properties: { [text]: { $ref: OUT, description: text } } },
      _meta: { 'io.github.mcp-bridge/quarantined': { reason: text, remedy: text } },
    }))
    const prompts = TEXTS.map((text) => ({
      name: text,
      title: text,
      description: text,
      arguments: [{ name: text, description: text, required: true }],
    }))
    const resources = TEXTS.map((text) => ({
      uri: text,
      name: text,
      title: text,
      description: text,
      mimeType: text,
      icons: [{ src: OUT }],
    }))
    const resourceTemplates = TEXTS.map((text) => ({ uriTemplate: `${text}{${text}}`, name: text, description: text }))
    let turn = 0
    const server = await LegacyHttp.start(t, {
      override: ({ message }: { message?: Json }, response: ServerResponse) => {
        const method = String(message?.['method'])
        const { name } = (message?.['params'] ?? {}) as { name?: string }
        const text = TEXTS[Number(name?.slice(5))] ?? ''
        const lists: Record<string, Json> = {
          'tools/list': { tools },
          'prompts/list': { prompts },
          'resources/list': { resources },
          'resources/templates/list': { resourceTemplates },
        }
        const answers: Record<string, Json> = {
          ...Object.fromEntries(Object.entries(lists).map(([list, result]) => [list, { result }])),
          initialize: {
            result: {
              protocolVersion: '2025-11-25',
              capabilities: { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} },
              serverInfo: { name: TEXTS[0], title: TEXTS[2], version: TEXTS[3] },
              instructions: TEXTS.join('\n'),
            },
          },
        }
        const answer = method === 'tools/call' ? CALLS[turn++ % CALLS.length]?.[1](text) : answers[method]
        if (answer === undefined) return false
        response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'hostile' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], ...answer }))
        return true
      },
    } as never)
    const { browser, shows, press, as, withoutMistakes } = await openTry(t, { hostile: { url: server.url } })
    await as('2025-11-25')
    await shows(/Tools 22/)
    const around = `document.querySelectorAll('.try iframe, .try img, .try script, .try svg, .try a, .try object, .try embed, .try style, .try meta, .try base, .try link, .try video, .try audio, .try [onerror], .try [onfocus], .try [onload]').length`
    const isClean = async (what: string) => {
      t.equal(await browser.evaluate(around), 0, what)
      t.notOk(await browser.evaluate(`'ran' in globalThis || 'ran' in ({})`), what)
      const text = await browser.text()
      for (const character of ['\u202E', '\u0007', '\u001B']) t.notOk(text.includes(character), what)
    }
    let cases = 0
    let calls = 0
    for (const [i, { name }] of tools.entries()) {
      await press(name, '.items')
      await until(
        () =>
          browser.evaluate<boolean>(
            `document.querySelector('.trying form')?.getAttribute('aria-label') === ${JSON.stringify(name)}`,
          ),
        `form ${i}`,
      )
      await browser.evaluate(`[...document.querySelectorAll('.trying details')].forEach((one) => { one.open = true })`)
      await isClean(`the form of text ${i}`)
      cases++
      for (const [where] of CALLS) {
        await browser.evaluate(`{
        const buttons = [...document.querySelectorAll('.trying form .buttons button')]
        ;(buttons.find((one) => one.textContent === 'Call anyway') ?? buttons[0]).click()
      }`)
        const done = `document.querySelectorAll('.outcome').length > ${Math.min(calls, 49)}`
        await until(async () => {
          await browser.evaluate(
            `[...document.querySelectorAll('.trying form .buttons button')].find((one) => one.textContent === 'Call anyway')?.click()`,
          )
          return server.of('tools/call').length > calls && browser.evaluate<boolean>(done)
        }, `call ${calls}`)
        calls = server.of('tools/call').length
        await until(async () => !(await browser.text()).includes('in progress'), 'the answer')
        await isClean(`${where} with text ${i}`)
        cases++
      }
    }
    for (const kind of ['prompts', 'resources', 'templates'])
      for (const [i] of TEXTS.entries()) {
        const button = `[...document.querySelectorAll('.items')][${['tools', 'prompts', 'resources', 'templates'].indexOf(kind)}]?.querySelectorAll('button')[${i}]`
        if (!(await browser.evaluate<boolean>(`Boolean(${button})`))) continue
        await browser.evaluate(`${button}.click()`)
        await isClean(`${kind} with text ${i}`)
        cases++
      }
    t.ok(cases >= 100, `${cases} cases`)
    withoutMistakes()
  },
)

t.test(
  'addresses of questions are only links if they are of the web, and open nothing by themselves',
  { skip: noBrowser },
  async (t) => {
    const urls = ['javascript:globalThis.ran=1', 'data:text/html,x', 'file:///etc/passwd', ' javascript:1', OUT]
    const server = await LegacyHttp.start(t, { capabilities: { tools: {} } })
    const { browser, shows, press, fillJson, as, withoutMistakes } = await openTry(t, { test: { url: server.url } })
    await as('2025-11-25')
    await shows(/Tools \d+/)
    for (const [i, url] of urls.entries()) {
      const question = {
        method: 'elicitation/create',
        params: { mode: 'url', message: `look ${i}`, url, elicitationId: `e${i}` },
      }
      await press('ask', '.items')
      if (i === 0) await shows(/No arguments\./)
      await fillJson(JSON.stringify(question))
      await press('Call', '.trying')
      await shows(new RegExp(`look ${i}`))
      const links = await browser.evaluate<string[]>(
        `[...document.querySelectorAll('.question a')].map((one) => one.protocol + one.rel)`,
      )
      t.same(links, url === OUT ? ['https:noopener noreferrer'] : [], url)
      await press('Decline', '.question')
    }
    t.notOk(await browser.evaluate(`'ran' in globalThis`))
    withoutMistakes()
  },
)
