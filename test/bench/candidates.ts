/** What is measured: the ways from a client to a server. A further way is a further row. */
import type { ChildProcess } from 'node:child_process'
import { freePort } from '../support/free-port.js'
import { ownBuild } from './builds.js'
import { PipeClient } from './pipes.js'
import { beside, commandOn, start, temporary } from './processes.js'
import { type Era, listening, urlAt } from './questions.js'
import { emptyStore, type Issuer, NO_ISSUER, storeWithToken } from './sign-in.js'

export type Transport = 'http' | 'stdio'

/** What a proxy is started with. */
export interface At {
  port: number
  url: string
  /** URL of the server of the candidate's era, over HTTP. */
  server: string
  /** Path of the bridge's program. */
  bridge: string
  /** A free port for operators. */
  admin: number
  redis: string | undefined
  issuer?: Issuer | undefined
}

export interface Candidate {
  /** Unique. A lane of the bridge is called by the eras of client and server and the transport to the server. */
  name: string
  kind: 'bridge' | 'control' | 'peer'
  client: Era
  server: Era
  transport: Transport
  /** Arguments of the Node process under measurement. Without it the server itself is called. */
  proxy?: (at: At) => string[]
  /** The path of the bridge that is measured. This checkout's build if left out. */
  bridge?: string
  /** Its stderr goes to /dev/null: it is expected to write. */
  writes?: boolean
  /** Takes part only in scenarios that compare this way with others. */
  way?: Way
  /** Takes part where sessions are idle. */
  idle?: boolean
  /** Takes part only where sessions are idle: it serves instead of passing on. */
  bare?: boolean
  /** It is called on its pipe. Without a proxy it is the server's program, and takes part only where processes are started. */
  pipe?: boolean
  /** It gives its clients no sessions. */
  sessionless?: boolean
  /** Arguments of one process in front of so many servers. Without it, each of them takes a process. */
  many?: (at: At, servers: number) => string[]
}

/** A candidate that runs, or is about to. */
export interface Running {
  candidate: Candidate
  port: number
  process: ChildProcess | undefined
  /** The client on its pipe. */
  pipe?: PipeClient
  /** Headers of each request. */
  headers?: Record<string, string>
  /** Reads the events of its inspector. */
  reader?: ChildProcess | undefined
}

const ERAS = ['modern', 'legacy'] as const
const KEY = 'a secret that the bench shares with itself'
const TOKEN = 'the-token-of-the-inspector'

/** More than there are. */
const EVERY = { callsPerSecond: 1_000_000 }

/** The name of the server that is called. */
export const FIRST = 'default'
/** How long lists are cached: longer than any run. */
const WARM = 3_600_000
/** Processes of the way with workers. */
const WORKERS = 2
/** Servers of the group whose list is compared with that of one server. */
const TOGETHER = 10

/** Options of the whole file, with `entry` of each server, and how many servers there are: one if left out. */
type Configured = { entry?: object; servers?: number; log: object; program?: string; workers?: number }
/** More sessions with servers than are open at once. */
const SESSIONS = 20_000
const QUIET = { metrics: false, log: { level: 'warn' }, limits: { sessions: SESSIONS } }
/** What tokens of the bench are for. */
export const AUDIENCE = 'bench'

