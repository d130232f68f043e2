/** What of an offer differs between the eras by the rules of docs/development/translation.md, and is left out before two are compared. */
import type { Offer } from './offer.js'

type Json = Record<string, unknown>

/** An offer without what only one of the eras has. */
export function asModern(offer: Offer): Offer {
  return offer.map(([asked, answer]) => [asked, answerOf(asked, answer as Json)])
}

const DIALECT = '"$schema":"https://json-schema.org/draft/2020-12/schema"'

/** An offer whose schemas do not name the dialect 2020-12: legacy clients are not told of it where nothing of it is used. */
export function withoutDialects(offer: Offer): Offer {
  const without = JSON.stringify(offer).replaceAll(`${DIALECT},`, '').replaceAll(`,${DIALECT}`, '')
  return JSON.parse(without) as Offer
}

function answerOf(asked: string, answer: Json): Json {
  const { protocolVersion: _version, resultType: _type, ttlMs: _ttl, cacheScope: _scope, ...rest } = answer
  if (Array.isArray(rest['tools'])) rest['tools'] = rest['tools'].map(toolOf)
  if ('capabilities' in rest) rest['capabilities'] = capabilitiesOf(rest['capabilities'] as Json)
  if ('error' in rest) rest['error'] = errorOf(asked, rest['error'] as Json)
  return withoutEnvelope(rest)
}

function toolOf({ execution: _execution, ...tool }: Json): Json {
  return tool
}

/** Capabilities of servers in 2026-07-28, of which all are carried: in the order in which they stand here. */
const CAPABILITIES = ['tools', 'prompts', 'resources', 'logging', 'completions', 'extensions', 'experimental']

function capabilitiesOf(capabilities: Json): Json {
  return Object.fromEntries(CAPABILITIES.flatMap((name) => (name in capabilities ? [[name, capabilities[name]]] : [])))
}

/** An error about a resource names it, and has the code of 2026-07-28. */
function errorOf(asked: string, { code, data, ...error }: Json): Json {
  if (!asked.startsWith('resources/read')) return { code, data, ...error }
  return { code: code === -32002 ? -32602 : code, ...error }
}

function withoutEnvelope({ _meta, ...answer }: Json): Json {
  if (_meta === undefined) return answer
  const { 'io.modelcontextprotocol/serverInfo': _server, ...rest } = _meta as Json
  return Object.keys(rest).length === 0 ? answer : { ...answer, _meta: rest }
}
