/** The reference of all options in a form that editors read. */
import * as z from 'zod'
import { fileSchema } from './schema.js'

/** What stands for these may be a reference like `${TOKEN}`, of which nothing is known before it is followed. */
const REFERRING: ReadonlySet<string> = new Set(['tokens', 'stateKeys', 'url', 'redis', 'headers', 'env'])

/** The text of config/mcp-bridge.schema.json. */
export function settingsSchema(): string {
  // What goes in: defaults need not be there, and numbers may stand for texts.
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
  return `${JSON.stringify({ title: 'Configuration of mcp-bridge', ...schema, anyOf }, null, 2)}\n`
}
