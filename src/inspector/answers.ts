/** What viewers of the inspector can read: events, calls, servers, sessions and exports. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import { error as errorMessage } from '../base/rpc/message.js'
import { EVENT_HEADERS } from '../base/rpc/sse.js'
import { inChunks, inTurns } from '../base/time/in-turns.js'
import type { InspectedBridge } from '../mcp/ports/inspected-bridge.js'
import { type CallFilter, readFilter } from './filter.js'
import { toHar } from './har.js'
import type { OtherSource } from './other-source.js'
import type { PageFiles } from './page.js'
import type { RecordedEvent } from './recorder/events.js'
import type { Ring } from './ring.js'
import { type ShownEvents, withPayload } from './shown-events.js'
import { view } from './viewer.js'
import { type CallView, Views } from './views.js'

export interface InspectorOptions {
  ring: Ring
  /** Undefined for the bridge in this process. */
  source?: OtherSource | undefined
  version: string
  /** A name for the only server, by which people tell bridges apart. */
  title?: string | undefined
  /** The token that a viewer must send; undefined if only its owner can reach the inspector. */
  token: string | undefined
  /** Globs of JSON Pointers whose values are hidden. */
  hide: readonly string[]
  /** By default the one that the build has made. */
  page?: PageFiles | undefined
  /** What is inspected. */
  bridge: InspectedBridge
  /** Whether viewers may call servers. */
  mayTry: boolean
  /** The token for calls, which also allows viewing; undefined if the token of viewers is enough. */
  tryToken: string | undefined
  /** Gets who views, and what viewers change. */
  log?: Pick<Log, 'info'> | undefined
}

/** What an answer is made of. */
export interface Inspected extends InspectorOptions, ShownEvents {
  /** The first event that a viewer gets. */
  hello: object
  /** Functions that end the streams of events. */
  viewers: Set<() => void>
  /** The reason why the sender of a request may not change or call `what`; undefined if it may. */
  whyReadOnly(request: FastifyRequest, what: string): string | undefined
}

/** Most streams of events at once. */
const MAX_VIEWERS = 16
/** Most calls in one answer. */
const MAX_CALLS = 2_000

/** Other sites can neither read nor frame the page, the page loads nothing from other origins, and nothing is cached. */
export const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

export function follow(inspected: Inspected, request: FastifyRequest, reply: FastifyReply): void {
  const { ring, source, viewers, log, hello, withText } = inspected
  if (viewers.size >= MAX_VIEWERS)
    throw new Fault('overloaded', `Too many viewers of the inspector (at most ${MAX_VIEWERS})`, { retryAfter: 1 })
  const query = queryOf(request)
  const after = numberOf(query.get('after') ?? request.headers['last-event-id'])
  const show = query.has('payloads') || source?.file !== undefined ? withText : undefined
  log?.info({ event: 'inspector_opened', from: request.ip, payloads: ring.kept.payloads }, 'inspector opened')
  reply.hijack()
  reply.raw.writeHead(200, { ...HEADERS, ...EVENT_HEADERS, 'content-type': 'text/event-stream; charset=utf-8' })
  const end = view(reply.raw, { ring, after, hello: { ...hello, at: ring.time }, show })
  viewers.add(end)
  reply.raw.once('close', () => viewers.delete(end))
}

export async function listCalls(inspected: Inspected, request: FastifyRequest) {
  const query = queryOf(request)
  const filter = filterIn(inspected, query)
  const { problem } = filter
  const views = await viewsOf(inspected)
  const { lost, last } = views
  const limit = Math.min(numberOf(query.get('limit') ?? undefined) || MAX_CALLS, MAX_CALLS)
  const found = await matching(inspected, views, filter)
  const calls = found.slice(-limit).map(({ events, ...call }) => ({ ...call, more: call.more + events.length }))
  return { calls, last, lost, ...(problem !== undefined && { problem }) }
}

export async function callsFound({ ring, hasText }: Inspected, request: FastifyRequest) {
  const query = queryOf(request)
  const part = (query.get('text') ?? '').toLowerCase()
  const calls = new Set<string>()
  const { last } = ring
  for await (const seen of inTurns(part === '' ? [] : ring.after(numberOf(query.get('after') ?? undefined))))
    if (seen.call !== undefined && !calls.has(seen.call) && hasText(seen, part)) calls.add(seen.call)
  return { calls: [...calls], last }
}

export async function oneCall(inspected: Inspected, { params }: FastifyRequest, reply: FastifyReply) {
  const { source, withText, withPictures } = inspected
  const call = await callOf(inspected, (params as { id: string }).id)
  if (!call) return refuse(reply, 'noSuchPath', NO_CALL)
  const more = await source?.textsOf?.(call)
  const shown = (seen: RecordedEvent) => withPictures(withPayload(withText(seen), more?.get(seen.seq)))
  return { ...call, events: call.events.map(shown) }
}

export async function statusNow({ bridge }: Inspected, _request: FastifyRequest, reply: FastifyReply) {
  return bridge.status ? bridge.status() : refuse(reply, 'noSuchPath', 'This inspector is of several bridges')
}

