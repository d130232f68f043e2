import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import { Ajv } from 'ajv'
import fc from 'fast-check'
import t from 'tap'
import type { LegacyRevision } from '../../../src/mcp/protocol/eras.js'
import { clientOf, R03, R06, R11, R24, REVISIONS, resultFor, toolFor } from './client.js'

/** Revisions that have `outputSchema`. */
const STRUCTURED = [R06, R11] as const
const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

const withOutput = (schema: string) => `{"name":"x","inputSchema":{"type":"object"},"outputSchema":${schema}}`
const outputFor = (revision: LegacyRevision, schema: string) =>
  toolFor(clientOf(revision), withOutput(schema))?.match(/"outputSchema":(.*)\}$/s)?.[1]

/** What the client of the first SDK does with a schema: it compiles a validator, or fails and rejects the whole list. */
function validatorOf(schema: unknown): (value: unknown) => boolean {
  const validate = new AjvJsonSchemaValidator().getValidator(schema as { type: 'object' })
  return (value) => {
    try {
      return validate(value).valid
    } catch {
      // It refers to itself without descending into the value.
      return false
    }
  }
}

function compiles(schema: unknown): boolean {
  try {
    validatorOf(schema)
    return true
  } catch {
    return false
  }
}

const wrapped = (schema: string) => `{"type":"object","properties":{"result":${schema}},"required":["result"]}`

