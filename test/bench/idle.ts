/** What sessions cost that nobody uses: memory of a proxy, with a stream open in each of many. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { post, send } from '../support/modern.js'
import { type Candidate, launch, startServer } from './candidates.js'
import { beside, end, memoryOf } from './processes.js'
import { legacyHeaders, openSession, urlAt } from './questions.js'

export interface IdlePace {
  sessions: number
  /** Milliseconds before garbage is collected, and again before memory is read. */
  pause: number
}

export interface Idle {
  candidate: string
  sessions: number
  /** MiB of memory before the sessions were opened, and with them. */
  before: number | undefined
  after: number | undefined
  /** What each of them adds. */
  kib: number | undefined
}

interface Session {
  id: string
  stream: ClientRequest
}

/** Sessions that are opened and ended before anything counts, so that code is loaded and compiled. */
const REHEARSAL = 50
/** Sessions that are being opened at a time. */
const AT_ONCE = 20
/** Milliseconds for a stream to begin. */
const PATIENCE = 10_000
const COLLECTING = ['--expose-gc', '--import', beside('collect.mjs')]
const KIB_OF_MIB = 1024

/** Measures the candidates one after the other. Rejects where a session or its stream is not had. */
export async function measureIdle(among: readonly Candidate[], pace: IdlePace): Promise<Idle[]> {
  const all: Idle[] = []
  for (const candidate of among) all.push(await measureOne(candidate, pace))
  return all
}

async function measureOne(candidate: Candidate, { sessions, pause }: IdlePace): Promise<Idle> {
  const server = await startServer(candidate.server)
  const { port, process: proxy } = await launch(candidate, server.port, COLLECTING)
  const open: Session[] = []
  try {
    await close(port, await openMany(port, REHEARSAL))
    const before = proxy && (await restingMemory(proxy, pause))
    open.push(...(await openMany(port, sessions)))
    const after = proxy && (await restingMemory(proxy, pause))
    const kib = before === undefined || after === undefined ? undefined : ((after - before) * KIB_OF_MIB) / sessions
    const lost = open.filter(({ stream }) => stream.destroyed).length
    if (lost > 0) throw new Error(`${candidate.name}: ${lost} of ${sessions} streams were closed`)
    return { candidate: candidate.name, sessions, before, after, kib }
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

async function openMany(port: number, count: number): Promise<Session[]> {
  // The first one waits until somebody listens.
  const sessions = [await openOne(port)]
  while (sessions.length < count) {
    const some = Math.min(AT_ONCE, count - sessions.length)
    sessions.push(...(await Promise.all(Array.from({ length: some }, () => openOne(port)))))
  }
  return sessions
}

/** A session as a client has it that has just connected. */
async function openOne(port: number): Promise<Session> {
  const id = await openSession(port)
  const headers = legacyHeaders(id)
  const { status } = await post(urlAt(port), '{"jsonrpc":"2.0","method":"notifications/initialized"}', headers)
  if (status !== 202) throw new Error(`HTTP ${status} for a notification`)
  return { id, stream: await listen(port, headers) }
}

async function listen(port: number, headers: Record<string, string>): Promise<ClientRequest> {
  const stream = httpRequest(urlAt(port), { headers: { ...headers, accept: 'text/event-stream' }, agent: false })
  stream.end()
  const [response] = (await once(stream, 'response', { signal: AbortSignal.timeout(PATIENCE) })) as [IncomingMessage]
  stream.on('error', () => {})
  response.on('error', () => {}).resume()
  if (response.statusCode !== 200) throw new Error(`HTTP ${response.statusCode} for a stream`)
  return stream
}

async function close(port: number, sessions: readonly Session[]): Promise<void> {
  for (const { id, stream } of sessions) {
    await send('DELETE', urlAt(port), undefined, legacyHeaders(id))
    stream.destroy()
  }
}
