/** Requests of legacy clients that do not go with their session, over Streamable HTTP and HTTP+SSE. */
import { envelope } from '../../support/modern.js'
import { type Request, requestOf } from './input.js'

const PING = '{"jsonrpc":"2.0","id":"the id","method":"ping"}'
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 'hello',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
})
const MODERN = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: envelope() } })
const JSON_TYPE = 'content-type: application/json'
const BOTH = 'accept: application/json, text/event-stream'
const EVENTS = 'accept: text/event-stream'
const SESSION = 'mcp-session-id: {session}'

type Row = [name: string, first: string, lines: string[], body: string, want: Request['want']]

const STREAMABLE: Row[] = [
  ['no session', 'POST {path}', [JSON_TYPE, BOTH], PING, 'refused'],
  ['a session that there is not', 'POST {path}', [JSON_TYPE, BOTH, 'mcp-session-id: nobody'], PING, 'refused'],
  ['the session of somebody else', 'POST {path}', [JSON_TYPE, BOTH, 'mcp-session-id: {foreign}'], PING, 'refused'],
  ['the stream of somebody else', 'GET {path}', [EVENTS, 'mcp-session-id: {foreign}'], '', 'refused'],
  ['the end of somebody else’s', 'DELETE {path}', ['mcp-session-id: {foreign}'], '', 'refused'],
  ['two sessions', 'POST {path}', [JSON_TYPE, BOTH, SESSION, 'mcp-session-id: {foreign}'], PING, 'refused'],
  ['GET without session', 'GET {path}', [EVENTS], '', 'refused'],
  ['GET for JSON', 'GET {path}', ['accept: application/json', SESSION], '', 'refused'],
  ['DELETE without session', 'DELETE {path}', [], '', 'refused'],
  ['DELETE of what there is not', 'DELETE {path}', ['mcp-session-id: nobody'], '', 'refused'],
  ['PUT', 'PUT {path}', [JSON_TYPE, SESSION], PING, 'refused'],
  ['GET from an event that there is not', 'GET {path}', [EVENTS, SESSION, 'last-event-id: p999-999'], '', 'refused'],
  ['GET from two events', 'GET {path}', [EVENTS, SESSION, 'last-event-id: a', 'last-event-id: b'], '', 'refused'],
  ['GET from a long event', 'GET {path}', [EVENTS, SESSION, `last-event-id: ${'9'.repeat(6_000)}`], '', 'refused'],
  ['initialize again', 'POST {path}', [JSON_TYPE, BOTH, SESSION], INITIALIZE, 'any'],
  ['initialize with a session of its own', 'POST {path}', [JSON_TYPE, BOTH, 'mcp-session-id: mine'], INITIALIZE, 'any'],
  ['a modern request', 'POST {path}', [JSON_TYPE, BOTH, SESSION], MODERN, 'refused'],
  [
    'an answer that nobody waits for',
    'POST {path}',
    [JSON_TYPE, BOTH, SESSION],
    '{"jsonrpc":"2.0","id":9,"result":{}}',
    'any',
  ],
  [
    'an error that nobody waits for',
    'POST {path}',
    [JSON_TYPE, BOTH, SESSION],
    '{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"x"}}',
    'any',
  ],
  ['a body with GET', 'GET {path}', [EVENTS, JSON_TYPE], PING, 'any'],
]

const SSE: Row[] = [
  ['no session', 'POST {messages}', [JSON_TYPE], PING, 'refused'],
  ['a session that there is not', 'POST {messages}?sessionId=nobody', [JSON_TYPE], PING, 'refused'],
  ['the session of somebody else', 'POST {foreignMessages}', [JSON_TYPE], PING, 'refused'],
  ['two sessions', 'POST {own}&sessionId=x', [JSON_TYPE], PING, 'any'],
  ['a session of 6 KB', `POST {messages}?sessionId=${'x'.repeat(6_000)}`, [JSON_TYPE], PING, 'refused'],
  ['__proto__', 'POST {messages}?sessionId=__proto__', [JSON_TYPE], PING, 'refused'],
  ['GET of messages', 'GET {own}', [EVENTS], '', 'refused'],
  ['DELETE of messages', 'DELETE {own}', [], '', 'refused'],
  ['POST to the stream', 'POST {stream}', [JSON_TYPE], PING, 'refused'],
  ['PUT', 'PUT {own}', [JSON_TYPE], PING, 'refused'],
  ['a form', 'POST {own}', ['content-type: application/x-www-form-urlencoded'], 'a=b', 'refused'],
  ['an answer that nobody waits for', 'POST {own}', [JSON_TYPE], '{"jsonrpc":"2.0","id":9,"result":{}}', 'any'],
  ['initialize again', 'POST {own}', [JSON_TYPE], INITIALIZE, 'any'],
]

const make = (rows: readonly Row[]) =>
  rows.map(([name, first, lines, body, want]): Request => {
    const head = [`${first} HTTP/1.1`, 'host: {host}', 'authorization: {authorization}', ...lines]
    return { kind: 'sessions', name, bytes: requestOf(head, body), want }
  })

export const sessions = (): Request[] => make(STREAMABLE)
export const sseSessions = (): Request[] => make(SSE)
