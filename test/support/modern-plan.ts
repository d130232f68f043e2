/** What scripted modern servers can be told to be like, and what they say was wrong with what reached them. */
import { problems } from './schema.js'

type Json = Record<string, unknown>

/** For any of them; what a transport adds is with it. */
export interface ModernPlan {
  capabilities?: object
  /** What `server/discover` says is spoken. */
  supportedVersions?: string[]
  /** Where the server says who it is: in `_meta` of every result, in the body of the discovery, or nowhere. */
  serverInfo?: 'meta' | 'body' | 'none'
  /** How many of the first `server/discover` are never answered. */
  silentDiscovers?: number
  /** Milliseconds until anything is answered. */
  slowStart?: number
  /** One page of each list, in place of two. */
  pages?: 1
  ttlMs?: number
  cacheScope?: 'public' | 'private'
  /** Calls of `mirrored` are refused with -32020, whatever their headers, until it has been listed. */
  refuseUntilListed?: boolean
  /** Subscriptions are acknowledged with nothing and end at once, or the method is unknown, at once or from the second on. */
  listen?: 'empty' | 'refused' | 'once'
  /** Legacy clients are answered as well: with sessions, or without. On a pipe there is no difference. */
  dual?: 'session' | 'sessionless'
  /** A file that gets a line for each execution of `act`: its `key`. */
  executions?: string
}

export interface Violation {
  /** Name of the rule: see test/fixtures/modern-rules.mjs. `retry`, `request-state` and `input` are about answers. */
  rule: string
  says: string
  method?: unknown
  id?: unknown
}

/** The specification's names for what clients send. */
const DEFINITIONS: Record<string, string> = {
  'server/discover': 'DiscoverRequest',
  'tools/list': 'ListToolsRequest',
  'tools/call': 'CallToolRequest',
  'prompts/list': 'ListPromptsRequest',
  'prompts/get': 'GetPromptRequest',
  'resources/list': 'ListResourcesRequest',
  'resources/templates/list': 'ListResourceTemplatesRequest',
  'resources/read': 'ReadResourceRequest',
  'completion/complete': 'CompleteRequest',
  'subscriptions/listen': 'SubscriptionsListenRequest',
  'notifications/cancelled': 'CancelledNotification',
}

/** Adds to what a server found whatever the specification's schema has to say about messages that passed it. */
export function withSchema(violations: readonly Violation[], messages: readonly (Json | undefined)[]): Violation[] {
  const passed = messages
    .filter((message) => typeof message === 'object' && message !== null)
    .filter(({ method, id }) => !violations.some((known) => known.method === method && known.id === id))
  const found = passed.flatMap((message) => {
    const { method, id } = message
    const plain = id === undefined ? 'JSONRPCNotification' : 'JSONRPCRequest'
    const definition = DEFINITIONS[String(method)] ?? plain
    return problems('2026-07-28', definition, message).map((says): Violation => ({ rule: 'schema', says, method, id }))
  })
  return [...violations, ...found]
}