const outputs: [name: string, schema: string, told: string | undefined][] = [
  [
    'an object',
    '{"type":"object", "properties":{"a":{"const":1.0}}}',
    '{"type":"object", "properties":{"a":{"const":1.0}}}',
  ],
  [
    'an object with odd properties',
    '{"type":"object","properties":{"a":true,"b":false}}',
    '{"type":"object","properties":{"a":{},"b":{"not":{}}}}',
  ],
  [
    'nulls',
    '{"type":"object","$comment":null,"description":null}',
    '{"type":"object","$comment":null,"description":null}',
  ],
  [
    'a list',
    '{"type":"array","items":{"const":12345678901234567890}}',
    wrapped('{"type":"array","items":{"const":12345678901234567890}}'),
  ],
  ['a scalar', '{"type":"string"}', wrapped('{"type":"string"}')],
  ['anything', '{}', wrapped('{}')],
  ['an object by its properties alone', '{"properties":{"a":true}}', wrapped('{"properties":{"a":true}}')],
  ['an object or nothing', '{"type":["object","null"]}', wrapped('{"type":["object","null"]}')],
  [
    'one of several',
    '{"oneOf":[{"type":"object"},{"type":"null"}]}',
    wrapped('{"oneOf":[{"type":"object"},{"type":"null"}]}'),
  ],
  [
    'definitions and a dialect',
    `{"$schema":"${DIALECT}","type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}}`,
    `{"type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/$defs/a"}}},"required":["result"],"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}}`,
  ],
  [
    'a dialect that it uses',
    `{"$schema":"${DIALECT}","type":"array","prefixItems":[{"type":"string"}]}`,
    `{"$schema":"${DIALECT}","type":"object","properties":{"result":{"type":"array","prefixItems":[{"type":"string"}]}},"required":["result"]}`,
  ],
  [
    'itself',
    '{"type":"array","items":{"$ref":"#"}}',
    wrapped('{"type":"array","items":{"$ref":"#/properties/result"}}'),
  ],
  [
    'definitions that refer to the root',
    '{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],"$defs":{"a":{"type":"array","items":{"$ref":"#/anyOf/0"}}}}',
    `${wrapped('{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}').slice(0, -1)},"$defs":{"a":{"type":"array","items":{"$ref":"#/properties/result/anyOf/0"}}}}`,
  ],
  [
    'definitions of an older draft',
    '{"type":"array","items":{"$ref":"#/definitions/a~1b"},"definitions":{"a/b":{"type":"string"}}}',
    wrapped(
      '{"type":"array","items":{"$ref":"#/properties/result/definitions/a~1b"},"definitions":{"a/b":{"type":"string"}}}',
    ),
  ],
  [
    'references everywhere',
    '{"allOf":[{"if":{"$ref":"#/$defs/a"},"then":{"properties":{"$ref":{"$ref":"#/allOf/0/if"}}}},{"items":[{"not":{"$ref":"#/%24defs/a"}}]}],"$defs":{"a":{"type":"string"}}}',
    `${wrapped('{"allOf":[{"if":{"$ref":"#/$defs/a"},"then":{"properties":{"$ref":{"$ref":"#/properties/result/allOf/0/if"}}}},{"items":[{"not":{"$ref":"#/%24defs/a"}}]}]}').slice(0, -1)},"$defs":{"a":{"type":"string"}}}`,
  ],
  [
    'what only looks like a reference',
    '{"type":"array","const":[{"$ref":"#/a"}],"default":[{"$ref":"#/a"}],"enum":[{"$ref":"#/a"}]}',
    wrapped('{"type":"array","const":[{"$ref":"#/a"}],"default":[{"$ref":"#/a"}],"enum":[{"$ref":"#/a"}]}'),
  ],
  [
    'names out of a nightmare',
    '{"type":"array","items":{"properties":{"__proto__":{"$ref":"#/$defs/constructor"}}},"$defs":{"constructor":{},"__proto__":{"type":"string"}}}',
    `${wrapped('{"type":"array","items":{"properties":{"__proto__":{"$ref":"#/$defs/constructor"}}}}').slice(0, -1)},"$defs":{"constructor":{},"__proto__":{"type":"string"}}}`,
  ],
  ['an object with a name', '{"$id":"https://x/y","type":"object"}', '{"$id":"https://x/y","type":"object"}'],
  [
    'an object with an anchor',
    '{"type":"object","properties":{"p":{"$ref":"#a"}},"$defs":{"x":{"$anchor":"a"}}}',
    '{"type":"object","properties":{"p":{"$ref":"#a"}},"$defs":{"x":{"$anchor":"a"}}}',
  ],
  [
    'newer keywords',
    '{"type":"object","unevaluatedProperties":false,"properties":{"p":{"prefixItems":[{}]}}}',
    '{"type":"object","unevaluatedProperties":false,"properties":{"p":{"prefixItems":[{}]}}}',
  ],

  ['a list with a name', '{"$id":"https://x/y","type":"array"}', undefined],
  ['a list with an anchor', '{"type":"array","items":{"$anchor":"a"}}', undefined],
  ['a list with a dynamic reference', '{"type":"array","$dynamicAnchor":"a","items":{"$dynamicRef":"#a"}}', undefined],
  ['a name inside', '{"type":"object","properties":{"p":{"$id":"a"}}}', undefined],
  ['a name where nobody looks', '{"type":"object","x":{"y":[{"$id":"a"}]}}', undefined],
  ['somebody else', '{"type":"object","properties":{"p":{"$ref":"https://x/y"}}}', undefined],
  ['somebody else, deep inside', '{"type":"object","allOf":[{"not":{"items":{"$ref":"other.json#/a"}}}]}', undefined],
  ['a reference to nothing', '{"type":"object","properties":{"p":{"$ref":"#/$defs/q"}}}', undefined],
  ['a reference to no schema', '{"type":"object","properties":{"p":{"$ref":"#/required"}},"required":[]}', undefined],
  [
    'a reference to what every object has',
    '{"type":"object","properties":{"p":{"$ref":"#/properties/constructor"}}}',
    undefined,
  ],
  [
    'a reference with a bad percent sign',
    '{"type":"object","properties":{"p":{"$ref":"#/$defs/%"}},"$defs":{"%":{}}}',
    undefined,
  ],
  [
    'references in a circle',
    '{"type":"object","properties":{"p":{"$ref":"#/properties/q"},"q":{"$ref":"#/properties/p"}}}',
    undefined,
  ],
  ['a bad pattern', '{"type":"object","properties":{"p":{"pattern":"("}}}', undefined],
  ['a pattern of another dialect', '{"type":"object","properties":{"p":{"pattern":"(?i)a"}}}', undefined],
  ['a bad pattern for names', '{"type":"object","patternProperties":{"(":{}}}', undefined],
  ['a type that is none', '{"type":"object","properties":{"p":{"type":"any"}}}', undefined],
  ['what draft 4 did', '{"type":"object","properties":{"p":{"exclusiveMinimum":true}}}', undefined],
  ['what draft 3 did', '{"type":"object","properties":{"p":{"required":true}}}', undefined],
  ['a name of draft 4', '{"id":"x","type":"object"}', undefined],
  ['nothing to choose from', '{"type":"object","properties":{"p":{"enum":[]}}}', undefined],
  ['null for a schema', '{"type":"object","properties":{"p":null}}', undefined],
  ['nullable what', '{"type":"object","properties":{"p":{"nullable":true}}}', undefined],
  ['a schema that is none', '{"type":"object","items":5}', undefined],
  ['too deep', `{"type":"object","not":${'{"not":'.repeat(70)}{}${'}'.repeat(70)}}`, undefined],
  ['true', 'true', undefined],
  ['null', 'null', undefined],
]

