/** What sessions cost that nobody uses: memory of a proxy, with an event stream open in each of many. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { envelope, headersFor, send } from '../support/modern.js'
import { bareServer, type Candidate, launch, type Surroundings, startServer } from './candidates.js'
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
  /** KiB of that beyond what the server of the client's era needs, if the same streams end there. */
  beyond: number | undefined
}

interface Session {
  /** Undefined for a modern client, which has none: its stream is a subscription. */
  id: string | undefined
  stream: ClientRequest
}

/** Sessions that are opened and ended before anything counts, so that code is loaded and compiled. */
const REHEARSAL = 50
/** Sessions that are being opened at a time. */
const AT_ONCE = 20
/** Milliseconds for a stream to begin. */
const PATIENCE = 10_000
/** Files and sockets of a process beside those of sessions. A proxy may need two sockets for each session. */
const OTHER_FILES = 500
const COLLECTING = ['--expose-gc', '--import', beside('collect.mjs')]
const KIB_OF_MIB = 1024

/** Measures the candidates one after the other. Rejects where a session or its stream is not had. */
export async function measureIdle(among: readonly Candidate[], pace: IdlePace, surroundings: Surroundings) {
  const sessions = Math.min(pace.sessions, Math.floor((openFilesLimit() - OTHER_FILES) / 2))
  const all: (Idle & { client: Era })[] = []
  for (const candidate of among) all.push(await measureOne(candidate, { ...pace, sessions }, surroundings))
  return all.map(({ client, ...one }): Idle => {
    const bare = all.find(({ candidate }) => candidate === bareServer(client))?.kib
    const beyond = one.kib === undefined || bare === undefined ? undefined : one.kib - bare
    return { ...one, beyond }
  })
}

async function measureOne(candidate: Candidate, { sessions, pause }: IdlePace, surroundings: Surroundings) {
  const { client, name, kind } = candidate
  const server = await startServer(candidate.server)
  const { port, process: proxy } = await launch(candidate, server.port, surroundings, COLLECTING)
  const open: Session[] = []
  try {
    await close(port, await openMany(client, port, REHEARSAL))
    const before = proxy && (await restingMemory(proxy, pause))
    open.push(...(await openMany(client, port, sessions)))
    const after = proxy && (await restingMemory(proxy, pause))
    const kib = before === undefined || after === undefined ? undefined : ((after - before) * KIB_OF_MIB) / sessions
    const lost = open.filter(({ stream }) => stream.destroyed).length
    if (lost > 0) throw new Error(`${name}: ${lost} of ${sessions} streams were closed`)
    return { candidate: name, kind, client, sessions, before, after, kib, beyond: undefined }
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}`, { cause: error })
  } finally {
    for (const { stream } of open) stream.destroy()
    if (proxy) await end(proxy)
    await end(server.process)
  }
}

/** MiB that a process holds when it has had time, and has been told, to let go of what it does not need. */
async function restingMemory(proxy: ChildProcess, pause: number): Promise<number | undefined> {
  await sleep(pause)
  proxy.kill('SIGUSR2')
  await sleep(pause)
  return memoryOf(proxy)
}

async function openMany(client: Era, port: number, count: number): Promise<Session[]> {
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
    return { id: undefined, stream: await listen('POST', port, headersFor(method), body) }
  }
  const id = await openSession(port)
  return { id, stream: await listen('GET', port, { ...legacyHeaders(id), accept: 'text/event-stream' }) }
}

async function listen(method: string, port: number, headers: Record<string, string>, body?: string) {
  const stream = httpRequest(urlAt(port), { method, headers, agent: false })
  stream.end(body)
  const [response] = (await once(stream, 'response', { signal: AbortSignal.timeout(PATIENCE) })) as [IncomingMessage]
  stream.on('error', () => {})
  response.on('error', () => {}).resume()
  if (response.statusCode !== 200) throw new Error(`HTTP ${response.statusCode} for a stream`)
  return stream
}

async function close(port: number, sessions: readonly Session[]): Promise<void> {
  for (const { id, stream } of sessions) {
    if (id !== undefined) await send('DELETE', urlAt(port), undefined, legacyHeaders(id))
    stream.destroy()
  }
}
