/** Writes what is made of the schemas: JSON Schemas of the configuration and of manifests, docs/configuration.md, docs/troubleshooting.md, and what the inspector explains. */
import { writeFileSync } from 'node:fs'
import { configurationPage } from '../src/cli/configuration-page.js'
import { settingsSchema } from '../src/config/json-schema.js'
import { manifestJsonSchema } from '../src/discovery/manifest.js'
import { explanationsModule } from './explanations.js'
import { troubleshootingPage } from './troubleshooting.js'

writeFileSync(new URL('../config/mcp-bridge.schema.json', import.meta.url), settingsSchema())
writeFileSync(new URL('../config/manifest.schema.json', import.meta.url), manifestJsonSchema())
writeFileSync(new URL('../docs/configuration.md', import.meta.url), configurationPage())
writeFileSync(new URL('../docs/troubleshooting.md', import.meta.url), troubleshootingPage())
writeFileSync(new URL('../src/inspect/explanations.ts', import.meta.url), explanationsModule())
