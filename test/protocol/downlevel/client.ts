/** Clients of each legacy revision for the tests of down-levelling, and the results and questions that they get. */
import { readFileSync } from 'node:fs'
import { parseObject, write } from '../../../src/base/rpc/splice.js'
import {
  type Downlevel,
  downlevelNotification,
  downlevelQuestion,
  downlevelResult,
} from '../../../src/mcp/protocol/downlevel/downlevel.js'
import { LEGACY, type LegacyRevision, traits } from '../../../src/mcp/protocol/eras.js'

/** Oldest first. */
export const REVISIONS: readonly LegacyRevision[] = LEGACY.toReversed()
export const R24 = '2024-11-05'
export const R03 = '2025-03-26'
export const R06 = '2025-06-18'
export const R11 = '2025-11-25'

export interface Client extends Downlevel {
  losses: string[]
}

export function clientOf(revision: LegacyRevision, { strict = false } = {}): Client {
  const losses: string[] = []
  const lost = (feature: string) => losses.push(feature)
  return { revision, traits: traits[revision], strict, losses, memory: { wrapped: new Set() }, lost }
}

export function resultFor(to: Downlevel, method: string, result: string, params = '{}'): string {
  return write(downlevelResult(method, parseObject(params), parseObject(result), to))
}

export function notificationFor(to: Downlevel, method: string, params: string): string {
  return write(downlevelNotification(method, parseObject(params), to))
}

export function questionFor(to: Downlevel, method: string, params: string, capabilities = '{}') {
  const { params: asked, uplift } = downlevelQuestion(method, parseObject(params), parseObject(capabilities), to)
  return { asked: write(asked), answer: (answer: string) => write(uplift(parseObject(answer))) }
}

/** The first tool of a list of this one. */
export function toolFor(to: Downlevel, tool: string): string | undefined {
  const told = resultFor(to, 'tools/list', `{"tools":[${tool}]}`)
  return told.slice('{"tools":['.length, -']}'.length) || undefined
}

/** The adapted form of a block in a tool's result. */
export function blockFor(to: Downlevel, block: string): unknown {
  return JSON.parse(resultFor(to, 'tools/call', `{"content":[${block}]}`)).content[0]
}

interface Definition {
  properties: Record<string, Definition>
}

/** Names of the members that a revision's own schema gives to a definition. */
export function membersOf(revision: LegacyRevision, definition: string, ...path: string[]): string[] {
  const url = new URL(`../../fixtures/schema/${revision}/schema.json`, import.meta.url)
  const schema = JSON.parse(readFileSync(url, 'utf8')) as Record<'definitions' | '$defs', Record<string, Definition>>
  const root = (schema.$defs ?? schema.definitions)[definition] as Definition
  return Object.keys(path.reduce((at, key) => at.properties[key] as Definition, root).properties)
}