/** Ways to configure a lane that are compared with each other. */
const WAYS = {
  'extras off': () => QUIET,
  'extras on': (at: At) => ({ ...shared(at), metrics: true, log: { level: 'info' } }),
  'metrics alone': () => ({ ...QUIET, metrics: true }),
  'Redis alone': (at: At) => ({ ...QUIET, ...shared(at) }),
  'log lines alone': () => ({ ...QUIET, log: { level: 'info' } }),
  replica: (at: At) => ({ ...QUIET, ...shared(at) }),
  'sign-in off': () => ({ ...QUIET, entry: { oauth: false } }),
  'no token': ({ port }: At) => ({ ...QUIET, oauth: { store: emptyStore(port) } }),
  'stored token': ({ port, server }: At) => ({ ...QUIET, oauth: { store: storeWithToken(port, server) } }),
  'no inspector': () => QUIET,
  metadata: (at: At) => inspected(at, 'off'),
  'payloads, watched': (at: At) => inspected(at, 'all'),
  'payloads, read': (at: At) => inspected(at, 'all'),
  'metadata of every call': (at: At) => inspected(at, 'off', EVERY),
  'payloads of every call, watched': (at: At) => inspected(at, 'all', EVERY),
  plain: () => QUIET,
  audit: ({ port }: At) => ({ ...QUIET, audit: { file: temporary(`audit-${port}.log`, '') } }),
  issuers: ({ port, issuer: { issuer, jwksUri } = NO_ISSUER }: At) => ({
    ...QUIET,
    publicUrl: urlAt(port, ''),
    auth: { issuers: [{ issuer, jwksUri, audience: AUDIENCE }] },
  }),
  'in a program': () => ({ ...QUIET, program: 'embedded.mjs' }),
  'one process': () => QUIET,
  'two workers': () => ({ ...QUIET, workers: WORKERS }),
  alone: () => QUIET,
  'in a group': () => grouped(2),
  'one list of 200': ({ server }: At) => ({ ...QUIET, entry: { url: `${server}?many`, cache: WARM } }),
  'ten lists of 20': () => ({ ...grouped(TOGETHER), entry: { cache: WARM } }),
} satisfies Record<string, (at: At) => Configured>
export type Way = keyof typeof WAYS
export const INSPECT: readonly Way[] = [
  'no inspector',
  'metadata',
  'payloads, watched',
  'payloads, read',
  'metadata of every call',
  'payloads of every call, watched',
]
/** Each of the extras by itself. */
export const ALONE: readonly Way[] = ['metrics alone', 'Redis alone', 'log lines alone']
const FOR_PROGRAMS: readonly Way[] = ['extras off', 'extras on', ...ALONE, ...INSPECT]
/** Processes that share the calls: so many more of them compile their code. */
export function processesOf({ way }: Candidate): number {
  return way === 'two workers' ? WORKERS : 1
}

/** Ways whose callers show a token. */
const SIGNED_IN: readonly Way[] = ['issuers']
/** Ways with a reader of the inspector's events, and what it asks for: the page gets no texts with them. */
const READ: Partial<Record<Way, string>> = {
  'payloads, watched': '',
  'payloads of every call, watched': '',
  'payloads, read': '?payloads',
}

/** Several servers, which are a group where one server would be. */
function grouped(servers: number) {
  return { ...QUIET, servers, groups: { all: { path: '/mcp' } } }
}

/** What replicas need to share state. */
function shared({ redis }: At) {
  return redis === undefined ? {} : { redis: { url: redis }, stateKeys: [KEY] }
}

function inspected({ admin }: At, payloads: string, more: object = {}) {
  return { ...QUIET, admin: urlAt(admin, ''), inspect: { payloads, token: TOKEN, ...more } }
}

/** So many servers of an era as entries of a configuration. The first is called as a server alone is. */
export function entriesFor(servers: number, entry: object): Record<string, object> {
  const names = [FIRST, ...Array.from({ length: servers - 1 }, (_, other) => `other-${other + 1}`)]
  return Object.fromEntries(names.map((name) => [name, entry]))
}

/** The command line of a server of an era on a pipe, away from the proxy's core. */
export function stdioServer(era: Era): [string, ...string[]] {
  return commandOn('rest', [beside('stdio-server.mjs'), era])
}

const SERVERS: Readonly<Record<Era, string>> = { legacy: 'legacy-http.mjs', modern: 'modern-http.mjs' }

/** The pass-through to a server of this era: figures of all lanes to such a server are given as multiples of its. */
export const yardstick = (era: Era): string => `pass-through to ${era}`
/** The server itself, where sockets with open event streams end. */
export const bareServer = (era: Era): string => `bare ${era} server`
/** A proxy that has two bare sockets for each stream: one of `node:http` and one of undici. */
export const bareProxy = (era: Era): string => `undici to ${era}`
/** The program of a stdio server itself. */
export const bareProgram = (era: Era): string => `${era} program`
export const laneName = (client: Era, server: Era, transport: Transport): string => `${client}-${server}-${transport}`
/** The name of a lane that is configured in one of the ways. */
export const wayName = (lane: string, way: Way): string => `${lane}, ${way}`

