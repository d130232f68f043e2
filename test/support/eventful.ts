/** A modern server with events, by the text of the extension (SEP-3415): in answers, on streams, and to addresses. */
import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { ModernHttp } from './modern-http.js'

type Json = Record<string, unknown>

export const EVENTS = 'io.modelcontextprotocol/events'
export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** A type of events that a server lists. */
interface EventType {
  name: string
  delivery: string[]
}

const TYPES: EventType[] = [
  { name: 'mail.received', delivery: ['poll', 'push', 'webhook'] },
  { name: 'mail.secret', delivery: ['poll'] },
  { name: 'deploy.done', delivery: ['webhook'] },
]

export interface Eventful {
  url: string
  /** The params of each request for events, with its method. */
  asked: (Json & { method: string })[]
  /** Streams that are open. */
  streams: Set<ServerResponse>
  /** The filters of subscriptions that came. */
  filters: Json[]
  /** Tells those that subscribed to it that the list of types has changed. */
  changed(): void
}

/** Starts one. Cursors begin with `label`, which tells servers apart. */
export async function startEventful(t: Test, { label = 'one', types = TYPES } = {}): Promise<Eventful> {
  const asked: Eventful['asked'] = []
  const streams = new Set<ServerResponse>()
  const filters: Json[] = []
  const told = new Map<ServerResponse, unknown>()
  const subscriptions = new Set<string>()
  const occurrence = (name: unknown) => ({
    eventId: `evt_${label}`,
    name,
    timestamp: '2026-11-01T00:00:00Z',
    data: { from: label },
  })
  const keyOf = ({ name, arguments: given, delivery }: Json) =>
    JSON.stringify([name, given, (delivery as Json | undefined)?.['url']])

  const answers: Record<string, (params: Json) => Json> = {
    'events/list': () => ({ events: types.map((type) => ({ ...type, inputSchema: { type: 'object' } })) }),
    'events/poll': ({ name }) => ({
      events: [occurrence(name)],
      cursor: `${label}-2`,
      truncated: false,
      hasMore: false,
      nextPollMs: 30_000,
    }),
    'events/subscribe': (params) => {
      subscriptions.add(keyOf(params))
      return {
        id: `sub_${label}`,
        refreshBefore: new Date(Date.now() + 60_000).toISOString(),
        cursor: `${label}-1`,
        truncated: false,
      }
    },
    'events/unsubscribe': (params) => {
      if (!subscriptions.delete(keyOf(params))) throw new Error('no such subscription')
      return {}
    },
  }

  function stream(id: unknown, name: unknown, response: ServerResponse) {
    const tell = (what: string, params: Json) => tellOf(response, id, `notifications/events/${what}`, params)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    tell('active', { cursor: `${label}-1`, truncated: false })
    tell('event', { ...occurrence(name), cursor: `${label}-2` })
    tell('heartbeat', { cursor: `${label}-2` })
    streams.add(response)
    response.on('close', () => streams.delete(response))
  }

  function listen(id: unknown, filter: Json, response: ServerResponse) {
    filters.push(filter)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const notifications = filter['eventsListChanged'] === true ? { eventsListChanged: true } : {}
    tellOf(response, id, 'notifications/subscriptions/acknowledged', { notifications })
    told.set(response, id)
    response.on('close', () => told.delete(response))
  }

  const { url } = await ModernHttp.start(t, {
    override: ({ message }: { message?: Json | undefined }, response: ServerResponse) => {
      const { method = '', id, params = {} } = (message ?? {}) as { method?: string; id?: unknown; params?: Json }
      const send = (body: Json) => {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
        return true
      }
      const settings = { listChanged: true }
      const capabilities = { tools: {}, events: settings, extensions: { [EVENTS]: settings } }
      if (method === 'subscriptions/listen') {
        listen(id, params['notifications'] as Json, response)
        return true
      }
      if (method === 'server/discover')
        return send({
          result: {
            resultType: 'complete',
            supportedVersions: ['2026-07-28'],
            capabilities,
            ttlMs: 0,
            cacheScope: 'private',
          },
        })
      if (!method.startsWith('events/')) return false
      const { _meta, ...given } = params
      asked.push({ method, ...given })
      const type = types.find(({ name }) => name === params['name'])
      if (method !== 'events/list' && !type)
        return send({ error: { code: -32023, message: 'NotFound', data: { kind: 'event' } } })
      if (method === 'events/stream') {
        stream(id, params['name'], response)
        return true
      }
      try {
        return send({ result: { resultType: 'complete', ...answers[method]?.(params) } })
      } catch {
        return send({ error: { code: -32023, message: 'NotFound', data: { kind: 'subscription' } } })
      }
    },
  })
  const changed = () => {
    for (const [response, id] of told) tellOf(response, id, 'notifications/events/list_changed', {})
  }
  return { url, asked, streams, filters, changed }
}

/** Sends a notification that belongs to a request. */
function tellOf(response: ServerResponse, id: unknown, method: string, params: Json): void {
  const _meta = { 'io.modelcontextprotocol/subscriptionId': id }
  response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params: { ...params, _meta } })}\n\n`)
}

/** The params of a subscription whose events go to an address. */
export function webhook(url: string, name = 'mail.received', more: Json = {}): Json {
  return { name, arguments: {}, delivery: { mode: 'webhook', url, secret: SECRET }, cursor: null, ...more }
}
