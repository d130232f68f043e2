/** One cell of the matrix: a pair of a client and a server with the bridge between them, and what one scenario needs. */
import type { Test } from 'tap'
import { problems, type SchemaRevision } from '../support/schema.js'
import { type Answer, type Arrived, type Client, INFO, type Json } from './client.js'
import type { ClientKind, ClientPlan } from './clients.js'
import type { Reached, ServerKind, TestServer } from './servers.js'
import { type Pair, toldCapabilities } from './told.js'

/** Milliseconds for which the bridge keeps what a client has left for the next one. */
export const REUSE = 1_000

export interface Cell {
  pair: Pair & { client: ClientKind; server: ServerKind }
  server: TestServer
  /** Open already, and closed after the scenario. */
  client: Client
  /** What the client was told when it was opened. */
  opened: Answer
  /** Messages that have reached the server since before the client was opened. */
  reached(method?: string): Reached[]
  /** Opens another client of the same kind. */
  connect(): Promise<Client>
}

export interface Scenario {
  name: string
  /** What the client of this scenario declares, and how it answers. */
  plan?: (pair: Pair) => ClientPlan
  /** Why there can be no such thing between these two; undefined where there can. */
  impossible?: (pair: Pair) => string | undefined
  run(t: Test, cell: Cell): Promise<void>
}

const PREFIX = 'io.modelcontextprotocol/'
const ENVELOPE = ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map((key) => PREFIX + key)
/** What the scripted servers say of themselves. */
export const SCRIPTED = { name: 'scripted', version: '1.0.0' }
const OF_MODERN_RESULTS = ['resultType', 'ttlMs', 'cacheScope']

/**
 * Ids of the cell's tool calls that were cancelled, in order, after the server had counted `before` cancellations. The
 * subscription of an earlier client may end at any time after its client.
 */
export function cancelledCalls({ server, reached }: Cell, before: number): unknown[] {
  const calls = new Set(reached('tools/call').map(({ message }) => message['id']))
  return server
    .cancelled()
    .slice(before)
    .filter((id) => calls.has(id))
}

/** The `_meta` that came with a message. */
export function metaOf({ message }: Reached): Json {
  return ((message['params'] as Json | undefined)?.['_meta'] ?? {}) as Json
}

/** The params of a message without their `_meta`. */
export function paramsOf({ message }: Reached): Json {
  const { _meta, ...params } = (message['params'] ?? {}) as Json
  return params
}

/**
 * The one message with this method that has reached the server, with the envelope that it has to have there, and
 * nothing else in its `_meta` than `others`.
 */
export function only(t: Test, cell: Cell, method: string, others: Json = {}, logLevel?: string): Reached {
  const found = cell.reached(method)
  t.equal(found.length, 1, `${method} has reached the server once`)
  const [one] = found
  if (!one) throw new Error(`${method} has not reached the server`)
  sameMeta(t, cell, one, others, logLevel)
  return one
}

/** Checks the whole `_meta` of a request at the server. */
export function sameMeta(
  t: Test,
  { pair, client }: Cell,
  reached: Reached,
  others: Json = {},
  logLevel?: string,
): void {
  const envelope = {
    [`${PREFIX}protocolVersion`]: '2026-07-28',
    [`${PREFIX}clientInfo`]: INFO,
    [`${PREFIX}clientCapabilities`]: toldCapabilities(pair, client.capabilities),
    ...(logLevel !== undefined && { [`${PREFIX}logLevel`]: logLevel }),
  }
  t.same(metaOf(reached), pair.server.era === 'modern' ? { ...envelope, ...others } : others, '_meta at the server')
}

/** The result of an answer, which has to be what the schema of the client's revision says. */
export function resultOf(t: Test, { pair }: Cell, { message, text }: Answer, definition?: string): Json {
  const { result } = message
  if (!result) throw new Error(`There is no result: ${text}`)
  const revision = pair.client.era === 'modern' ? '2026-07-28' : revisionOf(pair)
  if (definition) t.same(problems(revision, definition, result), [], `it is a ${definition} of ${revision}`)
  return own(pair, result)
}

function revisionOf({ server }: Pair): SchemaRevision {
  return (server.era === 'legacy' ? server.revision : '2025-11-25') as SchemaRevision
}

/** A result without what the era of the client puts on all of its results, which is checked for all of them at once. */
function own({ client }: Pair, result: Json): Json {
  if (client.era === 'legacy') return result
  const { resultType, ttlMs, cacheScope, _meta, ...others } = result
  const { [`${PREFIX}serverInfo`]: server, ...meta } = (_meta ?? {}) as Json
  return Object.keys(meta).length > 0 ? { ...others, _meta: meta } : others
}

/** What is wrong with what a client was told, whatever it was. */
export function foreignTo(client: Client, arrived: readonly Arrived[]): string[] {
  const check = client.era === 'modern' ? problemsForModern : problemsForLegacy
  return arrived.flatMap(({ message, text }) => check(message).map((says) => `${says}: ${text}`))
}

function problemsForModern({ result }: Arrived['message']): string[] {
  if (!result) return []
  const meta = (result['_meta'] ?? {}) as Json
  const isScripted = JSON.stringify(meta[`${PREFIX}serverInfo`]) === JSON.stringify(SCRIPTED)
  return [
    ...(typeof result['resultType'] === 'string' ? [] : ['there is no resultType']),
    ...(isScripted ? [] : ['it does not say who the server is']),
    ...(`${PREFIX}related-task` in meta ? ['it names a legacy task'] : []),
  ]
}

function problemsForLegacy({ result, params }: Arrived['message']): string[] {
  const metas = [result, params as Json | undefined].map((one) => (one?.['_meta'] ?? {}) as Json)
  const keys = [...ENVELOPE, `${PREFIX}serverInfo`, `${PREFIX}subscriptionId`]
  return [
    ...OF_MODERN_RESULTS.filter((key) => result && key in result),
    ...keys.filter((key) => metas.some((meta) => key in meta)),
  ]
}
