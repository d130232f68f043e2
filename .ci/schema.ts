/** Writes what is made of the schemas: JSON Schemas of the configuration and of manifests, docs/configuration.md, docs/troubleshooting.md, what the inspector explains, and types of the options. */
import { writeFileSync } from 'node:fs'
import { configurationPage } from '../src/cli/configuration-page.js'
import { settingsSchema } from '../src/config/json-schema.js'
import { manifestJsonSchema } from '../src/discovery/manifest.js'
import { explanationsModule } from './explanations.js'
import { fileOptionsModule } from './file-options.js'
import { troubleshootingPage } from './troubleshooting.js'

writeFileSync(new URL('../config/mcp-bridge.schema.json', import.meta.url), settingsSchema())
writeFileSync(new URL('../config/manifest.schema.json', import.meta.url), manifestJsonSchema())
writeFileSync(new URL('../docs/configuration.md', import.meta.url), configurationPage())
writeFileSync(new URL('../docs/troubleshooting.md', import.meta.url), troubleshootingPage())
writeFileSync(new URL('../src/inspect/explanations.ts', import.meta.url), explanationsModule())
writeFileSync(new URL('../src/embed/file-options.ts', import.meta.url), fileOptionsModule())
