/**
 * The inspector over HTTP: its page, the data for it, and the token that viewers need. Viewers can change which
 * events and texts are kept; with permission, they can call servers.
 */
import { randomUUID, timingSafeEqual } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { INSPECT } from '../app/inspector-path.js'
import { sha256 } from '../base/crypto/digest.js'
import { Fault } from '../base/fault/fault.js'
import { EVENT_HEADERS } from '../base/rpc/sse.js'
import { inChunks, inTurns } from '../base/time/in-turns.js'
import type { InspectedBridge } from '../mcp/ports/inspected-bridge.js'
import { type CallFilter, readFilter } from './filter.js'
import { toHar } from './har.js'
import { answer, keepRoutes, NO_CALL, queryOf } from './keep-routes.js'
import type { OtherSource } from './other-source.js'
import type { RecordedEvent } from './recorder/events.js'
import type { Ring } from './ring.js'
import { shownEvents, withPayload } from './shown-events.js'
import { tryRoutes } from './try-routes.js'
import { view } from './viewer.js'
import { type CallView, Views } from './views.js'

/** The files of the page, as text. */
export interface PageFiles {
  html: string
  script: string
  style: string
  icon: string
}

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
  /** Undefined if only the terminal reads. */
  page: PageFiles | undefined
  /** What is inspected. */
  bridge: InspectedBridge
  /** Whether viewers may call servers. */
  mayTry: boolean
  /** The token for calls, which also allows viewing; undefined if the token of viewers is enough. */
  tryToken: string | undefined
  /** Called when a viewer starts to read events. */
  onViewer(request: FastifyRequest): void
  /** Called when a viewer turns the storage of all texts on or off. */
  onPayloads(request: FastifyRequest, kept: Ring['kept']): void
  /** Called when a viewer clears what is stored. */
  onClear(request: FastifyRequest): void
}

/** Most streams of events at once. */
const MAX_VIEWERS = 16
/** Most calls in one answer. */
const MAX_CALLS = 2_000

