/** Messages that are as they should be, and single values of them that are not. */
import { CAPABILITIES, envelope } from '../../support/modern.js'
import type { Era } from './input.js'

type Json = Record<string, unknown>

const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
const ASKED = { elicitation: {} }

/** Params of each method that clients send, in the eras that have it. */
const PARAMS: [method: string, params: Json, era?: Era][] = [
  ['tools/call', { name: 'echo', arguments: { text: 'here', message: 'here' } }],
  ['tools/list', { cursor: 'next' }],
  ['prompts/get', { name: 'greet', arguments: { who: 'you' } }],
  ['resources/read', { uri: 'test://static' }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'a' } }],
  ['server/discover', {}, 'modern'],
  [
    'subscriptions/listen',
    { notifications: { toolsListChanged: true, resourceSubscriptions: ['test://x'] } },
    'modern',
  ],
  ['tasks/get', { taskId: 'x' }, 'modern'],
  [
    'tools/call',
    { name: 'echo', arguments: {}, inputResponses: { a: { action: 'accept' } }, requestState: 'x' },
    'modern',
  ],
  ['notifications/cancelled', { requestId: 'x', reason: 'y' }],
  ['logging/setLevel', { level: 'debug' }, 'legacy'],
  ['resources/subscribe', { uri: 'test://x' }, 'legacy'],
  ['initialize', INITIALIZE, 'legacy'],
  ['notifications/progress', { progressToken: 'x', progress: 1, total: 2, message: 'm' }, 'legacy'],
]

export interface Message extends Json {
  jsonrpc: '2.0'
  id?: unknown
  method: string
  params: Json
}

/** One good message of each kind. */
export function messagesOf(era: Era): Message[] {
  return PARAMS.filter(([, , only]) => only === undefined || only === era).map(([method, params]) => {
    const id = method.startsWith('notifications/') ? {} : { id: 'the id' }
    const meta =
      era === 'modern' ? { _meta: envelope({ [CAPABILITIES]: ASKED, progressToken: 'p', traceparent: 'x' }) } : {}
    return { jsonrpc: '2.0', ...id, method, params: { ...params, ...meta } }
  })
}

/** A good call of `echo`, whose answer shows that all is well. */
export function callOf(era: Era): Message {
  return messagesOf(era)[0] as Message
}

const deep = (levels: number, open: string, close: string, core = '0') =>
  open.repeat(levels) + core + close.repeat(levels)

/** JSON of values that nobody expects, in whichever place. */
export const VALUES: [name: string, json: string][] = [
  ['null', 'null'],
  ['true', 'true'],
  ['zero', '0'],
  ['minus zero', '-0'],
  ['minus one', '-1'],
  ['a fraction', '1.5'],
  ['infinity', '1e400'],
  ['2^53', '9007199254740993'],
  ['an exponent', '1E+21'],
  ['a number of 400 digits', '9'.repeat(400)],
  ['an empty text', '""'],
  ['spaces', '"   "'],
  ['300 characters', JSON.stringify('x'.repeat(300))],
  ['70,000 characters', JSON.stringify('y'.repeat(70_000))],
  ['a NUL', '"a\\u0000b"'],
  ['half a surrogate pair', '"\\ud800"'],
  ['line separators', '"a\\u2028b\\u2029c\\u0085d"'],
  ['a change of direction', '"a\\u202eb"'],
  ['a line break with a header', '"a\\r\\nx-evil: 1"'],
  ['an event within a text', '"a\\n\\ndata: {}\\n\\n"'],
  ['__proto__', '"__proto__"'],
  ['constructor', '"constructor"'],
  ['a path that climbs', '"../../../../etc/passwd"'],
  ['a command', '"$(touch /tmp/never); `id` | sh"'],
  ['a script', '"javascript:alert(1)"'],
  ['an address inside', '"http://169.254.169.254/latest/meta-data"'],
  ['an emoji', '"👩‍💻"'],
  ['an empty array', '[]'],
  ['an array of nulls', '[null,null]'],
  ['200 arrays in each other', deep(200, '[', ']')],
  ['an empty object', '{}'],
  ['an object with __proto__', '{"__proto__":{"polluted":true}}'],
  ['an object with constructor', '{"constructor":{"prototype":{"polluted":true}}}'],
  ['60 objects in each other', deep(50, '{"a":', '}')],
  ['an object whose toString is no function', '{"toString":1,"valueOf":1,"then":1,"length":-1}'],
]
