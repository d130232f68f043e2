/** The table of servers, and what each has to say of what has reached it. */
import type { Test } from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { CAPABILITIES, LISTS as LEGACY_LISTS, WITH_TASKS } from '../fixtures/legacy.mjs'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { LISTS as MODERN_LISTS } from '../fixtures/modern.mjs'
import { LegacyHttp, type Received } from '../support/legacy-http.js'
import { LegacySse, PATHS } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ModernHttp } from '../support/modern-http.js'
import type { Violation } from '../support/modern-plan.js'
import { modernStdio } from '../support/modern-stdio.js'
import type { Transcript } from '../support/transcript.js'
import type { Era, Json } from './client.js'
import type { TransportKind } from './clients.js'
import { legacyComplaints } from './rules.js'

/** One message that has reached a server. */
export interface Reached {
  text: string
  message: Json
  headers?: Received['headers']
  /** Names the session: by its id, its stream or its process. Undefined for what opens one over HTTP, or has none. */
  session?: string | undefined
}

export interface TestServer {
  /** The entry of `mcpServers` that leads to it. */
  entry: object
  /** The messages of clients, in order: without what the bridge asks to find out what the server speaks. */
  reached(): Reached[]
  /** What was not of its era, or not as it has to be, of all that has ever arrived. */
  complaints(): string[]
  /** Ids of requests that were cancelled, as they were here. */
  cancelled(): unknown[]
  /** Sessions that are open, or whatever else lasts for as long as a client is there. */
  open(): number
}

interface List {
  member: string
  items: Json[]
  /** The cursor of the second page. */
  second: string
}

export interface ServerKind {
  era: Era
  transport: TransportKind
  /** What it answers `initialize` with. Absent, it speaks what it is asked for. */
  revision: string
  /** What it says that it has. */
  capabilities: Json
  /** All that it lists, by method. */
  lists: Record<string, List>
  start(t: Test): Promise<TestServer> | TestServer
}

const NEWEST_LEGACY = '2025-11-25'
/** HTTP+SSE is of older servers. This is the oldest revision that can ask everything but for addresses. */
const OLDER_LEGACY = '2025-06-18'

const extensions = { 'io.modelcontextprotocol/tasks': {} }
const modern = {
  era: 'modern',
  revision: '2026-07-28',
  capabilities: { ...(CAPABILITIES as Json), extensions },
  lists: MODERN_LISTS as Record<string, List>,
} as const
const legacy = { era: 'legacy', lists: LEGACY_LISTS as Record<string, List> } as const
const newest = { ...legacy, revision: NEWEST_LEGACY, capabilities: WITH_TASKS as Json } as const
const older = { ...legacy, revision: OLDER_LEGACY, capabilities: CAPABILITIES as Json } as const

export const SERVERS: readonly ServerKind[] = [
  { ...modern, transport: 'HTTP', start: modernHttpServer },
  { ...modern, transport: 'stdio', start: modernStdioServer },
  { ...newest, transport: 'HTTP', start: legacyHttpServer },
  { ...older, transport: 'HTTP+SSE', start: legacySseServer },
  { ...newest, transport: 'stdio', start: legacyStdioServer },
]

async function modernHttpServer(t: Test): Promise<TestServer> {
  const server = await ModernHttp.start(t)
  return {
    entry: { url: server.url },
    reached: () =>
      server.received
        .filter(({ method }) => method === 'POST')
        .map(({ body, message = {}, headers }) => ({ text: body, message, headers }))
        .filter(({ message }) => !isInquiry(message)),
    complaints: () => modernComplaints(server.violations()),
    cancelled: () => server.cancelled.map(({ message }) => message?.['id']),
    open: () => server.subscriptions,
  }
}

function modernStdioServer(t: Test): TestServer {
  const server = modernStdio(t)
  return {
    entry: server.server,
    reached: () => linesOf(server).filter(({ message }) => !isInquiry(message)),
    complaints: () => modernComplaints(server.violations()),
    cancelled: () => server.cancelled(),
    open: () => {
      const gone = goneFrom(server)
      const listening = linesOf(server).filter(({ message }) => message['method'] === 'subscriptions/listen')
      const isOpen = ({ message, session = '' }: Reached) =>
        !server.cancelled().includes(message['id']) && !gone.includes(session)
      return listening.filter(isOpen).length
    },
  }
}

