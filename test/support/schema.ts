/** The specification's own JSON Schemas and examples, for tests to hold messages against. */
import { readdirSync, readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'

export type SchemaRevision = '2024-11-05' | '2025-03-26' | '2025-06-18' | '2025-11-25' | '2026-07-28' | 'ext-tasks'

const folder = new URL('../fixtures/schema/', import.meta.url)
const compiled = new Map<SchemaRevision, Ajv>()

function load(revision: SchemaRevision): Ajv {
  const known = compiled.get(revision)
  if (known) return known
  const schema = JSON.parse(readFileSync(new URL(`${revision}/schema.json`, folder), 'utf8')) as { $schema: string }
  const options = { strict: false, validateFormats: false, allErrors: true }
  const ajv = schema.$schema.includes('2020-12') ? new Ajv2020(options) : new Ajv(options)
  ajv.addSchema(schema, revision)
  compiled.set(revision, ajv)
  return ajv
}

/** What is wrong with a value as this definition of a revision; empty where nothing is. */
export function problems(revision: SchemaRevision, definition: string, value: unknown): string[] {
  const ajv = load(revision)
  const keyword = revision >= '2025-11-25' ? '$defs' : 'definitions'
  const validate = ajv.getSchema(`${revision}#/${keyword}/${definition}`)
  if (!validate) throw new TypeError(`${revision} has no ${definition}`)
  if (validate(value)) return []
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** All definitions of a revision, by their names. */
export function definitionsOf(revision: SchemaRevision): Record<string, unknown> {
  const schema = load(revision).getSchema(revision)?.schema as Record<string, Record<string, unknown>>
  return schema['$defs'] ?? schema['definitions'] ?? {}
}

/** The examples that the specification gives for a definition of 2026-07-28, as they are written. */
export function examples(definition: string): { name: string; text: string }[] {
  const examplesFolder = new URL(`2026-07-28/examples/${definition}/`, folder)
  return readdirSync(examplesFolder).map((name) => ({
    name,
    text: readFileSync(new URL(name, examplesFolder), 'utf8'),
  }))
}

/** All definitions that have examples. */
export function exampleDefinitions(): string[] {
  return readdirSync(new URL('2026-07-28/examples/', folder))
}

/** The methods of the results that have a definition and examples of their own. */
export const METHODS_OF_RESULTS: Readonly<Record<string, string>> = {
  CallToolResult: 'tools/call',
  ListToolsResult: 'tools/list',
  ListPromptsResult: 'prompts/list',
  ListResourcesResult: 'resources/list',
  ListResourceTemplatesResult: 'resources/templates/list',
  ReadResourceResult: 'resources/read',
  GetPromptResult: 'prompts/get',
  CompleteResult: 'completion/complete',
}