t.test('an output schema is that of an object and compiles, or is removed', async (t) => {
  for (const [name, schema, told] of outputs) {
    for (const revision of STRUCTURED) {
      const client = clientOf(revision)
      const tool = toolFor(client, withOutput(schema))
      t.equal(outputFor(revision, schema), told, `${name} in ${revision}`)
      if (told === undefined) t.equal(tool, '{"name":"x","inputSchema":{"type":"object"}}', 'the tool stays')
      else t.ok(compiles(JSON.parse(told)), `${name} compiles`)
      const wraps = told?.includes('"properties":{"result":')
      t.same([...client.memory.wrapped], wraps ? ['x'] : [], name)
      t.same(client.losses, told === undefined && schema !== 'null' ? ['outputSchema'] : [], name)
    }
    for (const revision of [R24, R03] as const) {
      t.equal(outputFor(revision, schema), undefined, `${name} in ${revision}`)
      t.same([...clientOf(revision).memory.wrapped], [])
    }
  }
})

t.test('a result is wrapped if and only if its schema was', async (t) => {
  const call = (to: ReturnType<typeof clientOf>, value: string, name = 'x') =>
    JSON.parse(resultFor(to, 'tools/call', `{"content":[],"structuredContent":${value}}`, JSON.stringify({ name })))
  for (const revision of STRUCTURED) {
    const client = clientOf(revision)
    t.same(call(client, '{"a":1}').structuredContent, { a: 1 }, 'nothing has been said yet')

    const schema = outputFor(revision, '{"oneOf":[{"type":"object"},{"type":"array"}]}')
    toolFor(client, withOutput('{"oneOf":[{"type":"object"},{"type":"array"}]}'))
    const validate = validatorOf(JSON.parse(schema ?? ''))
    for (const value of ['{"a":1}', '[1]', '{"result":1}']) {
      const told = call(client, value)
      t.same(told.structuredContent, { result: JSON.parse(value) })
      t.ok(validate(told.structuredContent))
      t.same(told.content, [{ type: 'text', text: value }])
    }
    t.same(call(client, '{"a":1}', 'y').structuredContent, { a: 1 }, 'another tool')
    t.same(call(client, '{"a":1}', '__proto__').structuredContent, { a: 1 })
    t.equal(
      resultFor(client, 'tools/call', '{"content":[],"isError":true}', '{"name":"x"}'),
      '{"content":[],"isError":true}',
      'what is not there is not wrapped',
    )

    toolFor(client, withOutput('{"type":"object"}'))
    t.same(call(client, '{"a":1}').structuredContent, { a: 1 }, 'what was said last counts')
    toolFor(client, withOutput('{"type":"array"}'))
    toolFor(client, '{"name":"x","inputSchema":{"type":"object"}}')
    t.same([...client.memory.wrapped], [], 'and if that was nothing')
  }
})

