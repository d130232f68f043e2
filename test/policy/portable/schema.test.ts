/** The portable form of schemas: laws over random schemas, and the schemas of public bug reports. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import tap from 'tap'
import { unlimited } from '../../../src/base/limits/memory.js'
import { type Payload, parseObject, value, write } from '../../../src/base/rpc/splice.js'
import { original } from '../../../src/middle/policy/portable/arguments.js'
import { SAID } from '../../../src/middle/policy/portable/described-keywords.js'
import { NotPortable } from '../../../src/middle/policy/portable/forms.js'
import { portable as portableTools } from '../../../src/middle/policy/portable/portable.js'
import { type Mapping, type Portable, portableSchema } from '../../../src/middle/policy/portable/schema.js'
import { callOf, result } from '../../support/calls.js'
import { REAL } from './real.js'
import { faults, valuesOf } from './values.js'

type Schema = Record<string, unknown>

const names = fc.constantFrom('a', 'b', 'c', 'with space', 'ünder', '$x', 'toString')
const scalars: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<Schema>(
    ...[{ type: 'string' }, { type: 'number' }, { type: 'integer' }, { type: 'boolean' }, { type: 'null' }, {}],
    ...[{ type: ['string', 'null'] }, { type: 'string', nullable: true }, { type: ['integer', 'boolean'] }],
    ...[
      { const: 'x' },
      { const: 3 },
      { const: null },
      { enum: ['p', 'q', ''] },
      { enum: [1, 2, 3] },
      { enum: [1, 5, 'z', null] },
    ],
    ...[
      { type: 'integer', minimum: 1.5, maximum: 7 },
      { type: 'integer', exclusiveMinimum: 2, exclusiveMaximum: 9 },
    ],
    ...[
      { minimum: 2 },
      { type: 'string', minLength: 1, maxLength: 4 },
      { enum: [true], type: ['boolean', 'string'], default: true },
    ],
    ...[
      { $ref: '#/$defs/tree' },
      { $ref: '#/$defs/leaf' },
      { $ref: '#/$defs/tree', description: 'a tree' },
      { $ref: '#' },
    ],
  ),
  fc.boolean(),
)
const schemas = fc.letrec<{ schema: unknown; object: Schema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalars,
    tie('object'),
    fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.constantFrom(0, 1) }),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }), description: fc.constant('one of') }),
    fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
  ),
  object: fc
    .record({
      properties: fc.dictionary(names, tie('schema'), { maxKeys: 3 }),
      required: fc.uniqueArray(names, { maxLength: 2 }),
      closed: fc.boolean(),
      more: fc.option(
        fc.record({
          key: fc.constantFrom('anyOf', 'oneOf', 'allOf'),
          all: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
        }),
        { nil: undefined },
      ),
    })
    .map(({ properties, required, closed, more }) => ({
      type: 'object',
      properties: { ...properties },
      required,
      ...(closed && { additionalProperties: false }),
      ...(more && { [more.key]: more.all }),
    })),
}))

/** The root of a tool's schema, with definitions that are recursive. */
const roots = fc
  .tuple(
    fc.oneof(schemas.object, fc.record({ anyOf: fc.array(schemas.object, { minLength: 2, maxLength: 3 }) })),
    schemas.schema,
  )
  .map(([root, leaf]) => ({
    ...(typeof root === 'object' ? root : {}),
    $defs: {
      leaf,
      tree: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          children: { type: 'array', items: { $ref: '#/$defs/tree' } },
          up: { $ref: '#/$defs/tree' },
        },
        required: ['name'],
      },
    },
  }))

function portable(schema: unknown) {
  try {
    return portableSchema(schema)
  } catch (error) {
    if (error instanceof NotPortable) return error
    throw error
  }
}

const ajv = new Ajv2020({
  strict: false,
  ownProperties: true,
  validateFormats: false,
  allowUnionTypes: true,
  logger: false,
})
/** OpenAPI's `nullable` is no keyword of JSON Schema. */
const withNull = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema), (_key, value) => {
    const { nullable, ...others } = (value ?? {}) as Schema
    return nullable === true ? { ...others, type: [others['type'], 'null'] } : value
  })

