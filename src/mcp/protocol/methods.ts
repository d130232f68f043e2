/** Lists the properties of each method of MCP. Unknown methods are forwarded unchanged. */

/** The properties of a method. */
export interface MethodTraits {
  /** Server capability that offers the method. */
  capability?: 'tools' | 'prompts' | 'resources' | 'completions' | 'logging'
  /** The parameter that `Mcp-Name` mirrors. */
  named?: 'name' | 'uri' | 'taskId'
  /** The result may be `input_required`: the server may ask for input first. */
  asks?: true
  /** Sending it twice has the same effect as sending it once. */
  idempotent?: true
  /** The result carries `ttlMs` and `cacheScope`. */
  cacheable?: true
  /** The call stays open until one side ends it, so it has no idle timeout. */
  endless?: true
  /** The result is always empty, so a result that is not an object is read as an empty one. */
  empty?: true
  /** It belongs to the extension for events. */
  ofEvents?: true
  /** The specification does not define it. */
  isUnknown?: true
  /** Eras that have the method. */
  eras: 'both' | 'modern' | 'legacy'
}

/** Methods that need special handling. */
export const CALL_TOOL = 'tools/call'
export const LISTEN = 'subscriptions/listen'
export const EVENT_LIST = 'events/list'
export const EVENT_SUBSCRIBE = 'events/subscribe'
/** Methods of events that name a type of events. */
export const EVENT_USES: ReadonlySet<string> = new Set([
  ...['events/poll', 'events/stream'],
  ...[EVENT_SUBSCRIBE, 'events/unsubscribe'],
])

export const methods: Readonly<Record<string, MethodTraits>> = {
  'server/discover': { eras: 'modern', idempotent: true, cacheable: true },
  [LISTEN]: { eras: 'modern', endless: true },
  'tasks/update': { eras: 'modern', named: 'taskId' },

  'tools/list': { eras: 'both', capability: 'tools', idempotent: true, cacheable: true },
  [CALL_TOOL]: { eras: 'both', capability: 'tools', named: 'name', asks: true },
  'prompts/list': { eras: 'both', capability: 'prompts', idempotent: true, cacheable: true },
  'prompts/get': { eras: 'both', capability: 'prompts', named: 'name', asks: true, idempotent: true },
  'resources/list': { eras: 'both', capability: 'resources', idempotent: true, cacheable: true },
  'resources/templates/list': { eras: 'both', capability: 'resources', idempotent: true, cacheable: true },
  'resources/read': {
    eras: 'both',
    capability: 'resources',
    named: 'uri',
    asks: true,
    idempotent: true,
    cacheable: true,
  },
  'completion/complete': { eras: 'both', capability: 'completions', idempotent: true },
  // Skills (io.modelcontextprotocol/skills).
  'skills/list': { eras: 'both', idempotent: true, cacheable: true },
  'skills/get': { eras: 'both', idempotent: true, cacheable: true },
  'resources/directory/read': { eras: 'both', idempotent: true, cacheable: true },
  // Events (io.modelcontextprotocol/events).
  [EVENT_LIST]: { eras: 'modern', ofEvents: true, idempotent: true },
  'events/poll': { eras: 'modern', ofEvents: true, idempotent: true },
  'events/stream': { eras: 'modern', ofEvents: true, endless: true },
  [EVENT_SUBSCRIBE]: { eras: 'modern', ofEvents: true, idempotent: true },
  'events/unsubscribe': { eras: 'modern', ofEvents: true },

  'tasks/get': { eras: 'both', named: 'taskId', idempotent: true },
  'tasks/cancel': { eras: 'both', named: 'taskId' },

  initialize: { eras: 'legacy' },
  ping: { eras: 'legacy', idempotent: true, empty: true },
  'logging/setLevel': { eras: 'legacy', capability: 'logging', idempotent: true, empty: true },
  'resources/subscribe': { eras: 'legacy', capability: 'resources', idempotent: true, empty: true },
  'resources/unsubscribe': { eras: 'legacy', capability: 'resources', idempotent: true, empty: true },
  'tasks/list': { eras: 'legacy', idempotent: true },
  'tasks/result': { eras: 'legacy', idempotent: true, asks: true },
}

/** A list of a server: what one of its items is, and the keys that hold the items and identify one. */
export interface ListTraits {
  item: 'tool' | 'prompt' | 'resource' | 'template'
  /** The capability that offers it, which is also the option that chooses from it. */
  capability: 'tools' | 'prompts' | 'resources'
  key: string
  id: 'name' | 'uri' | 'uriTemplate'
}

/** The lists that every server may have, by method. */
export const LISTS: ReadonlyMap<string, ListTraits> = new Map<string, ListTraits>([
  ['tools/list', { item: 'tool', capability: 'tools', key: 'tools', id: 'name' }],
  ['prompts/list', { item: 'prompt', capability: 'prompts', key: 'prompts', id: 'name' }],
  ['resources/list', { item: 'resource', capability: 'resources', key: 'resources', id: 'uri' }],
  [
    'resources/templates/list',
    { item: 'template', capability: 'resources', key: 'resourceTemplates', id: 'uriTemplate' },
  ],
])

const UNKNOWN: MethodTraits = { eras: 'both', isUnknown: true }

export function methodTraits(method: string): MethodTraits {
  return Object.hasOwn(methods, method) ? (methods[method] as MethodTraits) : UNKNOWN
}

/** Whether a method is one of the extension for events. */
export function isOfEvents(method: string): boolean {
  return methodTraits(method).ofEvents === true
}

/** Whether clients send requests with this method. */
export function isOfClients(method: string): boolean {
  return Object.hasOwn(methods, method)
}

/** Says that the client's roots have changed. */
export const ROOTS_CHANGED = 'notifications/roots/list_changed'

/** Notifications of the legacy era that modern clients must not send. */
export const LEGACY_CLIENT_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/initialized',
  ROOTS_CHANGED,
  'notifications/progress',
])

/** Whether a notification of a client concerns its session in the legacy era, or tasks of it. */
export function isOfLegacySession(method: string): boolean {
  return LEGACY_CLIENT_NOTIFICATIONS.has(method) || method === 'notifications/tasks/status'
}

/** Severity of log messages (RFC 5424), least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export function isLogLevel(level: unknown): level is LogLevel {
  return (LOG_LEVELS as readonly unknown[]).includes(level)
}

/** Whether `level` is at least as severe as the least level that is wanted; not if none is wanted, or `level` is invalid. */
export function isWantedLevel(level: unknown, wanted: LogLevel | undefined): boolean {
  return wanted !== undefined && isLogLevel(level) && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(wanted)
}