/** Other sites can neither read nor frame the page, the page loads nothing from other origins, and nothing is cached. */
const HEADERS = {
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

/** A Fastify plugin that serves the inspector. Hosts and origins are checked before it. */
export async function inspector(app: FastifyInstance, options: InspectorOptions): Promise<void> {
  const { ring, version, page, source } = options
  const { bridge } = options
  const isViewer = tokenCheck(options.token)
  const isCaller = options.tryToken === undefined ? isViewer : tokenCheck(options.tryToken)
  const hello = { bridge: randomUUID(), version, title: options.title, file: source?.file }
  const viewers = new Set<() => void>()
  const { withText, withPictures, hasText } = shownEvents(ring, source, options.hide)
  const filterOf = (text: string) => readFilter(text, ({ events }, part) => events.some((seen) => hasText(seen, part)))
  const matching = async ({ calls }: Views, { matches }: CallFilter): Promise<CallView[]> => {
    const found: CallView[] = []
    for await (const call of inTurns(calls.values())) if (matches(call, ring.time)) found.push(call)
    return found
  }

  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(HEADERS)
    done()
  })
  app.addHook('onClose', async () => {
    for (const end of viewers) end()
  })

  if (page) {
    app.get(INSPECT, (_request, reply) => reply.type('text/html; charset=utf-8').send(page.html))
    app.get(`${INSPECT}/page.js`, (_request, reply) => reply.type('text/javascript; charset=utf-8').send(page.script))
    app.get(`${INSPECT}/page.css`, (_request, reply) => reply.type('text/css; charset=utf-8').send(page.style))
    app.get(`${INSPECT}/icon.svg`, (_request, reply) => reply.type('image/svg+xml').send(page.icon))
  }

  await app.register(async (secret) => {
    secret.addHook('onRequest', (request, reply, done) => {
      const { authorization } = request.headers
      if (!isCaller(authorization) && !isViewer(authorization)) {
        reply.header('www-authenticate', 'Bearer')
        throw new Fault('unauthorized', 'The inspector requires its token: open the address that the bridge printed')
      }
      done()
    })

    secret.get(`${INSPECT}/events`, { exposeHeadRoute: false }, (request, reply) => {
      if (viewers.size >= MAX_VIEWERS)
        throw new Fault('overloaded', `Too many viewers of the inspector (at most ${MAX_VIEWERS})`, { retryAfter: 1 })
      const query = queryOf(request)
      const after = numberOf(query.get('after') ?? request.headers['last-event-id'])
      const show = query.has('payloads') || source?.file !== undefined ? withText : undefined
      options.onViewer(request)
      reply.hijack()
      reply.raw.writeHead(200, { ...HEADERS, ...EVENT_HEADERS, 'content-type': 'text/event-stream; charset=utf-8' })
      const end = view(reply.raw, { ring, after, hello: { ...hello, at: ring.time }, show })
      viewers.add(end)
      reply.raw.once('close', () => viewers.delete(end))
    })

    secret.get(`${INSPECT}/calls`, async (request) => {
      const query = queryOf(request)
      const filter = filterOf(query.get('filter') ?? '')
      const { problem } = filter
      const views = await viewsOf(ring)
      const { lost, last } = views
      const limit = Math.min(numberOf(query.get('limit') ?? undefined) || MAX_CALLS, MAX_CALLS)
      const found = await matching(views, filter)
      return { calls: found.slice(-limit).map(summaryOf), last, lost, ...(problem !== undefined && { problem }) }
    })

    secret.get(`${INSPECT}/found`, async (request) => {
      const query = queryOf(request)
      const part = (query.get('text') ?? '').toLowerCase()
      const calls = new Set<string>()
      const { last } = ring
      for await (const seen of inTurns(part === '' ? [] : ring.after(numberOf(query.get('after') ?? undefined))))
        if (seen.call !== undefined && !calls.has(seen.call) && hasText(seen, part)) calls.add(seen.call)
      return { calls: [...calls], last }
    })

    secret.get<{ Params: { id: string } }>(`${INSPECT}/calls/:id`, async ({ params: { id } }, reply) => {
      const call = (await viewsOf(ring)).call(id)
      if (!call) return answer(reply, 'noSuchPath', NO_CALL)
      const more = await source?.textsOf?.(call)
      const shown = (seen: RecordedEvent) => withPictures(withPayload(withText(seen), more?.get(seen.seq)))
      return { ...call, events: call.events.map(shown) }
    })

    const whyNot = (request: FastifyRequest): string | undefined => {
      if (!options.mayTry)
        return 'Calls from the inspector are off: set "inspect": { "try": true } in the configuration'
      return isCaller(request.headers.authorization)
        ? undefined
        : 'This token is read-only: calls require inspect.tryToken of the configuration'
    }
    await secret.register(tryRoutes, { bridge, whyNot })

    secret.get(`${INSPECT}/status`, async (_request, reply) =>
      bridge.status ? bridge.status() : answer(reply, 'noSuchPath', 'This inspector is of several bridges'),
    )

    secret.get(`${INSPECT}/servers`, async (request) => {
      await source?.refresh?.()
      const { servers } = await viewsOf(ring)
      const seen = new Map(
        [...servers].map(([name, server]) => [name, { ...server, messages: server.messages.map(withText) }]),
      )
      const now = bridge.servers()
      const why = whyNot(request)
      const targets = bridge.targets()
      const groups = new Set(targets.flatMap(({ kind, name }) => (kind === 'group' ? [name] : [])))
      const others = [...seen.values()].filter(({ name }) => now.every((one) => one.name !== name))
      return {
        ...(bridge.process && { bridge: bridge.process() }),
        servers: [
          ...now.map((one) => ({
            ...seen.get(one.name),
            tools: ring.secretArguments.tools.of(one.name),
            descriptions: ring.secretArguments.tools.descriptionsOf(one.name),
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
    })

    await secret.register(keepRoutes, {
      ring,
      texts: source?.texts ?? ring,
      callOf: async (id) => (await viewsOf(ring)).call(id),
      whyNot: ({ headers }) =>
        isCaller(headers.authorization)
          ? undefined
          : 'This token is read-only: pinning and clearing require inspect.tryToken of the configuration',
      onPayloads: options.onPayloads,
      onClear: options.onClear,
    })

    secret.get(`${INSPECT}/sessions`, async () => ({ sessions: (await viewsOf(ring)).sessions }))

    secret.get(`${INSPECT}/export`, async (request, reply) => {
      const query = queryOf(request)
      const format = query.get('format') ?? 'jsonl'
      if (format !== 'jsonl' && format !== 'har')
        return answer(reply, 'invalidRequest', 'The format of an export is jsonl or har')
      const filter = filterOf(query.get('filter') ?? '')
      const { isEmpty, problem } = filter
      if (problem !== undefined) return answer(reply, 'invalidRequest', `The filter is wrong: ${problem}`)
      reply.header('content-disposition', `attachment; filename="mcp-bridge.${format}"`)
      const calls = async () => matching(await viewsOf(ring), filter)
      if (format === 'har') {
        reply.type('application/json')
        return reply.send(Readable.from(inChunks(inTurns(toHar(await calls(), { version, withText })))))
      }
      const isWanted = isEmpty ? () => true : belongingTo(await calls())
      reply.type('application/jsonl; charset=utf-8')
      return reply.send(Readable.from(inChunks(linesOf(ring, isWanted, withText))))
    })
  })
}

/** A constant-time check of an Authorization header. */
function tokenCheck(token: string | undefined): (authorization: string | undefined) => boolean {
  if (token === undefined) return () => true
  const wanted = sha256(token)
  return (authorization) => timingSafeEqual(sha256(/^bearer +([^ ].*)$/i.exec(authorization ?? '')?.[1] ?? ''), wanted)
}

async function viewsOf(ring: Ring): Promise<Views> {
  const views = new Views()
  views.first = ring.first
  for await (const seen of inTurns(ring.after(0))) views.add(seen)
  return views
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

function summaryOf({ events, ...call }: CallView): Omit<CallView, 'events'> {
  return { ...call, more: call.more + events.length }
}

/** The number of an event, or a count; 0 if the text is not a number. */
function numberOf(text: string | string[] | undefined): number {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : 0
}
