/** The events extension (SEP-3415): what the bridge carries, and where it does not offer it. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

type Json = Record<string, unknown>

const EVENTS = 'io.modelcontextprotocol/events'
const OCCURRENCE = { eventId: 'evt_1', name: 'mail.received', timestamp: '2026-11-01T00:00:00Z', data: { from: 'a' } }
const RESULTS: Record<string, Json> = {
  'events/list': { events: [{ name: 'mail.received', delivery: ['poll', 'push'], inputSchema: { type: 'object' } }] },
  'events/poll': {
    events: [OCCURRENCE],
    cursor: 'historyId_99842',
    truncated: false,
    hasMore: false,
    nextPollMs: 30_000,
  },
}

/** A server with events. */
async function eventful(t: Test) {
  const asked: Json[] = []
  const { url } = await ModernHttp.start(t, {
    override: ({ message }: { message?: Json | undefined }, response: ServerResponse) => {
      const { method = '', id, params } = (message ?? {}) as { method?: string; id?: unknown; params?: Json }
      const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
      const capabilities = { tools: {}, events: {}, extensions: { [EVENTS]: {} } }
      const result =
        method === 'server/discover' ? { supportedVersions: ['2026-07-28'], capabilities } : RESULTS[method]
      if (!result) return false
      if (method.startsWith('events/')) asked.push(params ?? {})
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { ...complete, ...result } }))
      return true
    },
  })
  return { url, asked }
}

const capabilitiesAt = async (url: string) =>
  (await call(url, 'server/discover')).message.result?.['capabilities'] as Json | undefined

t.test('a modern client has the events of a modern server, with cursors as the server gave them', async (t) => {
  const server = await eventful(t)
  const { url } = await startBridge(t, { url: server.url })
  t.match(await capabilitiesAt(url), { extensions: { [EVENTS]: {} } })
  t.match((await call(url, 'events/list')).message, { result: RESULTS['events/list'] as object })
  const params = { name: 'mail.received', arguments: { from: '*' }, cursor: 'historyId_1', maxEvents: 50 }
  t.match((await call(url, 'events/poll', params)).message, { result: RESULTS['events/poll'] as object })
  t.match(server.asked.at(-1), params)
})

t.test('a legacy server has no events, and none are offered', async (t) => {
  const { url } = await startBridge(t, { url: (await LegacyHttp.start(t)).url })
  t.notMatch(JSON.stringify(await capabilitiesAt(url)), /events/)
  t.match((await call(url, 'events/list')).message, { error: { code: -32601 } })
})

t.test('where tools need scopes, events are only for callers with all of them', async (t) => {
  const server = await eventful(t)
  const tokens = {
    alice: { token: 'alice-0123456789abcdef', scopes: ['mail'] },
    bob: { token: 'bob-0123456789abcdefgh', scopes: [] },
  }
  const { url } = await startBridge(t, { url: server.url, scopes: { echo: ['mail'] } }, { auth: { tokens } })
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  t.match((await call(url, 'server/discover', {}, as('alice-0123456789abcdef'))).message.result, {
    capabilities: { extensions: { [EVENTS]: {} } },
  })
  t.notMatch(JSON.stringify((await call(url, 'server/discover', {}, as('bob-0123456789abcdefgh'))).message), /events/)
  t.notOk((await call(url, 'events/list', {}, as('bob-0123456789abcdefgh'))).message.result)
  t.same(server.asked, [])
})
