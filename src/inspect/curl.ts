/** The client's request of a call as a command line that sends it again. */
import { ANONYMOUS } from '../protocol/call.js'
import { legacyRevision, NEWEST_MODERN, traits } from '../protocol/eras.js'
import { encodeValue } from '../protocol/headers.js'
import { methodTraits } from '../protocol/methods.js'
import type { Message } from './rows.js'
import type { CallView } from './views.js'

/** A command line. */
export interface Curl {
  command: string
  /** Variables that it needs: what the inspector does not know or show. */
  variables: readonly string[]
}

type Told = Pick<CallView, 'client' | 'events' | 'principal' | 'session'>
type Json = Readonly<Record<string, unknown>>

/** Principals of callers that need no token. */
const WITHOUT_TOKEN: readonly (string | undefined)[] = ['local', ANONYMOUS, undefined]

/**
 * The command; undefined if there is none: for a client that did not use Streamable HTTP, or if the text of its request is not
 * there as a whole.
 */
export function curlOf(call: Told): Curl | undefined {
  const request = call.events.find(
    (seen): seen is Message =>
      seen.kind === 'message' && seen.hop === 'client' && seen.dir === 'in' && seen.form === 'request',
  )
  const payload = request?.payload
  if (call.client?.transport !== 'http' || !payload || payload.cut > 0 || payload.hidden > 0) return undefined
  const message = objectIn(payload.text)
  if (!message) return undefined
  const known = Object.entries({ ...CONTENT, ...metadataOf(call.client, message) })
  const secret = secretsOf(call, message)
  const lines = [
    'curl "$MCP_BRIDGE_URL"',
    ...known.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    // The shell replaces variables between these quotes only.
    ...secret.map((header) => `-H "${header}"`),
    `--data-binary ${quoted(payload.text)}`,
  ]
  const command = lines.join(' \\\n  ')
  return { command, variables: ['$MCP_BRIDGE_URL', ...secret.flatMap((header) => /\$\w+/.exec(header) ?? [])] }
}

const CONTENT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** The headers that repeat what the message, or the session, says. */
function metadataOf({ era, revision }: NonNullable<Told['client']>, { method, params }: Json): Record<string, string> {
  if (era === 'legacy') {
    const known = legacyRevision(revision)
    const isTold = known !== undefined && traits[known].versionHeader && method !== 'initialize'
    return isTold ? { 'mcp-protocol-version': known } : {}
  }
  const { named } = methodTraits(String(method))
  const name = named === undefined ? undefined : (params as Json | undefined)?.[named]
  return {
    'mcp-protocol-version': revision ?? NEWEST_MODERN,
    'mcp-method': encodeValue(String(method)),
    ...(typeof name === 'string' && { 'mcp-name': encodeValue(name) }),
  }
}

/** The headers whose values the inspector does not have. */
function secretsOf({ session, principal }: Told, { method }: Json): string[] {
  return [
    ...(session === undefined || method === 'initialize' ? [] : ['mcp-session-id: $MCP_SESSION_ID']),
    ...(WITHOUT_TOKEN.includes(principal) ? [] : ['authorization: Bearer $TOKEN']),
  ]
}

function objectIn(text: string): Json | undefined {
  try {
    const found: unknown = JSON.parse(text)
    return typeof found === 'object' && found !== null && !Array.isArray(found) ? (found as Json) : undefined
  } catch {
    return undefined
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
