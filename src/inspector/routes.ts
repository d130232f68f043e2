/**
 * The inspector over HTTP: its page, the data for it, and the token that viewers need. Viewers can change which
 * events and texts are kept; with permission, they can call servers.
 */
import { randomUUID, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { INSPECT } from '../app/inspector-path.js'
import { sha256 } from '../base/crypto/digest.js'
import { Fault } from '../base/fault/fault.js'
import {
  callsFound,
  follow,
  HEADERS,
  type Inspected,
  type InspectorOptions,
  listCalls,
  listServers,
  listSessions,
  oneCall,
  saved,
  statusNow,
} from './answers.js'
import { clear, keepTexts, keptNow, pin, pinnedNow, unpin } from './keeping.js'
import type { PageFiles } from './page.js'
import { shownEvents } from './shown-events.js'
import { tryRoutes } from './try-routes.js'

/** What viewers can ask for. */
const ROUTES: readonly (readonly [
  method: HTTPMethods,
  path: string,
  answer: (inspected: Inspected, request: FastifyRequest, reply: FastifyReply) => unknown,
])[] = [
  ['GET', 'events', follow],
  ['GET', 'calls', listCalls],
  ['GET', 'calls/:id', oneCall],
  ['GET', 'found', callsFound],
  ['GET', 'servers', listServers],
  ['GET', 'sessions', listSessions],
  ['GET', 'status', statusNow],
  ['GET', 'export', saved],
  ['GET', 'payloads', keptNow],
  ['POST', 'payloads', keepTexts],
  ['GET', 'pins', pinnedNow],
  ['POST', 'pins', pin],
  ['DELETE', 'pins', unpin],
  ['POST', 'clear', clear],
]

/** The files of the page. */
const FILES: readonly (readonly [path: string, type: string, file: keyof PageFiles])[] = [
  ['', 'text/html; charset=utf-8', 'html'],
  ['/page.js', 'text/javascript; charset=utf-8', 'script'],
  ['/page.css', 'text/css; charset=utf-8', 'style'],
  ['/icon.svg', 'image/svg+xml', 'icon'],
]

/** A Fastify plugin that serves the inspector. Hosts and origins are checked before it. */
export async function inspector(app: FastifyInstance, options: InspectorOptions): Promise<void> {
  const { ring, source, hide, version, title } = options
  // Only those who look need it.
  const { page = (await import('./page.js')).PAGE } = options
  const isViewer = tokenCheck(options.token)
  const isCaller = options.tryToken === undefined ? isViewer : tokenCheck(options.tryToken)
  const inspected: Inspected = {
    ...options,
    ...shownEvents(ring, source, hide),
    hello: { bridge: randomUUID(), version, title, file: source?.file },
    viewers: new Set(),
    whyReadOnly: ({ headers }, what) =>
      isCaller(headers.authorization)
        ? undefined
        : `This token is read-only: ${what} require inspect.tryToken of the configuration`,
  }

  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(HEADERS)
    done()
  })
  app.addHook('onClose', async () => {
    for (const end of inspected.viewers) end()
  })
  if (page)
    for (const [path, type, file] of FILES)
      app.get(`${INSPECT}${path}`, (_request, reply) => reply.type(type).send(page[file]))

  await app.register(async (secret) => {
    secret.addHook('onRequest', (request, reply, done) => {
      const { authorization } = request.headers
      if (!isCaller(authorization) && !isViewer(authorization)) {
        reply.header('www-authenticate', 'Bearer')
        throw new Fault('unauthorized', 'The inspector requires its token: open the address that the bridge printed')
      }
      done()
    })
    for (const [method, path, answer] of ROUTES)
      secret.route({
        method,
        url: `${INSPECT}/${path}`,
        // A HEAD request would wait for the end of the events.
        ...(answer === follow && { exposeHeadRoute: false }),
        handler: (request, reply) => answer(inspected, request, reply),
      })
    await secret.register(tryRoutes, inspected)
  })
}

/** A constant-time check of an Authorization header. */
function tokenCheck(token: string | undefined): (authorization: string | undefined) => boolean {
  if (token === undefined) return () => true
  const wanted = sha256(token)
  return (authorization) => timingSafeEqual(sha256(/^bearer +([^ ].*)$/i.exec(authorization ?? '')?.[1] ?? ''), wanted)
}
