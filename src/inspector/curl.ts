/** The client's request as a command that repeats it: for sh with curl, and for PowerShell. */

import { literal, powershellOf } from '../base/texts/powershell.js'
import { shownPerson } from '../base/texts/principal.js'
import { inQuotes } from '../base/texts/shell.js'
import { ANONYMOUS } from '../mcp/protocol/call.js'
import { legacyRevision, NEWEST_MODERN, traits } from '../mcp/protocol/eras.js'
import { encodeValue } from '../mcp/protocol/headers.js'
import { methodTraits } from '../mcp/protocol/methods.js'
import { recordIn } from './record.js'
import { isMessage } from './recorder/events.js'
import type { JsonRecord } from './try/types.js'
import type { CallView } from './views.js'

/** A command. */
export interface RequestCommand {
  command: string
  /** Variables that it needs, for values that the inspector does not know or show. */
  variables: readonly string[]
}

type RepeatedCall = Pick<CallView, 'client' | 'events' | 'principal' | 'session'>

/** Principals that need no token. */
const WITHOUT_TOKEN: readonly (string | undefined)[] = ['local', ANONYMOUS, undefined]

/** Whether a caller with this principal sends a token. */
export function requiresToken(principal: string | undefined): boolean {
  return !WITHOUT_TOKEN.includes(principal && shownPerson(principal))
}

/** A request that can be repeated. */
interface RepeatableRequest {
  /** Headers whose values are known, without the content type. */
  headers: Readonly<Record<string, string>>
  /** The other headers: the text before the value, and the variable for the value. */
  secret: Readonly<Record<string, { before: string; variable: string }>>
  body: string
}

const URL_VARIABLE = 'MCP_BRIDGE_URL'

/**
 * The command for sh; undefined if the client did not use Streamable HTTP, or if the text of its request is not stored
 * completely.
 */
export function curlOf(call: RepeatedCall): RequestCommand | undefined {
  const request = repeatableOf(call)
  if (!request) return undefined
  const { headers, secret, body } = request
  const known = Object.entries({ 'content-type': 'application/json', ...headers })
  const lines = [
    `curl "$${URL_VARIABLE}"`,
    ...known.map(([name, value]) => `-H ${inQuotes(`${name}: ${value}`, 'sh')}`),
    // The shell replaces variables only between these quotes.
    ...Object.entries(secret).map(([name, { before, variable }]) => `-H "${name}: ${before}$${variable}"`),
    `--data-binary ${inQuotes(body, 'sh')}`,
  ]
  return { command: lines.join(' \\\n  '), variables: variablesOf(request, '$') }
}

/** The command for PowerShell, of any version from 5.1 on; undefined if there is none. */
export function powershellRequestOf(call: RepeatedCall): RequestCommand | undefined {
  const request = repeatableOf(call)
  if (!request) return undefined
  const { headers, secret, body } = request
  const known = Object.entries(headers).map(([name, value]) => [name, literal(value)])
  const others = Object.entries(secret).map(([name, { before, variable }]) => [name, `"${before}$env:${variable}"`])
  const command = powershellOf({
    url: `$env:${URL_VARIABLE}`,
    headers: Object.fromEntries([...known, ...others]) as Record<string, string>,
    body,
  })
  return { command, variables: variablesOf(request, '$env:') }
}

function variablesOf({ secret }: RepeatableRequest, sign: string): string[] {
  return [URL_VARIABLE, ...Object.values(secret).map(({ variable }) => variable)].map((name) => sign + name)
}

function repeatableOf(call: RepeatedCall): RepeatableRequest | undefined {
  const request = call.events.find((seen) => isMessage(seen, 'client', 'in', 'request'))
  const payload = request?.payload
  if (call.client?.transport !== 'http' || !payload || payload.cut > 0 || payload.hidden > 0) return undefined
  const message = recordIn(payload.text)
  if (!message) return undefined
  return {
    headers: { accept: 'application/json, text/event-stream', ...metadataOf(call.client, message) },
    secret: secretsOf(call, message),
    // Line breaks and tabs occur only between tokens, and a terminal would act on them.
    body: payload.text.replaceAll(/[\t\r\n]/g, ' '),
  }
}

/** The headers that repeat values of the message or the session. */
function metadataOf(
  { era, revision }: NonNullable<RepeatedCall['client']>,
  { method, params }: JsonRecord,
): Record<string, string> {
  if (era === 'legacy') {
    const known = legacyRevision(revision)
    const isSent = known !== undefined && traits[known].versionHeader && method !== 'initialize'
    return isSent ? { 'mcp-protocol-version': known } : {}
  }
  const { named } = methodTraits(String(method))
  const name = named === undefined ? undefined : (params as JsonRecord | undefined)?.[named]
  return {
    'mcp-protocol-version': revision ?? NEWEST_MODERN,
    'mcp-method': encodeValue(String(method)),
    ...(typeof name === 'string' && { 'mcp-name': encodeValue(name) }),
  }
}

/** The headers whose values the inspector does not have. */
function secretsOf({ session, principal }: RepeatedCall, { method }: JsonRecord): RepeatableRequest['secret'] {
  const inSession = session !== undefined && method !== 'initialize'
  return {
    ...(inSession && { 'mcp-session-id': { before: '', variable: 'MCP_SESSION_ID' } }),
    ...(requiresToken(principal) && { authorization: { before: 'Bearer ', variable: 'TOKEN' } }),
  }
}
