/** What is measured: the ways from a client to a server. A further way is a further row. */
import type { ChildProcess } from 'node:child_process'
import { ownBuild } from './builds.js'
import { beside, commandOn, freePort, hasRedis, redisUrl, start, temporary } from './processes.js'
import { type Era, type Question, urlAt } from './questions.js'
import { linesCall, smallCall } from './scenarios.js'
import { signInCandidates } from './sign-in.js'

export interface Candidate {
  name: string
  /** What the client speaks. */
  client: Era
  /** What the server speaks. */
  server: Era
  /** Arguments of the Node process under measurement. Without it the server itself is called. */
  proxy?: (at: { port: number; url: string; server: string; bridge: string }) => string[]
  /** The path of the bridge that is measured. This checkout's build if left out. */
  bridge?: string
  /** Its stderr goes to /dev/null: it is expected to write. */
  writes?: boolean
  /** Asked only these; everything if left out. */
  asked?: readonly Question[]
  /** Differs from another candidate by what an operator may turn on or off. */
  extra?: boolean
  /** Takes part in the measurement of start-up. */
  startUp?: boolean
  /** Takes part in the measurement of idle sessions. */
  idle?: boolean
}

/** A candidate that runs, or is about to. */
export interface Running {
  candidate: Candidate
  port: number
  process: ChildProcess | undefined
}

/** By what the server speaks: throughput and CPU of the others in front of it are given as multiples of this one's. */
export const yardsticks: Readonly<Record<Era, string>> = {
  legacy: 'pass-through',
  modern: 'pass-through, modern server',
}

const stdioServer = commandOn('rest', [beside('legacy-stdio.mjs')])
const passThrough: NonNullable<Candidate['proxy']> = ({ port, server }) => [
  beside('pass-through.mjs'),
  String(port),
  new URL(server).origin,
]
const overHttp =
  (level: string): NonNullable<Candidate['proxy']> =>
  ({ url, server, bridge }) => [bridge, '--log-level', level, '--listen', url, '--upstream', server]

/** What is counted and shared, and what of it can be left out. */
const EXTRAS = {
  bare: { metrics: false },
  'metrics and Redis': { redis: { url: redisUrl }, stateKeys: ['a secret that the bench shares with itself'] },
} as const

/** A way through the bridge once with all that an operator may have, and once without. */
function extras(name: string, client: Era, server: Era, entry?: object): Candidate[] {
  return Object.entries(EXTRAS)
    .filter(([what]) => what === 'bare' || hasRedis)
    .map(([what, extra]) => ({
      name: `${name}, ${what}`,
      client,
      server,
      asked: [smallCall],
      extra: true,
      proxy: ({ port, url, server: address, bridge }) => {
        const config = {
          mcpServers: { default: entry ?? { url: address } },
          listen: url,
          log: { level: 'warn' },
          ...extra,
        }
        return [bridge, '--config', temporary(`${name}, ${what}, ${port}.json`, JSON.stringify(config))]
      },
    }))
}

/** What both sides of one era are asked: a little, where the work for each call counts, and much, where the bytes do. */
const sameEra = [smallCall, linesCall]

export const candidates: Candidate[] = [
  { name: 'direct', client: 'legacy', server: 'legacy' },
  {
    name: yardsticks.legacy,
    client: 'legacy',
    server: 'legacy',
    proxy: passThrough,
    startUp: true,
    idle: true,
  },
  { name: 'bridge, http', client: 'modern', server: 'legacy', proxy: overHttp('warn'), startUp: true },
  {
    name: 'bridge, stdio',
    client: 'modern',
    server: 'legacy',
    proxy: ({ url, bridge }) => [bridge, '--log-level', 'warn', '--listen', url, '--', ...stdioServer],
    startUp: true,
  },
  {
    name: 'bridge, http, log info',
    client: 'modern',
    server: 'legacy',
    proxy: overHttp('info'),
    writes: true,
    extra: true,
    asked: [smallCall],
  },
  {
    name: 'bridge, legacy to legacy',
    client: 'legacy',
    server: 'legacy',
    proxy: overHttp('warn'),
    asked: sameEra,
    idle: true,
  },
  { name: yardsticks.modern, client: 'modern', server: 'modern', proxy: passThrough, asked: sameEra },
  { name: 'bridge, modern to modern', client: 'modern', server: 'modern', proxy: overHttp('warn'), asked: sameEra },
  {
    name: 'bridge, legacy to modern',
    client: 'legacy',
    server: 'modern',
    proxy: overHttp('warn'),
    asked: sameEra,
    idle: true,
  },
]

const [program, ...args] = stdioServer
candidates.push(
  ...extras('bridge, http', 'modern', 'legacy'),
  ...extras('bridge, stdio', 'modern', 'legacy', { command: program, args }),
  ...extras('bridge, legacy to modern', 'legacy', 'modern'),
  ...extras('bridge, modern to modern', 'modern', 'modern'),
  ...signInCandidates,
)

/** What the candidates of another build are called. */
export const beforeName = (name: string): string => `before: ${name}`

/** Every candidate, and each way through the bridge a second time through another build of it. */
export function besideBuild(bridge: string): Candidate[] {
  return candidates.flatMap((one) =>
    one.proxy === undefined || one.proxy === passThrough
      ? [one]
      : [one, { ...one, name: beforeName(one.name), bridge }],
  )
}

/** The servers that candidates call over HTTP. */
const SERVERS: Readonly<Record<Era, string>> = { legacy: 'legacy-http.mjs', modern: 'modern-http.mjs' }

export interface Server {
  port: number
  process: ChildProcess
}

/** Starts the server of an era that candidates call over HTTP. */
export async function startServer(era: Era): Promise<Server> {
  const port = await freePort()
  return { port, process: start('rest', [beside(SERVERS[era]), String(port)], 'inherit') }
}

/** Starts a candidate, with further arguments for Node. It does not listen yet. */
export async function launch(candidate: Candidate, serverPort: number, node: readonly string[] = []): Promise<Running> {
  if (!candidate.proxy) return { candidate, port: serverPort, process: undefined }
  const port = await freePort()
  const { bridge = ownBuild } = candidate
  const args = candidate.proxy({ port, url: urlAt(port), server: urlAt(serverPort), bridge })
  const stderr = candidate.writes ? 'ignore' : 'inherit'
  return { candidate, port, process: start('proxy', [...node, ...args], ['ignore', 'ignore', stderr]) }
}
