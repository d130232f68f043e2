/**
 * What the SDKs of models make of the schemas of published servers: which ones they refuse, and that they take the portable
 * ones. Beyond its SDK, Gemini has rules that only its service checks: they are written out here, as it says them.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { parseObject, write } from '../../../src/base/rpc/splice.js'
import { original } from '../../../src/middle/policy/portable/arguments.js'
import { portableSchema } from '../../../src/middle/policy/portable/schema.js'
import { inTools, missing } from '../../support/tools.js'
import { REAL } from './real.js'
import { valuesOf } from './values.js'

type Schema = Record<string, unknown>

const skip = missing('models')

async function sdk<T>(path: string): Promise<T> {
  return (await import(pathToFileURL(inTools('models', path)).href)) as T
}

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const portable = (schema: Schema): Schema => (portableSchema(schema)?.schema ?? schema) as Schema

/** The names of the schemas that a check refuses, before and after. */
function refusals(check: (schema: Schema) => unknown): { originals: string[]; portables: string[] } {
  const refused = (change: (schema: Schema) => Schema) =>
    REAL.flatMap(({ name, schema }) => {
      try {
        check(structuredClone(change(schema)))
        return []
      } catch (error) {
        return `${name}: ${(error as Error).message}`
      }
    })
  return { originals: refused((schema) => schema), portables: refused(portable) }
}

function isTaken(t: Test, check: (schema: Schema) => unknown, refused: number): void {
  const { originals, portables } = refusals(check)
  t.same(portables, [], 'the portable schemas are taken')
  t.equal(originals.length, refused, `so many of the originals are refused:\n${originals.join('\n')}`)
}

const MAPS: readonly string[] = ['properties', '$defs', 'definitions']
const LISTS: readonly string[] = ['anyOf', 'oneOf', 'allOf']

/** Strict clients require all members, and say null for those that are missing. Nothing else is changed. */
function allRequired(schema: unknown): unknown {
  if (!isObject(schema)) return schema
  const inside = Object.entries(schema).map(([key, value]) => {
    if (MAPS.includes(key) && isObject(value))
      return [key, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, allRequired(one)]))]
    if (LISTS.includes(key) && Array.isArray(value)) return [key, value.map(allRequired)]
    return [key, key === 'items' ? allRequired(value) : value]
  })
  const { properties } = schema
  return { ...Object.fromEntries(inside), ...(isObject(properties) && { required: Object.keys(properties) }) }
}

t.test('OpenAI: strict functions can have the portable schemas', { skip }, async (t) => {
  const { toStrictJsonSchema } = await sdk<{ toStrictJsonSchema(schema: unknown): unknown }>('openai/lib/transform.mjs')
  isTaken(t, (schema) => toStrictJsonSchema(allRequired(schema)), 34)
})

t.test('Anthropic: strict tools can have the portable schemas', { skip }, async (t) => {
  const { transformJSONSchema } = await sdk<{ transformJSONSchema(schema: unknown): unknown }>(
    '@anthropic-ai/sdk/lib/transform-json-schema.mjs',
  )
  isTaken(t, transformJSONSchema, 8)
})

t.test('Zod: clients can read the portable schemas, and write them as they were', { skip }, async (t) => {
  const { z } = await sdk<{ z: { fromJSONSchema(schema: unknown): unknown; toJSONSchema(schema: unknown): Schema } }>(
    'zod/index.js',
  )
  isTaken(t, (schema) => z.fromJSONSchema(schema), 4)
  const changed = REAL.flatMap(({ name, schema }) => {
    const { $schema: _, ...again } = z.toJSONSchema(z.fromJSONSchema(portable(schema)))
    const faults = portable(again as Schema)
    return membersOf(faults).join() === membersOf(portable(schema)).join() ? [] : name
  })
  t.same(changed, [], 'with the same members, all the way down')
})

