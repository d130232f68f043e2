/** What has to be so of everything that reaches a server of a legacy revision. */
import type { Received } from '../support/legacy-http.js'
import { problems, type SchemaRevision } from '../support/schema.js'
import type { Json } from './client.js'
import type { Reached } from './servers.js'

/** Keys of `_meta` that only requests of the modern era have, or only answers. */
const MODERN_KEYS =
  /^io\.modelcontextprotocol\/(?:protocolVersion|clientInfo|clientCapabilities|logLevel|serverInfo|subscriptionId)$/
const MODERN_HEADERS = /^mcp-(?:method|name|param-.*)$/
const MODERN_METHODS = ['server/discover', 'subscriptions/listen', 'tasks/update']
/** Members of params that only requests of the modern era have. */
const MODERN_PARAMS = ['inputResponses', 'requestState']

/** The specification's names for what clients send. */
const DEFINITIONS: Record<string, string> = {
  initialize: 'InitializeRequest',
  ping: 'PingRequest',
  'logging/setLevel': 'SetLevelRequest',
  'tools/list': 'ListToolsRequest',
  'tools/call': 'CallToolRequest',
  'prompts/list': 'ListPromptsRequest',
  'prompts/get': 'GetPromptRequest',
  'resources/list': 'ListResourcesRequest',
  'resources/templates/list': 'ListResourceTemplatesRequest',
  'resources/read': 'ReadResourceRequest',
  'resources/subscribe': 'SubscribeRequest',
  'resources/unsubscribe': 'UnsubscribeRequest',
  'completion/complete': 'CompleteRequest',
  'notifications/initialized': 'InitializedNotification',
  'notifications/cancelled': 'CancelledNotification',
}

/**
 * What is wrong with what has reached a legacy server. `others` are requests over HTTP that bring no message as well:
 * those that open streams and end sessions.
 */
export function legacyComplaints(
  revision: SchemaRevision,
  reached: readonly Reached[],
  others: readonly Received[],
): string[] {
  return [
    ...reached.flatMap((one) => complaintsOf(revision, one).map((says) => `${says}: ${one.text}`)),
    ...sessionsIn(reached).flatMap(complaintsOfSession),
    ...others
      .filter(({ method }) => method === 'GET' || method === 'DELETE')
      .flatMap(({ method, headers }) =>
        complaintsOfHeaders(revision, headers, true).map((says) => `${says}: ${method}`),
      ),
  ]
}

function complaintsOf(revision: SchemaRevision, { message, headers, session }: Reached): string[] {
  const method = String(message['method'])
  const params = (message['params'] ?? {}) as Json
  const isOpening = method === 'initialize'
  return [
    ...keysDeep(message).filter((key) => MODERN_KEYS.test(key)),
    ...MODERN_PARAMS.filter((key) => key in params),
    ...(MODERN_METHODS.includes(method) ? [`${method} is not of this era`] : []),
    ...(session === undefined ? ['there is no session'] : []),
    ...(headers ? complaintsOfHeaders(revision, headers, session?.startsWith('session-') === true && !isOpening) : []),
    ...(headers && isOpening && headers['mcp-protocol-version'] !== undefined
      ? ['a version before the handshake']
      : []),
    ...problems(revision, definitionOf(revision, message), message),
  ]
}

function definitionOf(revision: SchemaRevision, { method, id, error }: Json): string {
  // Until 2025-06-18 the definition of a response is that of a result alone.
  if (method === undefined) return error !== undefined && revision < '2025-11-25' ? 'JSONRPCError' : 'JSONRPCResponse'
  return DEFINITIONS[String(method)] ?? (id === undefined ? 'JSONRPCNotification' : 'JSONRPCRequest')
}

/** `inSession` says whether there has to be a session and a version. */
function complaintsOfHeaders(revision: string, headers: Received['headers'], inSession: boolean): string[] {
  const version = headers['mcp-protocol-version']
  const session = headers['mcp-session-id']
  return [
    ...Object.keys(headers).filter((name) => MODERN_HEADERS.test(name)),
    ...(version !== undefined && version !== revision ? [`the version is ${version}`] : []),
    ...(inSession && version === undefined ? ['the version is missing'] : []),
    ...(inSession && !/^session-\d+$/.test(String(session)) ? [`the session is ${session}`] : []),
    ...(!inSession && session !== undefined ? [`there is a session ${session}`] : []),
  ]
}

function sessionsIn(reached: readonly Reached[]): Reached[][] {
  const names = new Set(reached.map(({ session }) => session))
  return [...names].map((name) => reached.filter(({ session }) => session === name))
}

/** A session begins with a handshake, which happens once, and no id comes twice. */
function complaintsOfSession(reached: Reached[]): string[] {
  const [first, second] = reached
  const handshakes = reached.filter(({ message }) => message['method'] === 'initialize')
  const ids = reached.filter(({ message }) => message['method'] && 'id' in message).map(({ message }) => message['id'])
  const name = first?.session
  return [
    ...(first?.message['method'] === 'initialize' ? [] : [`the session ${name} begins with ${first?.text}`]),
    ...(!second || second.message['method'] === 'notifications/initialized'
      ? []
      : [`the session ${name} goes on with ${second.text}`]),
    ...(handshakes.length === 1 ? [] : [`there are ${handshakes.length} handshakes in the session ${name}`]),
    ...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `the id ${JSON.stringify(id)} is there twice`),
  ]
}

/** Keys of `_meta`, wherever there is one: what is inside of arguments is a matter of theirs. */
function keysDeep(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => (key === 'arguments' ? [] : [key, ...keysDeep(inner)]))
}
