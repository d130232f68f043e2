/**
 * Forms of schemas of published servers, and of hostile ones, in a real browser.
 *
 * Runs in its own process: its browser ends with it.
 */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { REAL } from '../policy/portable/real.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { openTry } from '../support/try-page.js'

/** A page in front of a server whose tools have these schemas. */
async function openWith(t: Test, all: readonly unknown[]) {
  const tools = all.map((inputSchema, i) => ({ name: `tool-${String(i).padStart(3, '0')}`, inputSchema }))
  const server = await LegacyHttp.start(t, {
    override: ({ message }: { message?: Record<string, unknown> }, response: ServerResponse) => {
      if (message?.['method'] !== 'tools/list') return false
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: { tools } }))
      return true
    },
  } as never)
  const page = await openTry(t, { test: { url: server.url } })
  await page.shows(/Tools \d+/)
  return { ...page, names: tools.map(({ name }) => name), server }
}

/** Opens the form of a tool, as fields, as JSON, and as fields again, and gives the number of its fields. */
async function opened({ browser, press }: Awaited<ReturnType<typeof openWith>>, name: string): Promise<number> {
  await press(name, '.items')
  await until(
    () =>
      browser.evaluate<boolean>(
        `document.querySelector('.trying form')?.getAttribute('aria-label') === ${JSON.stringify(name)}`,
      ),
    `the form of ${name}`,
  )
  const fields = await browser.evaluate<number>(`document.querySelectorAll('.trying .field').length`)
  await press('Edit as JSON', '.trying')
  await until(
    () =>
      browser.evaluate<boolean>(`Boolean(document.querySelector('.trying textarea[aria-label="Arguments as JSON"]'))`),
    'JSON',
  )
  await press('Edit as JSON', '.trying')
  return fields
}

t.test('schemas of published servers make forms without an error', { skip: noBrowser }, async (t) => {
  const page = await openWith(
    t,
    REAL.map(({ schema }) => schema),
  )
  for (const [i, { name, schema }] of REAL.entries()) {
    const fields = await opened(page, page.names[i] as string)
    const { properties = {} } = schema as { properties?: object }
    const wanted = Math.min(Object.keys(properties).length, 40)
    t.ok(
      fields >= wanted ||
        ((await page.browser.evaluate(
          `document.querySelectorAll('.trying .field, .trying fieldset').length`,
        )) as number) > wanted,
      `${name}: ${fields} fields`,
    )
    t.notMatch(await page.browser.text(), /Cannot display this/)
  }
  page.withoutMistakes()
})

const wide = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`p${i}`, { type: 'string', default: `${i}` }]))
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
const deep = (levels: number): object =>
  levels === 0 ? { type: 'string' } : object({ a: deep(levels - 1) }, { required: ['a'] })
const HOSTILE: [what: string, schema: unknown][] = [
  ['a reference', object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: object({ b: { enum: ['x'] } }) } })],
  ['a reference to itself', object({ self: { $ref: '#' } }, { required: ['self'] })],
  [
    'references in a circle',
    object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }),
  ],
  ['a reference to another document', object({ a: { $ref: 'https://evil.example/x.json' } })],
  ['a reference to nowhere', object({ a: { $ref: '#/%zz/~9' } })],
  [
    'alternatives of alternatives of itself',
    object({ a: { anyOf: [{ anyOf: [{ $ref: '#' }] }, { type: 'null' }] } }, { required: ['a'] }),
  ],
  [
    'two hundred alternatives',
    object({ a: { oneOf: Array.from({ length: 200 }, (_, i) => object({ [`k${i}`]: {} })) } }),
  ],
  ['500 properties with defaults', object(wide)],
  ['an enumeration of 2,000', object({ a: { enum: Array.from({ length: 2_000 }, (_, i) => `v${i}`) } })],
  ['fifty levels', deep(50)],
  [
    'special keys',
    JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string","default":"x"},"constructor":{"type":"object","properties":{"prototype":{"type":"string"}}},"toString":{"type":"integer"},"hasOwnProperty":{"type":"boolean"},"":{"type":"string"},"a/b~c":{"type":"string"}},"required":["__proto__","toString",""]}',
    ),
  ],
  [
    'markup',
    object({
      '<img src=x onerror=alert(1)>': {
        type: 'string',
        title: '<script>alert(1)</script>',
        description: '</p><iframe src=//evil.example>',
        default: '"><svg/onload=alert(1)>',
      },
    }),
  ],
  [
    'defaults of the wrong type',
    object({
      a: { type: 'integer', default: {} },
      b: { type: 'array', default: 'x' },
      c: { type: 'boolean', default: [] },
      d: { type: 'string', default: { e: 1 } },
    }),
  ],
  ['a very long text', object({ ['k'.repeat(10_000)]: { type: 'string', description: 'd'.repeat(100_000) } })],
  ['types that there are not', object({ a: { type: 'frog' }, b: { type: ['string', 'integer', 'null'] } })],
  ['nonsense', object({ a: true, b: false, c: { enum: [] }, d: { const: null } }, { required: ['x', 'y'] })],
  ['a hostile pattern', object({ a: { type: 'string', pattern: '^(a+)+$', default: `${'a'.repeat(50)}!` } })],
]

t.test('hostile schemas have forms, and their values are sent as data', { skip: noBrowser }, async (t) => {
  const page = await openWith(
    t,
    HOSTILE.map(([, schema]) => schema),
  )
  for (const [i, [what]] of HOSTILE.entries()) {
    await opened(page, page.names[i] as string)
    t.notMatch(await page.browser.text(), /Cannot display this/, what)
    t.equal(
      await page.browser.evaluate(`document.querySelectorAll('.try iframe, .try img, .try script, .try svg').length`),
      0,
      what,
    )
  }
  const special = page.names[HOSTILE.findIndex(([what]) => what === 'special keys')] as string
  await page.press(special, '.items')
  await page.fill('toString', '7')
  await page.press('Call', '.trying')
  await until(() => page.server.of('tools/call').length > 0, 'the call')
  t.match(page.server.of('tools/call').at(-1)?.body, /"__proto__":"x"/)
  t.equal(await page.browser.evaluate(`({}).x ?? Object.prototype.toString.call('').length`), 15)
  const slow = page.names[HOSTILE.findIndex(([what]) => what === 'a hostile pattern')] as string
  await page.press(slow, '.items')
  await page.press('Call', '.trying')
  await page.shows(/took longer than 2 seconds/)
  page.withoutMistakes()
})