const controls = ERAS.toReversed().flatMap((era): Candidate[] => {
  const common = { kind: 'control', client: era, server: era, transport: 'http' } as const
  const program = (file: string): NonNullable<Candidate['proxy']> => {
    return ({ port, server }) => [beside(file), String(port), new URL(server).origin]
  }
  return [
    {
      ...common,
      name: bareServer(era),
      proxy: ({ port }) => [beside(SERVERS[era]), String(port)],
      idle: true,
      bare: true,
    },
    { ...common, name: bareProgram(era), transport: 'stdio', pipe: true },
    ...(era === 'legacy' ? [{ ...common, name: 'no proxy' }] : []),
    { ...common, name: yardstick(era), proxy: program('pass-through.mjs'), idle: true },
    { ...common, name: bareProxy(era), proxy: program('undici-proxy.mjs'), idle: true },
  ]
})

const lanes = (['http', 'stdio'] as const).flatMap((transport) =>
  ERAS.flatMap((client) =>
    ERAS.flatMap((server): Candidate[] => {
      const lane = { name: laneName(client, server, transport), kind: 'bridge', client, server, transport } as const
      const proxy: NonNullable<Candidate['proxy']> = ({ url, server: address, bridge }) => {
        const target = transport === 'http' ? ['--upstream', address] : ['--', ...stdioServer(server)]
        return [bridge, '--log-level', 'warn', '--listen', url, ...target]
      }
      // In front of a program of its own era, each session has a program of its own.
      const idle = transport === 'http' || client !== server
      const ways = transport === 'http' ? (Object.keys(WAYS) as Way[]) : FOR_PROGRAMS
      return [{ ...lane, proxy, idle }, ...ways.map((way) => configured(lane, way))]
    }),
  ),
)

function configured(lane: Omit<Candidate, 'proxy'>, way: Way): Candidate {
  const name = wayName(lane.name, way)
  const [command, ...args] = stdioServer(lane.server)
  return {
    ...lane,
    name,
    way,
    writes: true,
    proxy: (at) => {
      const { port, url, server, bridge } = at
      const { entry, servers = 1, program, ...rest }: Configured = WAYS[way](at)
      if (program !== undefined) return [beside(program), String(port), server, bridge]
      const target = lane.transport === 'http' ? { url: server } : { command, args }
      const config = { mcpServers: entriesFor(servers, { ...target, ...entry }), listen: url, ...rest }
      return [bridge, '--config', temporary(`${name}, ${port}.json`, JSON.stringify(config))]
    },
  }
}

/** The pass-throughs and all lanes of the bridge. */
export const candidates: readonly Candidate[] = [...controls, ...lanes]

/** What the candidates of another build are called. */
export const beforeName = (name: string): string => `before: ${name}`

/** The candidates, and each lane of the bridge a second time through another build of it. */
export function besideBuild(among: readonly Candidate[], bridge: string): Candidate[] {
  return among.flatMap((one) => (one.kind === 'bridge' ? [one, { ...one, name: beforeName(one.name), bridge }] : [one]))
}

export interface Server {
  port: number
  process: ChildProcess
}

/** Starts the server of an era that candidates call over HTTP. Resolves when it listens. */
export async function startServer(era: Era): Promise<Server> {
  const port = await freePort()
  const process = start('rest', [beside(SERVERS[era]), String(port)], 'inherit')
  await listening(port)
  return { port, process }
}

/** What candidates of one run share. */
export interface Surroundings {
  redis: string | undefined
  issuer?: Issuer | undefined
}

/** Starts a candidate, with further arguments for Node. It does not listen yet. */
export async function launch(
  candidate: Candidate,
  serverPort: number,
  { redis, issuer }: Surroundings,
  node: readonly string[] = [],
  proxy = candidate.proxy,
): Promise<Running> {
  if (!proxy) return { candidate, port: serverPort, process: undefined }
  const port = await freePort()
  const admin = await freePort()
  const { bridge = ownBuild, way } = candidate
  const args = proxy({ port, url: urlAt(port), server: urlAt(serverPort), bridge, admin, redis, issuer })
  const stderr = candidate.writes ? 'ignore' : 'inherit'
  const process = start(
    'proxy',
    [...node, ...args],
    candidate.pipe ? ['pipe', 'pipe', stderr] : ['ignore', 'ignore', stderr],
  )
  if (candidate.pipe) return { candidate, port, process, pipe: new PipeClient(process) }
  const query = way && READ[way]
  const headers = way && issuer && SIGNED_IN.includes(way) ? { authorization: `Bearer ${issuer.token}` } : {}
  if (query === undefined) return { candidate, port, process, headers }
  const events = urlAt(admin, `/inspect/events${query}`)
  return { candidate, port, process, reader: start('rest', [beside('viewer.mjs'), events, TOKEN], 'inherit') }
}