/** What is wrong with a value. A schema that is a reference to itself has no end for Ajv, when it is compiled or asked. */
function faultOf(schema: Schema, value: unknown): string | undefined {
  try {
    const check = ajv.compile(schema)
    return check(value) === true ? undefined : ajv.errorsText(check.errors)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

tap.test('a value that fits the portable schema fits the original, mapped back', async (t) => {
  const counts = { portable: 0, unchanged: 0, refused: 0, overlapping: 0, large: 0 }
  fc.assert(
    fc.property(roots, fc.nat(), (schema, seed) => {
      const made = portable(schema)
      if (made instanceof NotPortable) return void counts.refused++
      // Of forms that overlap the first is kept: a value that also fits another one fits none for a strict server.
      if (made?.notes.some((note) => note.startsWith('oneOf'))) return void counts.overlapping++
      counts[made ? 'portable' : 'unchanged']++
      const { schema: shown, mapping } = made ?? { schema: schema as Schema, mapping: undefined }
      if (JSON.stringify(shown).length > 5_000) return void counts.large++
      const asJsonSchema = withNull(schema) as Schema
      for (const value of fc.sample(valuesOf(shown), { numRuns: 5, seed })) {
        const args = parseObject(JSON.stringify(value))
        const mapped = JSON.parse(write((mapping && original(args, mapping)) ?? args)) as unknown
        const fault = faultOf(asJsonSchema, mapped)
        if (fault !== undefined)
          throw new Error(`${JSON.stringify(value)} → ${JSON.stringify(mapped)}: ${fault}\n${JSON.stringify(shown)}`)
      }
    }),
    { numRuns: 1_000, endOnFailure: true },
  )
  t.ok(counts.portable > 100, JSON.stringify(counts))
})

tap.test('a portable schema has only what every API takes, and is its own portable form', async () => {
  fc.assert(
    fc.property(roots, (schema) => {
      const made = portable(schema)
      if (made instanceof NotPortable) return
      const shown = made?.schema ?? schema
      const bad = faults(shown)
      if (bad.length > 0) throw new Error(`${bad.join('\n')}\n${JSON.stringify(shown)}`)
      const again = portable(shown)
      if (again !== undefined) throw new Error(`${JSON.stringify(shown)}\n→ ${JSON.stringify(again)}`)
    }),
    { numRuns: 1_000, endOnFailure: true },
  )
})

const object = (properties: Schema, more: Schema = {}): Schema => ({ type: 'object', properties, ...more })

/** Schemas of public reports, and what becomes of them. */
const REPORTED: readonly [claim: string, schema: Schema, made: Schema | string | undefined][] = [
  ['what is portable stays', object({ a: { type: 'string', title: 'A' } }), undefined],
  [
    'a positive integer of Zod',
    object({ n: { type: 'integer', exclusiveMinimum: 0, default: 5 } }),
    object({ n: { type: 'integer', description: 'Default: 5.', minimum: 1 } }),
  ],
  [
    'an optional text of Pydantic',
    object({ q: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null } }),
    object({ q: { type: 'string', description: 'Default: null.' } }),
  ],
  [
    'an enumeration of numbers',
    object({ n: { enum: [1, 2, 3] } }),
    object({ n: { type: 'integer', minimum: 1, maximum: 3 } }),
  ],
  [
    'an enumeration with an empty text',
    object({ by: { type: 'string', enum: ['', 'user'] } }),
    object({ by: { type: 'string', enum: ['user'] } }),
  ],
  [
    'a list without items',
    object({ l: { type: 'array', items: { type: 'string', format: 'uri' } } }),
    object({ l: { type: 'array', items: { type: 'string', description: 'Format: uri.' } } }),
  ],
  [
    'numbers of an enumeration that are within bounds',
    object({ n: { type: 'integer', enum: [1, 5, 9], minimum: 4, exclusiveMaximum: 9 } }),
    object({ n: { type: 'integer', minimum: 5, maximum: 5 } }),
  ],
  [
    'members of which one has to be there',
    object({ a: { type: 'string' }, b: { type: 'string' } }, { anyOf: [{ required: ['a'] }, { required: ['b'] }] }),
    object({ a: { type: 'string' }, b: { type: 'string' } }),
  ],
  [
    'alternatives of one value each',
    object({ s: { oneOf: [{ const: 'a', title: 'first' }, { const: 'b' }] } }),
    object({ s: { type: 'string', description: 'a: first.', enum: ['a', 'b'] } }),
  ],
  [
    'a map of texts',
    object({ m: { type: 'object', additionalProperties: { type: 'string' } } }),
    object({ m: { description: 'Further members: {"type":"string"}.', ...object({}) } }),
  ],
  [
    'kilocode#11950: a required member that is not defined, and a list of types',
    object({
      issue_fields: {
        type: 'array',
        items: {
          type: 'object',
          properties: { value: { type: ['string', 'number', 'boolean'] } },
          required: ['field_name'],
        },
      },
    }),
    object({
      issue_fields: {
        type: 'array',
        items: object(
          {
            value: { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }] },
            field_name: {
              anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }, { type: 'object', properties: {} }],
            },
          },
          { required: ['field_name'] },
        ),
      },
    }),
  ],
  [
    'spring-ai#6034: objects without properties, and members that are called type and properties',
    {
      type: 'object',
      properties: { type: { type: 'object' }, properties: { type: 'array', items: { type: 'object' } } },
    },
    object({ type: object({}), properties: { type: 'array', items: object({}) } }),
  ],
  [
    'opencode#14234: closed objects, null first in a list of types, references and bounds',
    object(
      { a: { type: ['null', 'string'] }, b: { $ref: '#/$defs/ids' } },
      { additionalProperties: false, $defs: { ids: { type: 'array', items: { type: 'integer' }, minItems: 1 } } },
    ),
    object({ a: { type: 'string' }, b: { type: 'array', items: { type: 'integer' }, minItems: 1 } }),
  ],
  [
    'ccs#456: keywords of design tools',
    object({
      box: object({ w: { type: 'number', fontSize: 12 } }, { cornerRadius: 4, fillColor: '#fff', padding: [1] }),
    }),
    object({ box: object({ w: { type: 'number' } }) }),
  ],
  [
    'gemini-cli#13326: a reference among alternatives',
    object(
      { target: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/table' }] } },
      { $defs: { table: object({ name: { type: 'string' } }, { required: ['name'] }) } },
    ),
    object({
      target: { anyOf: [{ type: 'string' }, object({ name: { type: 'string' } }, { required: ['name'] })] },
    }),
  ],
  [
    'gemini-cli#14945: a recursive schema',
    object(
      { where: { $ref: '#/$defs/where' } },
      { $defs: { where: object({ and: { type: 'array', items: { $ref: '#/$defs/where' } } }) } },
    ),
    object({
      where: object({
        and: { type: 'array', items: object({ and: { type: 'array', items: { type: 'string' }, maxItems: 0 } }) },
      }),
    }),
  ],
  [
    'csharp-sdk#1091: an optional number that may be null',
    object({ the_number: { description: 'An optional number', type: ['integer', 'null'], default: null } }),
    object({ the_number: { type: 'integer', description: 'An optional number Default: null.' } }),
  ],
  ['a reference that leads nowhere', object({ a: { $ref: '#/$defs/x' } }), 'its reference "#/$defs/x" leads nowhere'],
  [
    'a reference to another document',
    object({ a: { $ref: 'other.json' } }),
    'its reference "other.json" leads nowhere',
  ],
  ['no arguments fit', { type: 'array' }, 'no arguments fit it'],
  ['a schema that grows without end', growing(12), 'it is too large without references'],
]

