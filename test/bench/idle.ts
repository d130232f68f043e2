/** What sessions cost that nobody uses: memory of a proxy, with an event stream open in each of many. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { envelope, headersFor, send } from '../support/modern.js'
import { bareProxy, bareServer, type Candidate, launch, type Surroundings, startServer } from './candidates.js'
import { beside, end, memoryOf, openFilesLimit } from './processes.js'
import { type Era, firstAnswer, legacyHeaders, openSession, prepare, urlAt } from './questions.js'
import { smallCall } from './scenarios.js'

export interface IdlePace {
  sessions: number
  /** Milliseconds before garbage is collected, and again before memory is read. */
  pause: number
}

export interface Idle {
  candidate: string
  kind: Candidate['kind']
  sessions: number
  /** MiB of memory before the sessions were opened, and with them. */
  before: number | undefined
  after: number | undefined
  /** KiB that each of them adds. */
  kib: number | undefined
  /** KiB of that beyond the bare sockets: two for each session if its stream is passed on, else one. */
  beyond: number | undefined
  /** Sessions that heard the notification that the server sends when all are open; undefined without a proxy. */
  heard: number | undefined
  /** Seconds in which all were opened. */
  seconds: number
}

export interface Session {
  /** Undefined for a modern client, which has none: its stream is a subscription. */
  id: string | undefined
  stream: ClientRequest
  /** It has heard that the tools of the server have changed. */
  heard: boolean
}

/** Sessions that are opened and ended before anything counts, so that code is loaded and compiled. */
export const REHEARSAL = 50
/** Sessions that are being opened at a time. */
const AT_ONCE = 20
/** Milliseconds for a stream to begin, and for all to hear of a change. */
const PATIENCE = 10_000
const LOOK_EVERY = 100
/** Files and sockets of a process beside those of sessions. A proxy may need two sockets for each session. */
const OTHER_FILES = 500
/** Arguments for a process that collects its garbage when it is told to. */
export const COLLECTING = ['--expose-gc', '--import', beside('collect.mjs')]
const KIB_OF_MIB = 1024
const CHANGED = 'notifications/tools/list_changed'

/** Measures the candidates one after the other. Rejects where a session or its stream is not had. */
export async function measureIdle(among: readonly Candidate[], pace: IdlePace, surroundings: Surroundings) {
  const sessions = Math.min(pace.sessions, Math.floor((openFilesLimit() - OTHER_FILES) / 2))
  const all: Idle[] = []
  for (const candidate of among) all.push(await measureOne(candidate, { ...pace, sessions }, surroundings))
  return all.map((one, at): Idle => {
    const bare = all.find(({ candidate }) => candidate === bareOf(among[at] as Candidate))?.kib
    const beyond = one.kib === undefined || bare === undefined ? undefined : one.kib - bare
    return { ...one, beyond }
  })
}

/** What has the same sockets for each session, and nothing else. */
function bareOf({ client, server, transport, bare }: Candidate): string {
  const passedOn = !bare && transport === 'http' && client === server
  return passedOn ? bareProxy(server) : bareServer(client)
}

async function measureOne(candidate: Candidate, { sessions, pause }: IdlePace, surroundings: Surroundings) {
  const { client, name, kind, bare } = candidate
  const server = await startServer(candidate.server)
  const { port, process: proxy } = await launch(candidate, server.port, surroundings, COLLECTING)
  const open: Session[] = []
  try {
    await close(port, await openMany(client, port, REHEARSAL))
    const before = proxy && (await restingMemory(proxy, pause))
    const began = performance.now()
    open.push(...(await openMany(client, port, sessions)))
    const seconds = (performance.now() - began) / 1_000
    const after = proxy && (await restingMemory(proxy, pause))
    const kib = before === undefined || after === undefined ? undefined : ((after - before) * KIB_OF_MIB) / sessions
    const lost = open.filter(({ stream }) => stream.destroyed).length
    if (lost > 0) throw new Error(`${lost} of ${sessions} streams were closed`)
    const heard = bare ? undefined : await hearing(server.process, open)
    return { candidate: name, kind, sessions, before, after, kib, beyond: undefined, heard, seconds }
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}`, { cause: error })
  } finally {
    for (const { stream } of open) stream.destroy()
    if (proxy) await end(proxy)
    await end(server.process)
  }
}

/** Has the server tell a change to everybody who listens. Resolves to the number of sessions that heard of it. */
async function hearing(server: ChildProcess, sessions: readonly Session[]): Promise<number> {
  server.kill('SIGUSR2')
  const heard = () => sessions.filter((session) => session.heard).length
  for (const began = performance.now(); heard() < sessions.length && performance.now() - began < PATIENCE; )
    await sleep(LOOK_EVERY)
  return heard()
}

/** MiB that a process holds when it has had time, and has been told, to let go of what it does not need. */
export async function restingMemory(proxy: ChildProcess, pause: number): Promise<number | undefined> {
  await sleep(pause)
  proxy.kill('SIGUSR2')
  await sleep(pause)
  return memoryOf(proxy)
}

/** Opens so many sessions, each with its stream. */
export async function openMany(client: Era, port: number, count: number): Promise<Session[]> {
  // Waits until somebody listens.
  await firstAnswer(port, await prepare(client, smallCall, port), client, smallCall)
  const sessions: Session[] = []
  while (sessions.length < count) {
    const some = Math.min(AT_ONCE, count - sessions.length)
    sessions.push(...(await Promise.all(Array.from({ length: some }, () => openOne(client, port)))))
  }
  return sessions
}

/** A session as a client has it that has just connected; for a modern client, the subscription that it would have. */
async function openOne(client: Era, port: number): Promise<Session> {
  if (client === 'modern') {
    const method = 'subscriptions/listen'
    const params = { notifications: { toolsListChanged: true }, _meta: envelope() }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    return listen(undefined, { method: 'POST', headers: headersFor(method) }, port, body)
  }
  const id = await openSession(port)
  return listen(id, { method: 'GET', headers: { ...legacyHeaders(id), accept: 'text/event-stream' } }, port)
}

async function listen(id: Session['id'], options: RequestOptions, port: number, body?: string): Promise<Session> {
  const stream = httpRequest(urlAt(port), { ...options, agent: false })
  stream.end(body)
  const [response] = (await once(stream, 'response', { signal: AbortSignal.timeout(PATIENCE) })) as [IncomingMessage]
  stream.on('error', () => {})
  const session: Session = { id, stream, heard: false }
  response
    .on('error', () => {})
    .on('data', (chunk: Buffer) => {
      session.heard ||= chunk.includes(CHANGED)
    })
  if (response.statusCode !== 200) throw new Error(`HTTP ${response.statusCode} for a stream`)
  return session
}

/** Ends sessions and their streams. */
export async function close(port: number, sessions: readonly Session[]): Promise<void> {
  for (const { id, stream } of sessions) {
    if (id !== undefined) await send('DELETE', urlAt(port), undefined, legacyHeaders(id))
    stream.destroy()
  }
}
