/** Forms of schemas: every schema has one, and what a person puts in comes out exactly. */

import { createRequire } from 'node:module'
import { execPath } from 'node:process'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t from 'tap'
import { checked } from '../../src/inspector/check/checked.js'
import { rowsOf } from '../../src/inspector/page/try/rows.js'
import { type Draft, draftOf, filled, readDraft, shapeOf, type Wrong } from '../../src/inspector/page/try/shape.js'
import { REAL } from '../policy/portable/real.js'

/** The value of a form that nobody has touched, or of one with a value, and what is wrong. */
function read(schema: unknown, value?: unknown) {
  const shape = shapeOf(schema, schema)
  const wrong: Wrong[] = []
  return { value: readDraft(shape, schema, draftOf(shape, schema, true, value), true, wrong), wrong }
}

const TREE = {
  type: 'object',
  properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
  required: ['name'],
}

t.test('a value that fits comes back as it is', async (t) => {
  const rows: [schema: object, value: unknown][] = [
    [
      { type: 'object', properties: { a: { type: 'string' }, b: { type: 'integer' } } },
      { a: 'x', b: 3 },
    ],
    [{ type: 'object', properties: { a: { enum: ['x', 2, null] } } }, { a: null }],
    [{ type: 'object', properties: { a: { oneOf: [{ const: 'r', title: 'Red' }, { const: 'g' }] } } }, { a: 'g' }],
    [{ type: 'object', properties: { a: { type: ['string', 'null'] } } }, { a: 'x' }],
    [
      { type: 'object', properties: { a: { anyOf: [{ type: 'string' }, { type: 'object', properties: {} }] } } },
      { a: { b: [1] } },
    ],
    [TREE, { name: 'a', children: [{ name: 'b', children: [] }] }],
    [{ type: 'object', properties: { a: true } }, { a: { b: [1, 'x', null] } }],
    [{ type: 'object', properties: { a: { $ref: 'https://example.com/x' } } }, { a: [1] }],
    [{ $ref: '#/$defs/a', $defs: { a: { type: 'object', properties: { b: { type: 'boolean' } } } } }, { b: false }],
    [
      { type: 'object', properties: { a: { type: 'string' } } },
      { a: 'x', unknown: { b: 1 } },
    ],
    [
      { type: 'object', properties: JSON.parse('{"__proto__":{"type":"string"},"constructor":{"type":"string"}}') },
      JSON.parse('{"__proto__":"x","constructor":"y"}'),
    ],
  ]
  for (const [schema, value] of rows) {
    const found = read(schema, value)
    t.same(found.wrong, [], JSON.stringify(schema))
    t.equal(JSON.stringify(found.value), JSON.stringify(value))
  }
  t.equal(({} as Record<string, unknown>)['x'], undefined)
})

t.test('an untouched form has defaults, required members, and nothing else', async (t) => {
  const schema = {
    type: 'object',
    properties: {
      text: { type: 'string' },
      given: { type: 'string', default: 'x' },
      many: { type: 'array', items: { type: 'string' } },
      inner: { type: 'object', properties: { n: { type: 'number', default: 2 } } },
      flag: { type: 'boolean' },
    },
    required: ['text'],
  }
  t.same(read(schema), { value: { text: '', given: 'x' }, wrong: [] })
  t.same(read({ type: 'object' }).value, {})
  t.same(read({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }).wrong, [
    { at: '/n', why: 'is required' },
  ])
})

t.test('numbers that cannot be sent exactly, and text that is not JSON, are mistakes', async (t) => {
  const rows: [schema: object, text: string, why: RegExp][] = [
    [{ type: 'integer' }, '12345678901234567890', /sent exactly/],
    [{ type: 'integer' }, '1.5', /whole number/],
    [{ type: 'number' }, 'many', /not a number/],
    [{ type: 'number' }, '1e999', /not a number/],
    [{}, '{"a":', /not JSON/],
    [{}, '{"a":[12345678901234567890]}', /sent exactly/],
  ]
  for (const [schema, text, why] of rows) {
    const wrong: Wrong[] = []
    readDraft(shapeOf(schema, schema), schema, { text }, true, wrong, '/a')
    t.match(wrong, [{ at: '/a', why }], text)
  }
})

