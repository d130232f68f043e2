/** The reference of all options as a JSON Schema, which editors read. */
import * as z from 'zod'
import { fileSchema } from './schema/schema.js'

/** These may be references like `${TOKEN}`, whose values are unknown until they are resolved. */
const REFERRING: ReadonlySet<string> = new Set([
  'tokens',
  'stateKeys',
  'url',
  'redis',
  'headers',
  'env',
  'token',
  'adminToken',
])

/** The JSON Schema of a configuration file. */
export function jsonSchema(): object {
  // The schema of the input: defaults may be missing, and numbers are accepted for texts.
  const schema = z.toJSONSchema(fileSchema, {
    io: 'input',
    target: 'draft-7',
    override: ({ jsonSchema, path }) => {
      if (!path.some((part) => REFERRING.has(String(part)))) return
      for (const rule of ['pattern', 'minLength', 'format'] as const) delete jsonSchema[rule]
    },
  })
  // At least one server is required.
  const anyOf = ['mcpServers', 'discover'].map((name) => ({ required: [name] }))
  return { title: 'Configuration of mcp-bridge', ...schema, anyOf }
}

/** The text of config/mcp-bridge.schema.json. */
export function settingsSchema(): string {
  return `${JSON.stringify(jsonSchema(), null, 2)}\n`
}