t.test('the client of the first SDK lists every tool and calls them', async (t) => {
  const tools = [
    '{"name":"array","inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":{"type":"number"}}}',
    '{"name":"choice","title":null,"inputSchema":{"type":"object","properties":{"p":true}},"outputSchema":{"anyOf":[{"type":"object"},{"type":"null"}]}}',
    '{"name":"external","inputSchema":{},"outputSchema":{"type":"array","items":{"$ref":"https://x/y"}}}',
    '{"name":"pattern","execution":{"taskSupport":7},"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"p":{"pattern":"("}}}}',
  ]
  const results: Record<string, string> = {
    array: '{"structuredContent":[1]}',
    choice: '{"content":[],"structuredContent":{"a":1}}',
    external: '{"content":[],"structuredContent":null}',
    pattern: '{"content":[{"type":"hologram"}],"structuredContent":{"p":"("}}',
  }
  for (const revision of STRUCTURED) {
    const to = clientOf(revision)
    const [near, far] = InMemoryTransport.createLinkedPair()
    far.onmessage = (message) => {
      if (!('id' in message) || !('method' in message)) return
      const { name } = (message.params ?? {}) as { name?: string }
      const answers: Record<string, () => string> = {
        initialize: () =>
          `{"protocolVersion":"${revision}","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1","icons":[{}]}}`,
        'tools/list': () => `{"tools":[${tools.join(',')}]}`,
        'tools/call': () => results[name ?? ''] ?? '{}',
      }
      const result = resultFor(to, message.method, answers[message.method]?.() ?? '{}', JSON.stringify(message.params))
      far.send({ jsonrpc: '2.0', id: message.id, result: JSON.parse(result) }).catch(t.fail)
    }
    const client = new Client({ name: 'c', version: '1' })
    await client.connect(near)
    t.same(
      (await client.listTools()).tools.map(({ name }) => name),
      ['array', 'choice', 'external', 'pattern'],
    )
    const call = async (name: string) => (await client.callTool({ name, arguments: {} })).structuredContent
    t.same(await call('array'), { result: [1] }, revision)
    t.same(await call('choice'), { result: { a: 1 } })
    t.same(await call('external'), { result: null })
    t.same(await call('pattern'), { p: '(' })
    await client.close()
  }
})

t.test('lists a tool beyond the remembered ones without its output schema', async (t) => {
  const client = clientOf(R11)
  const tools = Array.from({ length: 2_001 }, (_, i) => ({
    name: `t${i}`,
    inputSchema: { type: 'object' },
    outputSchema: { type: 'array' },
  }))
  const told = JSON.parse(resultFor(client, 'tools/list', JSON.stringify({ tools }))).tools as object[]
  t.equal(client.memory.wrapped.size, 2_000)
  t.same(told.map((tool) => 'outputSchema' in tool).lastIndexOf(true), 1_999)
  t.same(client.losses, ['outputSchema'])
})

const inputs: [name: string, schema: string, told: string][] = [
  [
    'an object',
    '{"type":"object","properties":{"p":{"type":"string"}}}',
    '{"type":"object","properties":{"p":{"type":"string"}}}',
  ],
  ['no type', '{"properties":{}}', '{"properties":{},"type":"object"}'],
  ['another type', '{"type":"array"}', '{"type":"object"}'],
  ['types', '{"type":["object"]}', '{"type":"object"}'],
  [
    'booleans',
    '{"type":"object","properties":{"p":true,"q":false}}',
    '{"type":"object","properties":{"p":{},"q":{"not":{}}}}',
  ],
  [
    'booleans further inside',
    '{"type":"object","properties":{"p":{"items":true}}}',
    '{"type":"object","properties":{"p":{"items":true}}}',
  ],
  ['nulls', '{"type":"object","properties":null,"required":null}', '{"type":"object"}'],
  ['what draft 3 did', '{"type":"object","required":true}', '{"type":"object"}'],
  [
    'newer keywords',
    '{"type":"object","$defs":{"a":{"$anchor":"b"}},"oneOf":[],"if":{},"prefixItems":[]}',
    '{"type":"object","$defs":{"a":{"$anchor":"b"}},"oneOf":[],"if":{},"prefixItems":[]}',
  ],
  [
    'what no client compiles',
    '{"type":"object","properties":{"p":{"$ref":"https://x/y","pattern":"("}}}',
    '{"type":"object","properties":{"p":{"$ref":"https://x/y","pattern":"("}}}',
  ],
  ['none', '5', '{"type":"object"}'],
  ['null', 'null', '{"type":"object"}'],
]

