/**
 * A server with events (SEP-3415) on the SDK, which has nothing for them yet: `events-server.program.ts stdio`, or
 * `events-server.program.ts http`, which prints its address. Its tool `emit` has something happen. What goes to addresses is sent
 * to EVENTS_RECEIVER in place of them, signed, after a challenge.
 */
import { createHmac, randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import process from 'node:process'
import { createMcpHandler, McpServer, ProtocolError, type ServerContext } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'
import { listen, report } from '../conformance/modern/listen.js'

type Json = Record<string, unknown>

interface Occurrence {
  eventId: string
  name: string
  timestamp: string
  data: { text: string }
}

interface Subscription {
  id: string
  secret: string
}

const EXTENSION = 'io.modelcontextprotocol/events'
const TYPES = ['mail.received', 'mail.secret']
/** Milliseconds. */
const HEARTBEAT = 200
const LIFETIME = 3_600_000

/** What has happened. A cursor is a number of occurrences. */
const log: Occurrence[] = []
const happened = new EventEmitter().setMaxListeners(0)
const subscriptions = new Map<string, Subscription>()

const Asked = z.looseObject({
  name: z.string(),
  arguments: z.looseObject({}).nullish(),
  cursor: z.string().nullish(),
  delivery: z.looseObject({ url: z.url({ protocol: /^https$/ }), secret: z.string().optional() }).optional(),
})
type Asked = z.infer<typeof Asked>

const complete = (result: Json) => ({ resultType: 'complete' as const, ...result })
const keyOf = ({ name, arguments: given, delivery }: Asked) => JSON.stringify([name, given ?? {}, delivery?.url])

function checkType({ name }: Asked): void {
  if (!TYPES.includes(name)) throw new ProtocolError(-32023, 'NotFound', { kind: 'event' })
}

/** The occurrences of a type after a cursor, with the cursor after each. */
function after({ name, cursor }: Asked): (Occurrence & { cursor: string })[] {
  const from = cursor === undefined || cursor === null ? log.length : Number(cursor)
  return log.flatMap((one, at) => (at >= from && one.name === name ? [{ ...one, cursor: `${at + 1}` }] : []))
}

function poll(asked: Asked): Json {
  const events = after(asked).map(({ cursor: _, ...one }) => one)
  return complete({ events, cursor: `${log.length}`, truncated: false, hasMore: false, nextPollMs: 1_000 })
}

/** Tells of a type until the client leaves. */
async function stream(asked: Asked, { mcpReq }: ServerContext): Promise<Json> {
  const _meta = { 'io.modelcontextprotocol/subscriptionId': mcpReq.id }
  const tell = (what: string, params: Json) =>
    mcpReq.notify({ method: `notifications/events/${what}`, params: { ...params, _meta } } as never)
  let cursor = asked.cursor ?? `${log.length}`
  await tell('active', { cursor, truncated: false })
  const { signal } = mcpReq
  while (!signal.aborted) {
    for (const one of after({ ...asked, cursor })) await tell('event', { ...one })
    cursor = `${log.length}`
    const beat = AbortSignal.timeout(HEARTBEAT)
    await once(happened, 'event', { signal: AbortSignal.any([signal, beat]) }).catch(() => {})
    if (beat.aborted && !signal.aborted) await tell('heartbeat', { cursor })
  }
  return complete({ _meta })
}

async function subscribe(asked: Asked): Promise<Json> {
  const { secret = '' } = asked.delivery ?? {}
  if (!/^whsec_[\w+/-]{32,}=*$/.test(secret)) throw new ProtocolError(-32602, 'delivery.secret is not valid')
  const key = keyOf(asked)
  const id = subscriptions.get(key)?.id ?? `sub_${randomUUID()}`
  const challenge = randomUUID()
  const answer = await post({ id, secret }, `msg_verification_${challenge}`, { type: 'verification', challenge })
  if (((await answer.json()) as Json)['challenge'] !== challenge)
    throw new ProtocolError(-32027, 'CallbackEndpointError', { reason: 'challenge_failed' })
  subscriptions.set(key, { id, secret })
  const refreshBefore = new Date(Date.now() + LIFETIME).toISOString()
  return complete({ id, refreshBefore, cursor: `${log.length}`, truncated: false })
}

function unsubscribe(asked: Asked): Json {
  if (subscriptions.delete(keyOf(asked))) return complete({})
  throw new ProtocolError(-32023, 'NotFound', { kind: 'subscription' })
}

function post({ id, secret }: Subscription, message: string, content: Json): Promise<Response> {
  const body = JSON.stringify(content)
  const time = `${Math.floor(Date.now() / 1000)}`
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${message}.${time}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'webhook-id': message,
    'webhook-timestamp': time,
    'webhook-signature': `v1,${signature}`,
    'x-mcp-subscription-id': id,
  }
  return fetch(process.env['EVENTS_RECEIVER'] as string, { method: 'POST', headers, body, redirect: 'error' })
}

async function emit(name: string, text: string): Promise<void> {
  const eventId = `evt_${log.length + 1}`
  const one: Occurrence = { eventId, name, timestamp: new Date().toISOString(), data: { text } }
  log.push(one)
  happened.emit('event')
  const wanted = [...subscriptions].filter(([key]) => (JSON.parse(key) as unknown[])[0] === name)
  await Promise.all(wanted.map(([, to]) => post(to, eventId, { ...one, cursor: `${log.length}` })))
}

function create(): McpServer {
  const settings = { listChanged: false }
  const capabilities = { tools: {}, extensions: { [EXTENSION]: settings } }
  const server = new McpServer({ name: 'events', version: '1.0.0' }, { capabilities })
  const inputSchema = z.object({ name: z.string(), text: z.string() })
  server.registerTool('emit', { description: 'Has something happen.', inputSchema }, async ({ name, text }) => {
    await emit(name, text)
    return { content: [{ type: 'text', text: 'done' }] }
  })
  const on = (method: string, answer: (asked: Asked, context: ServerContext) => Json | Promise<Json>) =>
    server.server.setRequestHandler(method, { params: Asked }, async (asked, context) => {
      checkType(asked)
      return answer(asked, context)
    })
  server.server.setRequestHandler('events/list', { params: z.looseObject({}) }, async () => {
    const delivery = ['poll', 'push', 'webhook']
    const inputSchema = { type: 'object' }
    return complete({ events: TYPES.map((name) => ({ name, description: name, delivery, inputSchema })) })
  })
  on('events/poll', poll)
  on('events/stream', stream)
  on('events/subscribe', subscribe)
  on('events/unsubscribe', unsubscribe)
  return server
}

if (process.argv[2] === 'http') {
  const handler = createMcpHandler(create, { legacy: 'reject', onerror: report })
  process.stdout.write(`${await listen(handler, 0)}\n`)
} else {
  serveStdio(create, { legacy: 'reject', onerror: report })
  process.stdin.once('end', () => process.exit())
}