/** The places of all members of objects. */
function membersOf(schema: unknown, place = ''): string[] {
  if (!isObject(schema)) return []
  const { properties, items, anyOf } = schema
  return [
    ...Object.entries(isObject(properties) ? properties : {}).flatMap(([name, one]) => [
      `${place}/${name}`,
      ...membersOf(one, `${place}/${name}`),
    ]),
    ...membersOf(items, `${place}[]`),
    ...(Array.isArray(anyOf) ? anyOf.flatMap((one, i) => membersOf(one, `${place}|${i}`)) : []),
  ]
}

/** The members that a schema of Gemini has, by its SDK. */
function geminiFields(): ReadonlySet<string> {
  const types = readFileSync(inTools('models', '@google/genai/dist/genai.d.ts'), 'utf8')
  const [, body = ''] = /export declare interface Schema \{([\s\S]*?)\n\}/.exec(types) ?? []
  return new Set([...body.matchAll(/^ {4}(\w+)\?:/gm)].map(([, name = '']) => name))
}

/** What Gemini's service refuses in a schema that its SDK has sent. */
function geminiFaults(schema: unknown, fields: ReadonlySet<string>, place = 'parameters'): string[] {
  if (!isObject(schema)) return [`${place}: no schema`]
  const { type, properties, required, items, anyOf, enum: values, format } = schema
  const members = isObject(properties) ? properties : {}
  return [
    ...Object.keys(schema).flatMap((name) => (fields.has(name) ? [] : `${place}: Unknown name "${name}"`)),
    ...(type === 'TYPE_UNSPECIFIED' || (type === undefined && anyOf === undefined)
      ? [`${place}.type: unspecified`]
      : []),
    ...(type === 'ARRAY' && items === undefined ? [`${place}.items: missing field`] : []),
    ...(type !== 'OBJECT' && (properties ?? required) !== undefined ? [`${place}: only allowed for OBJECT type`] : []),
    ...(values !== undefined && type !== 'STRING' ? [`${place}.enum: only allowed for STRING type`] : []),
    ...(Array.isArray(values) && values.some((one) => typeof one !== 'string' || one === '')
      ? [`${place}.enum: cannot be empty`]
      : []),
    ...(type === 'STRING' && format !== undefined && !['enum', 'date-time'].includes(String(format))
      ? [`${place}.format: only 'enum' and 'date-time' are supported for STRING type`]
      : []),
    ...(anyOf !== undefined && Object.keys(schema).length > 1
      ? [`${place}: when using any_of, it must be the only field set`]
      : []),
    ...(Array.isArray(required) ? required : []).flatMap((name) =>
      Object.hasOwn(members, String(name)) ? [] : `${place}.required: property ${name} is not defined`,
    ),
    ...Object.entries(members).flatMap(([name, one]) => geminiFaults(one, fields, `${place}.properties[${name}]`)),
    ...(items === undefined ? [] : geminiFaults(items, fields, `${place}.items`)),
    ...(Array.isArray(anyOf) ? anyOf.flatMap((one, i) => geminiFaults(one, fields, `${place}.any_of[${i}]`)) : []),
  ]
}

t.test('Gemini: functions can have the portable schemas', { skip }, async (t) => {
  const bodies: string[] = []
  const service = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => {
      body += part
    })
    request.on('end', () => {
      bodies.push(body)
      response.setHeader('content-type', 'application/json').end('{}')
    })
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  t.teardown(() => service.close())
  const baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  const { GoogleGenAI } = await sdk<{
    GoogleGenAI: new (options: object) => { models: { generateContent(request: object): Promise<unknown> } }
  }>('@google/genai/dist/node/index.mjs')
  const { models } = new GoogleGenAI({ apiKey: 'x', httpOptions: { baseUrl } })
  const fields = geminiFields()
  t.ok(fields.has('anyOf') && fields.has('nullable') && !fields.has('oneOf'), [...fields].join())
  const refused = async (change: (schema: Schema) => Schema) => {
    const all: string[] = []
    for (const { name, schema } of REAL) {
      bodies.length = 0
      // The SDK leaves a schema with $schema to another field, which it does not check.
      const { $schema: _, ...parameters } = structuredClone(change(schema))
      try {
        const config = { tools: [{ functionDeclarations: [{ name: 'f', parameters }] }] }
        await models.generateContent({ model: 'm', contents: 'x', config })
        const sent = JSON.parse(bodies[0] ?? '{}') as { tools: { functionDeclarations: { parameters: unknown }[] }[] }
        const faults = geminiFaults(sent.tools[0]?.functionDeclarations[0]?.parameters, fields)
        if (faults.length > 0) all.push(`${name}: ${faults.join('; ')}`)
      } catch (error) {
        all.push(`${name}: ${(error as Error).message}`)
      }
    }
    return all
  }
  t.same(await refused(portable), [], 'the portable schemas are taken')
  const originals = await refused((schema) => schema)
  t.equal(originals.length, 80, 'so many of the originals are refused')
})

