/** Writes what is made of the schemas: JSON Schemas of the configuration, of manifests and of the chart, and pages of docs about options and messages. */
import { writeFileSync } from 'node:fs'
import { settingsSchema } from '../src/config/json-schema.js'
import { manifestJsonSchema } from '../src/services/discovery/manifest.js'
import { chartSchema } from './chart-schema.js'
import { configurationPages } from './configuration-page.js'
import { troubleshootingPages } from './troubleshooting.js'

writeFileSync(new URL('../config/mcp-bridge.schema.json', import.meta.url), settingsSchema())
writeFileSync(new URL('../config/manifest.schema.json', import.meta.url), manifestJsonSchema())
writeFileSync(new URL('../config/helm/mcp-bridge/values.schema.json', import.meta.url), chartSchema())
for (const [name, text] of Object.entries(configurationPages()))
  writeFileSync(new URL(`../docs/reference/${name}`, import.meta.url), text)
for (const [path, text] of Object.entries(troubleshootingPages()))
  writeFileSync(new URL(`../docs/${path}`, import.meta.url), text)
