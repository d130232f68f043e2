/** Checks of values before they are sent: what is wrong and where, and that no schema takes the bridge's time, memory or network. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { checked } from '../../src/inspector/check/checked.js'
import { check } from '../../src/inspector/check/checks.js'
import { Inspector } from '../../src/inspector/inspector.js'
import { startBridge } from '../support/bridge.js'
import { TOKEN } from '../support/inspector.js'
import { legacyStdio } from '../support/legacy-stdio.js'

const OBJECT = {
  type: 'object',
  properties: {
    a: { type: 'integer', minimum: 1 },
    'b/c': { enum: ['x', 'y'] },
    d: { type: 'array', items: { type: 'string' } },
  },
  required: ['a'],
  additionalProperties: false,
}

t.test('what is wrong is said at its place', async (t) => {
  const rows: [value: unknown, at: string, message: RegExp][] = [
    [{}, '/a', /^is required$/],
    [{ a: 1.5 }, '/a', /integer/],
    [{ a: 0 }, '/a', />= 1/],
    [{ a: 1, 'b/c': 'z' }, '/b~1c', /\["x","y"\]/],
    [{ a: 1, d: ['x', 2] }, '/d/1', /string/],
    [{ a: 1, e: 1 }, '/e', /not in the schema/],
    [7, '', /object/],
  ]
  for (const [value, at, message] of rows) t.match(checked(OBJECT, value), { ok: false, errors: [{ at, message }] })
  t.same(checked(OBJECT, { a: 1, 'b/c': 'x', d: [] }), { ok: true })
})

t.test('schemas of each dialect are checked as what they are', async (t) => {
  const tuple = { type: 'array', items: [{ type: 'string' }] }
  t.match(checked({ $schema: 'http://json-schema.org/draft-07/schema#', ...tuple }, [1]), { ok: false })
  t.match(checked({ type: 'array', prefixItems: [{ type: 'string' }] }, [1]), { ok: false })
  t.match(checked({ $schema: 'https://json-schema.org/draft/2020-12/schema', const: 1 }, 1), { ok: true })
  t.match(checked({ $schema: 'https://example.com/own', type: 'string' }, 'x'), { ok: true })
  t.match(checked({ type: 'string', pattern: '^[\\w\\-]+$' }, 'a-b'), { ok: true }, 'a pattern that Unicode forbids')
  t.match(checked({ type: 'string', 'x-own': 1, format: 'never-heard-of' }, 'x'), { ok: true })
  const tree = { type: 'object', properties: { child: { $ref: '#' } }, required: ['name'] }
  t.match(checked(tree, { name: 1, child: {} }), { ok: false, errors: [{ at: '/child/name' }] })
  t.match(checked({ $ref: '#/$defs/a', $defs: { a: { type: 'string' } } }, 1), { ok: false })
  t.match(checked(true, 1), { ok: true })
  t.match(checked(false, 1), { ok: false })
})

t.test('a schema that is not valid is a reason, not an error', async (t) => {
  const deep = JSON.parse(`${'{"items":'.repeat(5_000)}{}${'}'.repeat(5_000)}`) as object
  const rows: [schema: unknown, why: RegExp][] = [
    [{ type: 'nonsense' }, /not valid/],
    [{ type: 'string', pattern: '(' }, /not valid/],
    [{ $ref: '#/nowhere' }, /not in it/],
    [{ required: 'a' }, /not valid/],
    [deep, /deeper/],
    [null, /neither/],
    ['x', /neither/],
    [[], /neither/],
    [{ $id: '%%%', type: 'string' }, /valid|not in it/],
  ]
  for (const [schema, why] of rows) {
    const answer = checked(schema, 1)
    if (answer.ok === null) t.match(answer.why, why)
    else t.match(schema, { $id: '%%%' })
  }
})

t.test('keys that are special in JavaScript are only keys, and no text of a schema runs', async (t) => {
  t.match(checked({ type: 'object', required: ['toString'] }, {}), { ok: false, errors: [{ at: '/toString' }] })
  t.match(checked(JSON.parse('{"properties":{"__proto__":{"type":"string"}}}'), {}), { ok: true })
  t.match(checked({ properties: { constructor: { type: 'string' } } }, {}), { ok: true })
  const texts = [
    '"];globalThis.ran=1;//',
    '`${globalThis.ran=1}`',
    "'+(globalThis.ran=1)+'",
    '*/globalThis.ran=1;/*',
    '\u2028globalThis.ran=1',
    '\\"];globalThis.ran=1;//',
  ]
  const keywords = [
    'title',
    '$comment',
    '$anchor',
    'format',
    'pattern',
    'const',
    '$id',
    '$ref',
    'contentMediaType',
    'x-own',
  ]
  for (const text of texts) {
    for (const keyword of keywords)
      checked({ [keyword]: text, properties: { [text]: { [keyword]: text } } }, { [text]: text })
    checked({ required: [text], properties: { [text]: { enum: [text] } }, patternProperties: { [text]: {} } }, {})
    checked(
      { dependentRequired: { [text]: [text] }, $defs: { [text]: {} }, additionalProperties: false },
      { [text]: 1 },
    )
  }
  t.notOk('ran' in globalThis)
  t.notOk('ran' in {})
})

t.test('a schema that takes too much time or memory ends alone', async (t) => {
  const slow = { schema: { type: 'string', pattern: '^(a+)+$' }, value: `${'a'.repeat(60)}!` }
  const both = await Promise.all([
    check(JSON.stringify(slow)),
    check(JSON.stringify(slow)),
    check(JSON.stringify({ schema: OBJECT, value: {} })),
  ])
  t.match(both, [{ ok: null, why: /longer than 2 seconds/ }, { ok: null, why: /longer/ }, { ok: false }])
  // Each level asks for the one below it ten times.
  const levels = Array.from({ length: 40 }, (_, i) => [
    `l${i}`,
    { allOf: Array.from({ length: 10 }, () => ({ $ref: `#/$defs/l${i + 1}` })) },
  ])
  const bomb = { $ref: '#/$defs/l0', $defs: { ...Object.fromEntries(levels), l40: { type: 'string' } } }
  t.match(await check(JSON.stringify({ schema: bomb, value: 1 })), { ok: null })
})

t.test('no other document is read', async (t) => {
  let asked = 0
  const server = createServer((_request, response) => {
    asked++
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/schema.json`
  for (const schema of [
    { $ref: url },
    { $schema: url },
    { $id: url, $ref: 'other.json' },
    { $dynamicRef: url },
    { $ref: 'file:///etc/passwd' },
  ])
    t.match(await check(JSON.stringify({ schema, value: 1 })), { ok: '$schema' in schema ? true : null })
  t.equal(asked, 0)
})

async function start(t: Test, more: { tryToken?: string } = {}) {
  const inspector = new Inspector(
    { token: TOKEN, payloads: 'all', callsPerSecond: 500, hide: [], try: true, ...more },
    { version: '0.0.0', log: pino({ level: 'silent' }), folder: undefined, mayTry: true },
  )
  const legacy = legacyStdio(t)
  const { bridge } = await startBridge(t, legacy.server, {}, { inspector, recorder: inspector.recorder })
  return (body: string, headers: Record<string, string> = {}) =>
    fetch(`${bridge.inspectUrl}/check`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
    })
}

t.test('the route answers each schema with 200, and only bad requests with an error', async (t) => {
  const send = await start(t)
  const good = JSON.stringify({ schema: OBJECT, value: {} })
  t.match(await (await send(good)).json(), { ok: false, errors: [{ at: '/a', message: 'is required' }], more: 0 })
  t.match(await (await send('{"schema":{"type":"x"},"value":null}')).json(), { ok: null })
  const rows: [body: string, status: number, headers?: Record<string, string>][] = [
    ['{', 400],
    ['[]', 400],
    ['{"schema":{}}', 400],
    ['{"value":{}}', 400],
    [JSON.stringify({ schema: {}, value: 'x'.repeat(3 * 1024 * 1024) }), 413],
    [good, 415, { 'content-type': 'text/plain' }],
    [good, 401, { authorization: '' }],
    [good, 403, { origin: 'https://evil.example' }],
  ]
  for (const [body, status, headers] of rows) t.equal((await send(body, headers)).status, status, body.slice(0, 40))
})

t.test('who may only look cannot have values checked', async (t) => {
  const send = await start(t, { tryToken: 'a-token-that-may-call' })
  t.equal((await send('{"schema":{},"value":1}')).status, 403)
})
