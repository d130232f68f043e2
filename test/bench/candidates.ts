/** What is measured: the ways from a client to a server. A further way is a further row. */
import type { ChildProcess } from 'node:child_process'
import { beside, commandOn, freePort, start } from './processes.js'
import { type Era, type Question, urlAt } from './questions.js'
import { smallCall } from './scenarios.js'

export interface Candidate {
  name: string
  /** What the client speaks. */
  client: Era
  /** Arguments of the Node process under measurement. Without it the server itself is called. */
  proxy?: (at: { port: number; url: string; server: string }) => string[]
  /** Its stderr goes to /dev/null: it is expected to write. */
  writes?: boolean
  /** Asked only these; everything if left out. */
  asked?: readonly Question[]
  /** Takes part in the measurement of start-up. */
  startUp?: boolean
}

/** A candidate that runs, or is about to. */
export interface Running {
  candidate: Candidate
  port: number
  process: ChildProcess | undefined
}

/** Throughput and CPU of the others are given as multiples of this one's. */
export const yardstick = 'pass-through'

const bridge = beside('../../dist/main.js')
const stdioServer = commandOn('rest', [beside('legacy-stdio.mjs')])
const overHttp =
  (level: string): NonNullable<Candidate['proxy']> =>
  ({ url, server }) => [bridge, '--log-level', level, '--listen', url, '--upstream', server]

export const candidates: readonly Candidate[] = [
  { name: 'direct', client: 'legacy' },
  {
    name: yardstick,
    client: 'legacy',
    proxy: ({ port, server }) => [beside('pass-through.mjs'), String(port), new URL(server).origin],
    startUp: true,
  },
  { name: 'bridge, http', client: 'modern', proxy: overHttp('warn'), startUp: true },
  {
    name: 'bridge, stdio',
    client: 'modern',
    proxy: ({ url }) => [bridge, '--log-level', 'warn', '--listen', url, '--', ...stdioServer],
    startUp: true,
  },
  { name: 'bridge, http, log info', client: 'modern', proxy: overHttp('info'), writes: true, asked: [smallCall] },
]

/** Starts the legacy server that candidates call over HTTP. */
export async function startServer(): Promise<{ port: number; process: ChildProcess }> {
  const port = await freePort()
  return { port, process: start('rest', [beside('legacy-http.mjs'), String(port)], 'inherit') }
}

/** Starts a candidate. It does not listen yet. */
export async function launch(candidate: Candidate, serverPort: number): Promise<Running> {
  if (!candidate.proxy) return { candidate, port: serverPort, process: undefined }
  const port = await freePort()
  const args = candidate.proxy({ port, url: urlAt(port), server: urlAt(serverPort) })
  const stderr = candidate.writes ? 'ignore' : 'inherit'
  return { candidate, port, process: start('proxy', args, ['ignore', 'ignore', stderr]) }
}
