/** The schemas of tools of published servers. */
import { readFileSync } from 'node:fs'

const { schemas } = JSON.parse(readFileSync(new URL('../../fixtures/real-schemas.json', import.meta.url), 'utf8')) as {
  schemas: { source: string; tool: string; schema: Record<string, unknown> }[]
}

/** Each with its package, version and tool as its name. */
export const REAL: readonly { name: string; schema: Record<string, unknown> }[] = schemas.map(
  ({ source, tool, schema }) => ({ name: `${source} ${tool}`, schema }),
)