t.test('an input schema is that of an object, and its properties have objects for schemas', async (t) => {
  for (const [name, schema, told] of inputs) {
    for (const revision of REVISIONS) {
      t.equal(
        toolFor(clientOf(revision), `{"name":"x","inputSchema":${schema}}`),
        `{"name":"x","inputSchema":${told}}`,
        name,
      )
    }
  }
  t.equal(toolFor(clientOf(R11), '{"name":"x"}'), '{"name":"x","inputSchema":{"type":"object"}}')
})

t.test('with strictness, schemas name their dialect where it is not the default', async (t) => {
  for (const revision of REVISIONS) {
    const client = clientOf(revision, { strict: true })
    const { inputSchema, outputSchema } = JSON.parse(toolFor(client, withOutput('{"type":"array"}')) ?? '')
    t.equal(inputSchema.$schema, revision === R11 ? undefined : DIALECT, revision)
    t.equal(outputSchema?.$schema, revision === R06 ? DIALECT : undefined, revision)
    const own = '{"name":"x","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}}'
    t.equal(toolFor(client, own), own, 'unless they say it already')
  }
})

const idle = (rest: string, dialect = DIALECT) => `{"$schema":"${dialect}","type":"object"${rest}}`

t.test('a schema does not name 2020-12 if it uses none of its features', async (t) => {
  const plain = [
    '',
    ',"properties":{"a":{"type":"string","const":1.0}},"required":["a"],"additionalProperties":false',
    ',"properties":{"a":{"$ref":"#/$defs/b","description":"d"}},"$defs":{"b":{"anyOf":[{"type":"null"}]}}',
  ]
  const needing = [
    ',"properties":{"a":{"prefixItems":[{"type":"string"}]}}',
    ',"properties":{"a":{"$ref":"#/$defs/b","minLength":1}},"$defs":{"b":{"type":"string"}}',
    ',"dependentRequired":{"a":["b"]}',
    ',"unevaluatedProperties":false',
    ',"$defs":{"b":{"$anchor":"b"}}',
  ]
  const told = (schema: string, client = clientOf(R11)) => toolFor(client, `{"name":"x","inputSchema":${schema}}`)
  const tool = (schema: string) => `{"name":"x","inputSchema":${schema}}`
  for (const rest of plain) {
    for (const revision of REVISIONS) {
      t.equal(told(idle(rest), clientOf(revision)), tool(`{"type":"object"${rest}}`), `${rest} in ${revision}`)
      const strict = clientOf(revision, { strict: true })
      t.equal(told(idle(rest), strict), tool(idle(rest)), `${rest} in ${revision}, strictly`)
    }
    t.equal(told(idle(rest, `${DIALECT}#`)), tool(`{"type":"object"${rest}}`))
    t.doesNotThrow(() => new Ajv().compile(JSON.parse(`{"type":"object"${rest}}`)), 'a validator of draft 7 takes it')
    t.throws(() => new Ajv().compile(JSON.parse(idle(rest))), 'which it would not have done')
  }
  for (const rest of needing) t.equal(told(idle(rest)), tool(idle(rest)), rest)
  const draft7 = idle('', 'http://json-schema.org/draft-07/schema#')
  t.equal(told(draft7), tool(draft7), 'other dialects stay')
})

