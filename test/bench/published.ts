/** What `--publish` measures: the bridge and other programs in the same rounds, each in what it can do, for legacy clients. */
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type At,
  type Candidate,
  candidates,
  entriesFor,
  launch,
  type Running,
  type Surroundings,
  stdioServer,
} from './candidates.js'
import { type Fresh, measureFresh } from './fresh.js'
import { COLLECTING, close, openMany, REHEARSAL, type Session } from './idle.js'
import { type Block, jobFor, measure, type Pace, withPeers } from './measure.js'
import { mcporters, mcpProxyOfProgram, mcpRemote, supergateway, supergatewayOnPipe, versionOf } from './peers.js'
import { familySize, temporary } from './processes.js'
import { askOnPipe, firstAnswer, inSession, prepare, prepareOnPipe, type Question } from './questions.js'
import { groupCall, type Scenario } from './scenarios.js'

export interface Published {
  /** The rows of the table, with the names of the candidates. */
  rows: { what: string; by: string; candidate: string | undefined }[]
  blocks: Block[]
  fresh: Fresh[]
  sizes: Size[]
}

interface Size {
  candidate: string
  /** MiB that an idle session adds, with the programs behind the proxy; on a pipe, of all processes of its one session. */
  session: number | undefined
  /** All processes of one client of ten servers, programs included, and the MiB that they hold. */
  ten: { processes: number; mib: number | undefined } | undefined
}

interface PublishedPace extends Pace {
  starts: number
}

/** What multiples are of. */
export const DIRECT = 'no proxy'
export const SESSIONS = [1, 8, 32]
export const SERVERS = 10
/** Some proxies start a program for each; where they do not, it takes more sessions to see what one costs. */
const IDLE_SESSIONS = 50
const WITHOUT_PROGRAMS = 500
/** Milliseconds until a process has done what it does after a call. */
const REST = 2_000
const TOOLS_OF_ONE = 20
/** Of the bridge, which bounds both by default: those of this run and of its rehearsals. */
const ENOUGH = { processes: 2 * IDLE_SESSIONS, sessions: 2 * WITHOUT_PROGRAMS }

export const PUBLISHED_PACE: PublishedPace = { rounds: 4, window: 300, warmUp: 2_500, lives: 3, starts: 5 }
/** Minutes on each Node.js, with that pace. */
export const PUBLISHED_MINUTES = 8

const scenario: Scenario = {
  name: 'sessions',
  what: 'tools/call with a result of 160 characters, in as many sessions as there are connections',
  kind: 'closed',
  question: groupCall,
  connections: { quick: SESSIONS, usual: SESSIONS, all: SESSIONS },
  sessions: true,
  base: DIRECT,
}

const bridges = {
  program: bridge('program', {}),
  single: bridge('one program', { process: 'single' }),
  server: bridge('server', {}),
  pipe: bridge('server, pipe', {}),
}

/** Who can do what. */
const CAN: readonly [what: string, Record<string, Candidate | undefined>][] = [
  [
    'a program, over HTTP',
    {
      'mcp-bridge': bridges.program,
      'mcp-bridge, "process": "single"': bridges.single,
      'mcp-proxy': mcpProxyOfProgram,
      supergateway,
      mcporter: mcporters.program,
      'mcp-remote': undefined,
    },
  ],
  [
    'a server over HTTP, over HTTP',
    {
      'mcp-bridge': bridges.server,
      mcporter: mcporters.server,
      'mcp-proxy': undefined,
      supergateway: undefined,
      'mcp-remote': undefined,
    },
  ],
  [
    'a server over HTTP, on a pipe',
    {
      'mcp-bridge': bridges.pipe,
      'mcp-remote': mcpRemote,
      supergateway: supergatewayOnPipe,
      mcporter: mcporters.pipe,
      'mcp-proxy': undefined,
    },
  ],
]

/** Measures all of it, one kind of figure after the other. Other programs that fail are left out of that kind. */
export async function measurePublished(pace: PublishedPace, surroundings: Surroundings): Promise<Published> {
  const rows = CAN.flatMap(([what, fronts]) =>
    Object.entries(fronts).map(([name, candidate]) => {
      const by = name.startsWith('mcp-bridge') ? name : `${name} ${versionOf(name)}`
      return { what, by, candidate }
    }),
  )
  const fronts = rows.flatMap(({ candidate }) => candidate ?? [])
  const direct = candidates.find(({ name }) => name === DIRECT) as Candidate
  const blocks = await measure(scenario, SESSIONS, [direct, ...fronts], pace, surroundings)
  const fresh = await measureFresh(fronts, pace.starts, surroundings, groupCall)
  const sizes: Size[] = []
  for (const candidate of fronts) {
    process.stderr.write(`sizes: ${candidate.name}\n`)
    const session = await unlessPeer(candidate, () => sizeOfSession(candidate, surroundings))
    const ten = await unlessPeer(candidate, () => sizeOfServers(candidate, surroundings))
    sizes.push({ candidate: candidate.name, session, ten })
  }
  return { rows: rows.map((row) => ({ ...row, candidate: row.candidate?.name })), blocks, fresh, sizes }
}