t.test('a default of the wrong type is sent as it is shown, or is wrong', async (t) => {
  const rows: [kind: object, initial: unknown, draft: Draft, sent: unknown][] = [
    [{ type: 'object' }, 'x', { text: '"x"' }, 'x'],
    [{ type: 'array' }, 3, { text: '3' }, 3],
    [{ type: 'boolean' }, 'yes', { text: '"yes"' }, 'yes'],
    [{ enum: ['a'] }, 'b', { text: '"b"' }, 'b'],
    [{ anyOf: [{ type: 'string' }, { type: 'integer' }] }, 3, { alternative: 1, draft: { text: '3' } }, 3],
    [{ anyOf: [{ type: 'string' }] }, [1], { text: '[\n  1\n]' }, [1]],
    [{ type: 'integer' }, 'x', { text: '"x"' }, Number.NaN],
  ]
  for (const [kind, initial, draft, sent] of rows) {
    const schema = { type: 'object', properties: { a: { ...kind, default: initial } } }
    const shape = shapeOf(schema, schema)
    const name = JSON.stringify(schema.properties.a)
    t.same((draftOf(shape, schema, true) as { members: Map<string, Draft> }).members.get('a'), draft, name)
    const { value, wrong } = read(schema)
    t.same(value, { a: sent }, name)
    t.equal(wrong.length, Number.isNaN(sent) ? 1 : 0, name)
  }
})

t.test('schemas without an end, with 500 properties and with nonsense have forms', async (t) => {
  const wide = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`p${i}`, { type: 'string' }]))
  const rows: unknown[] = [
    { type: 'object', properties: { self: { $ref: '#' } }, required: ['self'] },
    { $ref: '#' },
    { allOf: [{ $ref: '#' }] },
    { $ref: '#/a/b~1c' },
    { $ref: '#/%' },
    { type: 'object', properties: wide },
    { type: 'object', properties: [] },
    { type: 7, enum: 'x', oneOf: [], required: 'no' },
    { enum: [] },
    { type: 'array', items: [{ type: 'string' }] },
    null,
    true,
    [],
    'text',
  ]
  for (const schema of rows) t.doesNotThrow(() => read(schema), JSON.stringify(schema).slice(0, 60))
  t.equal(shapeOf({ type: 'object', properties: wide }, {}).members?.length, 500)
})

t.test('a reference to an anchor is not followed, and does not lead to the whole schema', async (t) => {
  const root = {
    type: 'object',
    properties: { a: { $ref: '#name' }, b: { $ref: '#/properties/c' }, c: { type: 'string' } },
  }
  t.equal(shapeOf(root.properties.a, root).kind, 'json')
  t.equal(shapeOf(root.properties.b, root).kind, 'text')
})

t.test('every tool of real servers has a form', async (t) => {
  const resolve = createRequire(import.meta.url).resolve
  const servers = [
    [resolve('@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'],
    [resolve('@modelcontextprotocol/server-filesystem/dist/index.js'), t.testdir({})],
    [resolve('@modelcontextprotocol/server-memory/dist/index.js')],
  ]
  for (const args of servers) {
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StdioClientTransport({ command: execPath, args, stderr: 'ignore' }))
    const { tools } = await client.listTools()
    await client.close()
    t.ok(tools.length > 0)
    for (const { name, inputSchema } of tools) {
      const shape = shapeOf(inputSchema, inputSchema)
      t.equal(shape.kind, 'object', name)
      const draft: Draft = filled(shape, inputSchema, {})
      t.doesNotThrow(() => readDraft(shape, inputSchema, draft, true, []), name)
    }
  }
})

t.test('a schema is a table of its values, with an end', async (t) => {
  const schema = {
    type: 'object',
    required: ['a'],
    properties: {
      a: { type: 'string', description: 'the first', minLength: 1, default: 'x' },
      b: { type: 'array', items: { type: 'object', properties: { c: { enum: ['r', 'g'] } } } },
      d: { anyOf: [{ type: 'string' }, { type: 'object', properties: { e: { type: 'integer' } } }] },
      self: { $ref: '#' },
    },
  }
  const { rows, cut } = rowsOf(schema)
  t.ok(cut, 'it refers to itself')
  const at = (name: string) => rows.find((row) => row.at === name)
  t.same(at('a'), {
    at: 'a',
    type: 'string',
    required: true,
    rules: ['default: "x"', 'minLength: 1'],
    about: 'the first',
  })
  t.match([at('b'), at('b[].c'), at('d'), at('d (2).e'), at('self.self.a')], [
    { type: 'array of object', required: false },
    { type: 'r | g' },
    { type: 'one of 2 forms' },
    { type: 'integer' },
    { required: true },
  ] as never)
  for (const one of [null, true, [], 7, { properties: { __proto__: 1 } }, { anyOf: [{ anyOf: [{ $ref: '#' }] }] }])
    t.doesNotThrow(() => rowsOf(one))
})

t.test('the schemas of published servers have forms and tables, and can be checked', async (t) => {
  t.equal(REAL.length, 270)
  for (const { name, schema } of REAL) {
    t.equal(shapeOf(schema, schema).kind, 'object', name)
    t.doesNotThrow(() => read(schema), name)
    t.doesNotThrow(() => rowsOf(schema), name)
    t.not(checked(schema, {}).ok, null, name)
  }
})