/** Each definition has the next one twice. */
function growing(levels: number): Schema {
  const names = Array.from({ length: levels }, (_, i) => `d${i}`)
  const inner = (i: number) => ({
    type: 'object',
    properties: { a: { $ref: `#/$defs/d${i + 1}` }, b: { $ref: `#/$defs/d${i + 1}` } },
  })
  const $defs = Object.fromEntries(
    names.map((name, i) => [name, i + 1 < levels ? inner(i) : { type: 'string', description: 'x'.repeat(99) }]),
  )
  return { ...object({ a: { $ref: '#/$defs/d0' } }), $defs }
}

tap.test('schemas of public reports', async (t) => {
  for (const [claim, schema, expected] of REPORTED) {
    const made = portable(schema)
    if (typeof expected === 'string') t.equal((made as NotPortable).message, expected, claim)
    else t.same(made instanceof NotPortable ? made.message : made?.schema, expected, claim)
  }
})

tap.test(
  'csharp-sdk#1426: a required member that may be null can be left out, and is null for the server',
  async (t) => {
    const made = portable(
      object({ name: { type: 'string' }, filter: { type: ['string', 'null'] } }, { required: ['name', 'filter'] }),
    ) as Portable
    t.match(made.schema, { properties: { filter: { type: 'string' } }, required: ['name'] })
    t.equal(
      write(original(parseObject('{"name":"x"}'), made.mapping as Mapping) as Payload),
      '{"name":"x","filter":null}',
    )
  },
)