async function unlessPeer<T>({ kind, name }: Candidate, act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act()
  } catch (error) {
    if (kind !== 'peer') throw error
    process.stderr.write(`left out: ${name}: ${error}\n`)
    return undefined
  }
}

function bridge(front: string, more: object): Candidate {
  const transport = front.startsWith('server') ? 'http' : 'stdio'
  const pipe = front.endsWith('pipe')
  const many: NonNullable<Candidate['many']> = (at, servers) => {
    const [command, ...args] = stdioServer('legacy')
    const mcpServers = entriesFor(
      servers,
      transport === 'http' ? { url: at.server, ...more } : { command, args, ...more },
    )
    const listen = pipe
      ? {}
      : { listen: at.url, limits: ENOUGH, ...(servers > 1 && { groups: { all: { path: '/mcp' } } }) }
    const file = temporary(`bridge ${at.port}.json`, JSON.stringify({ mcpServers, ...listen }))
    return [at.bridge, '--log-level', 'warn', '--config', file, ...(pipe ? ['--listen', 'stdio'] : [])]
  }
  const common = { kind: 'bridge', client: 'legacy', server: 'legacy', transport, pipe } as const
  return { ...common, name: `mcp-bridge to ${front}`, proxy: (at) => many(at, 1), many }
}

function sizeOfSession(candidate: Candidate, surroundings: Surroundings): Promise<number | undefined> {
  return withPeers([candidate], async (_, ports, started) => {
    const { client, server, sessionless } = candidate
    if (sessionless) return undefined
    const running = await launch(candidate, ports.get(server) as number, surroundings, COLLECTING)
    const proxy = running.process as ChildProcess
    started.unshift(proxy)
    if (running.pipe) {
      await jobFor(running, groupCall)
      return (await resting(proxy)).mib
    }
    const open: Session[] = []
    try {
      await close(running.port, await openMany(client, running.port, REHEARSAL))
      const before = await resting(proxy)
      open.push(...(await openMany(client, running.port, IDLE_SESSIONS)))
      let after = await resting(proxy)
      if (after.processes === before.processes) {
        open.push(...(await openMany(client, running.port, WITHOUT_PROGRAMS - IDLE_SESSIONS)))
        after = await resting(proxy)
      }
      return before.mib === undefined || after.mib === undefined ? undefined : (after.mib - before.mib) / open.length
    } finally {
      for (const { stream } of open) stream.destroy()
    }
  })
}

async function resting(proxy: ChildProcess) {
  await sleep(REST)
  proxy.kill('SIGUSR2')
  await sleep(REST)
  return familySize(proxy)
}

function sizeOfServers(candidate: Candidate, surroundings: Surroundings): Promise<Size['ten']> {
  return withPeers([candidate], async (_, ports, started) => {
    const { many, server } = candidate
    const together = many && ((at: At) => many(at, SERVERS))
    const proxies: ChildProcess[] = []
    for (let count = 0; count < (many ? 1 : SERVERS); count++) {
      const running = await launch(candidate, ports.get(server) as number, surroundings, [], together)
      proxies.push(running.process as ChildProcess)
      started.unshift(running.process as ChildProcess)
      await useAll(running, many ? SERVERS : 1)
    }
    await sleep(REST)
    const sizes = proxies.map(familySize)
    const processes = sizes.reduce((sum, one) => sum + one.processes, 0)
    const mib = sizes.reduce((sum, one) => sum + (one.mib ?? Number.NaN), 0)
    return { processes, mib }
  })
}

/** A client that lists the tools of all servers, and calls one of each. */
async function useAll({ candidate, port, pipe }: Running, servers: number): Promise<void> {
  const { client, sessionless } = candidate
  const list = listOf(servers * TOOLS_OF_ONE)
  const calls = Object.keys(entriesFor(servers, {})).map((name) => ({
    ...groupCall,
    params: { ...groupCall.params, name: `${name}__weather` },
  }))
  if (pipe) {
    await prepareOnPipe(client, list, pipe.ask)
    for (const call of calls) await askOnPipe(client, call, pipe.ask)
  } else {
    const wire = await prepare(client, list, port, !sessionless)
    for (const question of [list, ...calls]) await firstAnswer(port, inSession(wire, question), client, question)
  }
}

function listOf(tools: number): Question {
  return {
    method: 'tools/list',
    params: {},
    right: ({ tools: listed }) => Array.isArray(listed) && listed.length === tools,
  }
}
