/** The reference of all options as a JSON Schema, which editors read. */
import * as z from 'zod'
import { fileSchema } from './schema.js'

/** What stands for these may be a reference like `${TOKEN}`, of which nothing is known before it is followed. */
const REFERRING: ReadonlySet<string> = new Set(['tokens', 'stateKeys', 'url', 'redis', 'headers', 'env', 'token'])

/** The JSON Schema of a configuration file. */
export function jsonSchema(): object {
  // Of the input: defaults need not be there, and numbers may stand for texts.
  const schema = z.toJSONSchema(fileSchema, {
    io: 'input',
    target: 'draft-7',
    override: ({ jsonSchema, path }) => {
      if (!path.some((part) => REFERRING.has(String(part)))) return
      for (const rule of ['pattern', 'minLength', 'format'] as const) delete jsonSchema[rule]
    },
  })
  // There has to be something to serve.
  const anyOf = ['mcpServers', 'discover'].map((name) => ({ required: [name] }))
  return { title: 'Configuration of mcp-bridge', ...schema, anyOf }
}

/** The text of config/mcp-bridge.schema.json. */
export function settingsSchema(): string {
  return `${JSON.stringify(jsonSchema(), null, 2)}\n`
}
