/** For tests of portable schemas: what a portable schema is, and values that fit one. */
import fc from 'fast-check'

type Schema = Readonly<Record<string, unknown>>

const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  object: ['properties', 'required'],
  array: ['items', 'minItems', 'maxItems'],
  string: ['enum', 'minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  boolean: [],
}

/** What is not portable in a schema, by its place. */
export function faults(schema: unknown, place = '#'): string[] {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return [`${place} is no schema`]
  const { type, anyOf, ...others } = schema as Schema
  if (anyOf !== undefined) {
    if (place === '#') return ['# is a union']
    if (!Array.isArray(anyOf) || anyOf.length < 2 || Object.keys(others).length > 0) return [`${place} has a bad anyOf`]
    return anyOf.flatMap((one, i) => faults(one, `${place}/anyOf/${i}`))
  }
  const known = KEYWORDS[String(type)]
  if (!known) return [`${place} has the type ${JSON.stringify(type)}`]
  const texts = place === '#' ? [] : ['title', 'description']
  const foreign = Object.keys(others).filter((key) => ![...known, ...texts].includes(key))
  const values = others['enum']
  const inside = Object.entries((others['properties'] ?? {}) as Schema)
  return [
    ...(place === '#' && type !== 'object' ? ['# is no object'] : []),
    ...foreign.map((key) => `${place} has ${key}`),
    ...(Array.isArray(values) && values.every((one) => typeof one === 'string' && one !== '')
      ? []
      : values
        ? [`${place} has a bad enum`]
        : []),
    ...(type === 'object' && others['properties'] === undefined ? [`${place} has no properties`] : []),
    ...(type === 'array' ? faults(others['items'], `${place}/items`) : []),
    ...inside.flatMap(([name, one]) => [
      ...(/^[a-zA-Z0-9_.-]{1,64}$/.test(name) ? [] : [`${place} has the member ${name}`]),
      ...faults(one, `${place}/${name}`),
    ]),
    ...((others['required'] ?? []) as string[])
      .filter((name) => !inside.some(([one]) => one === name))
      .map((name) => `${place} lacks ${name}`),
  ]
}

/** Values that fit a portable schema, of the members that it names. */
export function valuesOf(schema: Schema): fc.Arbitrary<unknown> {
  if (Array.isArray(schema['anyOf'])) return fc.oneof(...(schema['anyOf'] as Schema[]).map(valuesOf))
  const bound = (key: string, otherwise: number) => (typeof schema[key] === 'number' ? schema[key] : otherwise)
  switch (schema['type']) {
    case 'object': {
      const members = Object.entries(schema['properties'] as Record<string, Schema>)
      const required = (schema['required'] ?? []) as string[]
      return fc
        .tuple(
          ...members.map(([name, one]) =>
            required.includes(name) ? valuesOf(one) : fc.option(valuesOf(one), { nil: undefined, freq: 2 }),
          ),
        )
        .map((values) =>
          Object.fromEntries(members.flatMap(([name], i) => (values[i] === undefined ? [] : [[name, values[i]]]))),
        )
    }
    case 'array': {
      const least = bound('minItems', 0)
      return fc.array(valuesOf(schema['items'] as Schema), {
        minLength: least,
        maxLength: Math.max(least, Math.min(bound('maxItems', least + 2), least + 2)),
      })
    }
    case 'string': {
      if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as string[]))
      const least = bound('minLength', 0)
      return fc.string({
        unit: 'grapheme-ascii',
        minLength: least,
        maxLength: Math.min(bound('maxLength', least + 3), least + 3),
      })
    }
    case 'integer':
      return fc.integer({
        min: bound('minimum', -1_000),
        max: Math.max(bound('minimum', -1_000), bound('maximum', 1_000)),
      })
    case 'number':
      return fc.double({
        min: bound('minimum', -1_000),
        max: Math.max(bound('minimum', -1_000), bound('maximum', 1_000)),
        noNaN: true,
      })
    default: {
      const only = /Always (true|false)/.exec(String(schema['description']))?.[1]
      return only ? fc.constant(only === 'true') : fc.boolean()
    }
  }
}