async function legacyHttpServer(t: Test): Promise<TestServer> {
  const server = await LegacyHttp.start(t, { pages: 2, revision: NEWEST_LEGACY, capabilities: WITH_TASKS as Json })
  const given = () => server.of('initialize').map((_, index) => `session-${index + 1}`)
  const reached = () => {
    const begun = [...given()]
    return server.received
      .filter(({ method, message }) => method === 'POST' && !isInquiry(message))
      .map(({ body, message, headers }): Reached => {
        const own = headers['mcp-session-id']
        const session = message['method'] === 'initialize' ? begun.shift() : typeof own === 'string' ? own : undefined
        return { text: body, message, headers, session }
      })
  }
  return {
    entry: { url: server.url },
    reached,
    complaints: () => legacyComplaints(NEWEST_LEGACY, reached(), server.received),
    cancelled: () => cancelledIn(reached()),
    open: () => {
      const ended = server.received.filter(({ method }) => method === 'DELETE')
      return given().filter((id) => !ended.some(({ headers }) => headers['mcp-session-id'] === id)).length
    },
  }
}

async function legacySseServer(t: Test): Promise<TestServer> {
  const server = await LegacySse.start(t, { pages: 2, revision: OLDER_LEGACY })
  // What is posted to the stream is refused, and so shows that this is no server of a newer revision.
  const posted = () => server.received.filter(({ method, path }) => method === 'POST' && path !== PATHS.stream)
  const reached = () =>
    posted().map(({ body, message, headers, path }) => ({ text: body, message, headers, session: path }))
  return {
    entry: { url: server.url },
    reached,
    complaints: () => legacyComplaints(OLDER_LEGACY, reached(), []),
    cancelled: () => cancelledIn(reached()),
    open: () => server.streams,
  }
}

function legacyStdioServer(t: Test): TestServer {
  const server = legacyStdio(t, { pages: 2, revision: NEWEST_LEGACY, capabilities: WITH_TASKS as Json })
  const reached = () => linesOf(server).filter(({ message }) => !isInquiry(message))
  return {
    entry: server.server,
    reached,
    complaints: () => legacyComplaints(NEWEST_LEGACY, reached(), []),
    cancelled: () => cancelledIn(reached()),
    open: () => server.pids().filter((pid) => !goneFrom(server).includes(pid)).length,
  }
}

function linesOf(transcript: Transcript): Reached[] {
  return transcript
    .seen()
    .filter(({ line }) => line.startsWith('{'))
    .map(({ pid, line }) => ({ text: line, message: JSON.parse(line) as Json, session: pid }))
}

/** Processes whose input has ended. */
function goneFrom(transcript: Transcript): string[] {
  return transcript
    .seen()
    .filter(({ line }) => line === 'input ended')
    .map(({ pid }) => pid)
}

/**
 * What the bridge sends on its own account to find out what a server speaks: the question of the modern era, in the
 * bridge's own name.
 */
function isInquiry({ method, params }: Json): boolean {
  const meta = (params as { _meta?: Json } | undefined)?._meta
  const info = meta?.['io.modelcontextprotocol/clientInfo'] as { name?: unknown } | undefined
  return method === 'server/discover' && info?.name === 'mcp-bridge'
}

/** What shows that a server was asked whether it keeps sessions as well, which legacy clients would rather have. */
const INQUIRIES: readonly Pick<Violation, 'rule' | 'says'>[] = [
  { rule: 'handshake', says: 'it is a handshake of a legacy client' },
  { rule: 'http-method', says: 'GET is not POST' },
]

/** All but what is so by design: a modern server is asked once, in each way, whether it keeps sessions. */
function modernComplaints(violations: readonly Violation[]): string[] {
  const asked = new Set<string>()
  const isInquiry = ({ rule, says }: Violation) => {
    if (asked.has(rule) || !INQUIRIES.some((inquiry) => inquiry.rule === rule && inquiry.says === says)) return false
    asked.add(rule)
    return true
  }
  return violations.filter((violation) => !isInquiry(violation)).map((violation) => JSON.stringify(violation))
}

function cancelledIn(reached: readonly Reached[]): unknown[] {
  return reached
    .filter(({ message }) => message['method'] === 'notifications/cancelled')
    .map(({ message }) => (message['params'] as { requestId: unknown }).requestId)
}
