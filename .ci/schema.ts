/** Writes the JSON Schema of the configuration, which editors complete and check it by. */
import { writeFileSync } from 'node:fs'
import { settingsSchema } from '../src/config/json-schema.js'

writeFileSync(new URL('../config/mcp-bridge.schema.json', import.meta.url), settingsSchema())
