/** What users have written for a released version stays valid: its options and flags are still there under their names. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { FLAGS } from '../../src/command/flags.js'
import { settingsSchema } from '../../src/config/json-schema.js'
import { atLeast } from '../support/at-least.js'

interface Schema {
  $ref?: string
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
}

const released: Record<string, { options: string[]; flags: string[] }> = JSON.parse(
  readFileSync(new URL('../fixtures/released-names.json', import.meta.url), 'utf8'),
)

t.test('each option and flag of a released version still has its name', async (t) => {
  const options = optionsIn(JSON.parse(settingsSchema()) as Schema)
  const flags = Object.keys(FLAGS)
  for (const [version, names] of atLeast(t, 1, 'versions', Object.entries(released))) {
    const gone = atLeast(t, 100, 'options', names.options).filter((name) => !options.has(name))
    t.same(gone, [], `options of ${version}: let the old name work, and say the new one in a line`)
    t.same(
      names.flags.filter((name) => !flags.includes(name)),
      [],
      `flags of ${version}`,
    )
  }
})

/** The options of a schema, as paths; `*` stands for a name that the user chooses. */
function optionsIn(whole: Schema): ReadonlySet<string> {
  const found = new Set<string>()
  const walk = (schema: Schema | boolean | undefined, path: string, depth: number): void => {
    if (typeof schema !== 'object' || depth > 12) return
    for (const [name, inner] of Object.entries(schema.properties ?? {})) {
      found.add(path + name)
      walk(inner, `${path}${name}.`, depth + 1)
    }
    for (const inner of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])])
      walk(inner, path, depth + 1)
    walk(schema.additionalProperties, `${path}*.`, depth + 1)
    walk(schema.items, path, depth + 1)
    const parts = schema.$ref?.split('/').slice(1)
    if (parts)
      walk(parts.reduce((at, key) => at[key] as never, whole as Record<string, unknown>) as Schema, path, depth + 1)
  }
  walk(whole, '', 0)
  return found
}
