/** Writes the JSON Schemas of the configuration and of manifests, which editors complete and check them by. */
import { writeFileSync } from 'node:fs'
import { settingsSchema } from '../src/config/json-schema.js'
import { manifestJsonSchema } from '../src/discovery/manifest.js'

writeFileSync(new URL('../config/mcp-bridge.schema.json', import.meta.url), settingsSchema())
writeFileSync(new URL('../config/manifest.schema.json', import.meta.url), manifestJsonSchema())