/** Schemas of servers, as they write them with Zod 3. */
const ZOD = (z: Zod): readonly [what: string, schema: Type][] => [
  [
    'optional and nullable members',
    z.object({ a: z.string().nullable(), b: z.number().int().nullish(), c: z.boolean().default(true) }),
  ],
  [
    'enumerations',
    z.object({
      a: z.enum(['p', 'q']),
      b: z.nativeEnum({ one: 1, two: 2, five: 5 }),
      c: z.literal(7),
      d: z.literal('x'),
    }),
  ],
  [
    'a union of objects',
    z.object({
      a: z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('id'), id: z.number().int().positive() }),
        z.object({ kind: z.literal('name'), name: z.string().min(1) }),
      ]),
    }),
  ],
  ['a union of scalars', z.object({ a: z.union([z.string(), z.number(), z.boolean(), z.null()]) })],
  [
    'an intersection',
    z.object({ a: z.intersection(z.object({ b: z.string() }), z.object({ c: z.number().optional() })) }),
  ],
  [
    'lists',
    z.object({
      a: z
        .array(z.object({ b: z.string().max(3) }))
        .nonempty()
        .max(4),
      c: z.array(z.array(z.number())),
    }),
  ],
  ['bounds of integers', z.object({ a: z.number().int().gt(3).lt(9), b: z.number().min(0).max(1) })],
  ['anything', z.object({ a: z.any(), b: z.unknown(), c: z.record(z.string()) })],
  ['names that models refuse', z.object({ 'with space': z.string(), $x: z.object({ ü: z.number() }) })],
  ['a root that is a union', z.union([z.object({ a: z.string() }), z.object({ b: z.number() })])],
]

interface Type {
  safeParse(value: unknown): { success: boolean; error?: unknown }
}
// biome-ignore lint/suspicious/noExplicitAny: the types of Zod are in a set that need not be installed.
type Zod = any

t.test('zod-to-json-schema: what fits the portable schema fits the schema of Zod, mapped back', { skip }, async (t) => {
  const { z } = await sdk<{ z: Zod }>('zod/v3/index.js')
  const { zodToJsonSchema } = await sdk<{ zodToJsonSchema(schema: Type, options: object): Schema }>(
    'zod-to-json-schema/dist/esm/index.js',
  )
  for (const [what, schema] of ZOD(z))
    for (const target of ['jsonSchema7', 'jsonSchema2019-09', 'openApi3']) {
      const made = portableSchema(zodToJsonSchema(schema, { target }))
      const shown = made?.schema ?? zodToJsonSchema(schema, { target })
      for (const value of fc.sample(valuesOf(shown), { numRuns: 40, seed: 1 })) {
        const args = parseObject(JSON.stringify(value))
        const mapped = JSON.parse(write((made?.mapping && original(args, made.mapping)) ?? args)) as unknown
        const { success, error } = schema.safeParse(mapped)
        if (!success) t.fail(`${what}, ${target}: ${JSON.stringify(mapped)}: ${String(error)}`)
      }
      t.pass(`${what}, ${target}`)
    }
})