t.test('removes execution and null hints, and loses nothing with them', async (t) => {
  for (const revision of REVISIONS) {
    const client = clientOf(revision)
    t.equal(
      toolFor(
        client,
        '{"name":"x","execution":{"taskSupport":"required"},"annotations":{"readOnlyHint":true,"title":null},"inputSchema":{"type":"object"}}',
      ),
      '{"name":"x","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}',
    )
    t.same(client.losses, [])
  }
})

const names = fc.constantFrom('a', 'b', '$ref', 'type', 'a/b', '~', '%', 'é', '__proto__', 'constructor', '(')
const references = fc.constantFrom(
  ...['#', '#/$defs/a', '#/$defs/b', '#/properties/a', '#/properties/b/items', '#a', 'http://x/y', 'a', '#/%24defs/a'],
  ...['#/$defs/a~1b', '#/x-y', '#/definitions/a', '#/anyOf/0', '#/allOf/1/properties/a', '#%', '#/$defs/%25'],
)
const among = (keywords: string[], ...values: unknown[]) =>
  fc.tuple(fc.constantFrom(...keywords), fc.constantFrom(...values))
const { schema } = fc.letrec<{ schema: unknown; object: object }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, depthSize: 'medium' },
    fc.constantFrom<unknown>({ type: 'string' }, true, false, {}),
    tie('object'),
  ),
  object: fc
    .array(
      fc.oneof(
        fc.tuple(fc.constant('$ref'), references),
        among(['type'], 'string', 'object', 'array', ['string', 'null'], 'null', 'any', 5),
        among(['$anchor', '$dynamicAnchor'], 'a', 'b', 'a b', 5),
        among(['$id'], 'http://x/y', 'a.json', '#a', 5),
        among(['pattern', 'format', 'title', '$comment', 'id'], '(', '\\d', '\\-', 'uri', 5),
        among(['$schema'], 'http://json-schema.org/draft-07/schema#', DIALECT),
        among(['required', 'enum', 'examples'], [], ['a'], [1], true, null),
        among(['minLength', 'maxItems', 'exclusiveMinimum', 'multipleOf', 'uniqueItems', 'nullable'], 1, -1, '1', true),
        fc.tuple(fc.constantFrom('const', 'default'), fc.jsonValue({ maxDepth: 1 })),
        fc.tuple(
          fc.constantFrom('items', 'not', 'if', 'then', 'additionalProperties', 'contains', 'propertyNames', 'x-y'),
          tie('schema'),
        ),
        fc.tuple(
          fc.constantFrom('items', 'anyOf', 'allOf', 'oneOf', 'prefixItems'),
          fc.array(tie('schema'), { maxLength: 3 }),
        ),
        fc.tuple(
          fc.constantFrom('properties', '$defs', 'definitions', 'patternProperties', 'dependencies', 'x-y'),
          fc.array(fc.tuple(names, tie('schema')), { maxLength: 3 }).map((members) => Object.fromEntries(members)),
        ),
      ),
      { maxLength: 4 },
    )
    .map((members) => Object.fromEntries(members)),
}))

t.test('no listed output schema costs the client of the first SDK its list', async () => {
  const warn = console.warn
  console.warn = () => {}
  fc.assert(
    fc.property(schema, fc.boolean(), (generated, object) => {
      const text = JSON.stringify(object ? { ...(generated as object), type: 'object' } : generated)
      const told = outputFor(R11, text)
      return told === undefined || compiles(JSON.parse(told))
    }),
    { numRuns: 3_000 },
  )
  console.warn = warn
})

t.test('a wrapped schema says of a wrapped value what the schema says of the value', async () => {
  const warn = console.warn
  console.warn = () => {}
  fc.assert(
    fc.property(schema, fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 5 }), (generated, values) => {
      const text = JSON.stringify(generated)
      const told = outputFor(R11, text)
      if (told === undefined || told === text || !told.includes('"required":["result"]')) return true
      const [before, after] = [validatorOf(JSON.parse(text)), validatorOf(JSON.parse(told))]
      return [...values, 'a', {}, [], { a: 'b' }].every((value) => before(value) === after({ result: value }))
    }),
    { numRuns: 3_000 },
  )
  console.warn = warn
})