tap.test('pydantic-ai#1623: the root has no texts: the description of the tool says them', async (t) => {
  const texts = { title: 'findArguments', description: 'What to find.' }
  const made = portable(object({ a: { type: 'string' } }, { ...texts, anyOf: [{ required: ['a'] }] })) as Portable
  t.same(made.schema, object({ a: { type: 'string' } }))
  t.equal(made.says, 'What to find. Give at least one of: a.')
  const tools = [undefined, 'Finds.', 'Finds. What to find.'].map((description, i) => ({
    name: `t${i}`,
    description,
    inputSchema: object({}, texts),
  }))
  const policy = portableTools({ server: 's', schemas: 'portable', memory: unlimited() })
  const answer = await policy(async () => result({ tools }))(callOf({ method: 'tools/list' }))
  const seen = (answer.kind === 'result' ? value(answer.result, 'tools') : []) as typeof tools
  t.same(
    seen.map(({ description, inputSchema }) => [description, inputSchema]),
    ['What to find.', 'Finds. What to find.', 'Finds. What to find.'].map((said) => [said, object({})]),
  )
})

tap.test('a member named __proto__ is another one for clients', async (t) => {
  const made = portable(
    JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}'),
  )
  t.match(made, { schema: { properties: { _proto__: { type: 'string' } }, required: ['_proto__'] } })
  const { mapping } = made as { mapping: Mapping }
  t.equal(write(original(parseObject('{"_proto__":"x"}'), mapping) as Payload), '{"__proto__":"x"}')
})

tap.test('schemas of published servers are portable', async (t) => {
  t.equal(REAL.length, 270)
  const bad = REAL.flatMap(({ name, schema }) => {
    const made = portable(schema)
    return made instanceof NotPortable
      ? `${name}: ${made.message}`
      : faults(made?.schema ?? schema).map((one) => `${name}: ${one}`)
  })
  t.same(bad, [])
})

tap.test('every keyword that is said in words is in the description', async (t) => {
  for (const keyword of SAID) {
    const type = [
      'items',
      'prefixItems',
      'contains',
      'uniqueItems',
      'minContains',
      'maxContains',
      'unevaluatedItems',
    ].includes(keyword)
      ? 'array'
      : /Propert|depend|if|not/.test(keyword)
        ? 'object'
        : 'number'
    const value =
      {
        items: [{ type: 'string' }, { type: 'number' }],
        prefixItems: [{ type: 'string' }, { type: 'number' }],
        uniqueItems: true,
        unevaluatedItems: false,
        format: 'uri',
      }[keyword] ?? (type === 'object' && !/^m/.test(keyword) ? { type: 'string' } : 3)
    const made = portable(object({ a: { type, [keyword]: value } }))
    t.match((made as Portable).schema, { properties: { a: { description: String } } }, keyword)
  }
})