export async function listServers(inspected: Inspected, request: FastifyRequest) {
  const { ring, source, bridge, withText } = inspected
  await source?.refresh?.()
  const { servers } = await viewsOf(inspected)
  const seen = new Map(
    [...servers].map(([name, server]) => [name, { ...server, messages: server.messages.map(withText) }]),
  )
  const { tools } = ring.secretArguments
  const now = bridge.servers()
  const why = whyNoCalls(inspected, request)
  const targets = bridge.targets()
  const groups = new Set(targets.flatMap(({ kind, name }) => (kind === 'group' ? [name] : [])))
  const others = [...seen.values()].filter(({ name }) => now.every((one) => one.name !== name))
  return {
    ...(bridge.process && { bridge: bridge.process() }),
    servers: [
      ...now.map((one) => ({
        ...seen.get(one.name),
        tools: tools.of(one.name),
        descriptions: tools.descriptionsOf(one.name),
        sessions: ring.openSessions(one.name),
        // Of another bridge, its own tools and sessions.
        ...one,
      })),
      ...others.map((one) =>
        groups.has(one.name) ? { ...one, isGroup: true, simplified: bridge.simplified?.(one.name) } : one,
      ),
    ],
    try: { allowed: why === undefined, ...(why !== undefined && { why }) },
    targets,
  }
}

export async function listSessions(inspected: Inspected) {
  return { sessions: (await viewsOf(inspected)).sessions }
}

/** The stored events of matching calls as a file. */
export async function saved(inspected: Inspected, request: FastifyRequest, reply: FastifyReply) {
  const { ring, version, withText } = inspected
  const query = queryOf(request)
  const format = query.get('format') ?? 'jsonl'
  if (format !== 'jsonl' && format !== 'har')
    return refuse(reply, 'invalidRequest', 'The format of an export is jsonl or har')
  const filter = filterIn(inspected, query)
  const { isEmpty, problem } = filter
  if (problem !== undefined) return refuse(reply, 'invalidRequest', `The filter is wrong: ${problem}`)
  reply.header('content-disposition', `attachment; filename="mcp-bridge.${format}"`)
  const calls = async () => matching(inspected, await viewsOf(inspected), filter)
  if (format === 'har') {
    reply.type('application/json')
    return reply.send(Readable.from(inChunks(inTurns(toHar(await calls(), { version, withText })))))
  }
  const isWanted = isEmpty ? () => true : belongingTo(await calls())
  reply.type('application/jsonl; charset=utf-8')
  return reply.send(Readable.from(inChunks(linesOf(ring, isWanted, withText))))
}

/** The reason why the sender of a request may not call servers; undefined if it may. */
export function whyNoCalls({ mayTry, whyReadOnly }: Inspected, request: FastifyRequest): string | undefined {
  if (mayTry) return whyReadOnly(request, 'calls')
  return 'Calls from the inspector are off: set "inspect": { "try": true } in the configuration'
}

/** The message about a call that is not stored. */
export const NO_CALL = 'Unknown call: it may have left the memory of the inspector'

/** The call with this id, or the one that the id continues. */
export async function callOf(inspected: Inspected, id: string): Promise<CallView | undefined> {
  return (await viewsOf(inspected)).call(id)
}

/** Answers a viewer with an error, which neither the log nor the inspector shows as a refused request. */
export function refuse(reply: FastifyReply, name: 'noSuchPath' | 'invalidRequest', message: string): FastifyReply {
  const fault = new Fault(name, message)
  return reply.code(fault.status).type('application/json').send(errorMessage(undefined, fault.toRpcError()))
}

export function queryOf({ url }: FastifyRequest): URLSearchParams {
  return new URL(url, 'http://localhost').searchParams
}

function filterIn({ hasText }: Inspected, query: URLSearchParams): CallFilter {
  return readFilter(query.get('filter') ?? '', ({ events }, part) => events.some((seen) => hasText(seen, part)))
}

async function viewsOf({ ring }: Inspected): Promise<Views> {
  const views = new Views()
  views.first = ring.first
  for await (const seen of inTurns(ring.after(0))) views.add(seen)
  return views
}

async function matching({ ring }: Inspected, { calls }: Views, { matches }: CallFilter): Promise<CallView[]> {
  const found: CallView[] = []
  for await (const call of inTurns(calls.values())) if (matches(call, ring.time)) found.push(call)
  return found
}

/** Whether an event belongs to one of these calls. A view lacks some events of a long call. */
function belongingTo(calls: readonly CallView[]): (seen: RecordedEvent) => boolean {
  const ids = new Set(calls.flatMap(({ id, parts }) => [id, ...parts]))
  // An event of a stream names no call.
  const streams = calls.flatMap(({ events }) => events.filter(({ kind }) => kind === 'stream'))
  const numbers = new Set(streams.map(({ seq }) => seq))
  return ({ call, seq }) => (call === undefined ? numbers.has(seq) : ids.has(call))
}

/** The selected events as JSON, one per line. */
async function* linesOf(
  ring: Ring,
  isWanted: (seen: RecordedEvent) => boolean,
  show: (seen: RecordedEvent) => RecordedEvent,
) {
  for await (const seen of inTurns(ring.after(0))) if (isWanted(seen)) yield `${JSON.stringify(show(seen))}\n`
}

/** The number of an event, or a count; 0 if the text is not a number. */
function numberOf(text: string | string[] | undefined): number {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : 0
}
