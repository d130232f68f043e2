/**
 * A bridge from the sources in a process of its own, for load tests: tap watches every promise of the test's process, which costs as
 * much as the bridge. It is not the program (see cli.ts), because it also tells what only its own process can count: how busy its
 * servers are, and what it holds after a garbage collection. It takes its settings as JSON, says where it listens, and answers each
 * line on its input.
 */
import { ChildProcess, spawn } from 'node:child_process'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { argv, env, execPath, stdin, stdout } from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { queryObjects } from 'node:v8'
import { pino } from 'pino'
import type { Test } from 'tap'
import { Bridge } from '../../src/bridge/bridge.js'
import { parseSettings } from '../../src/config/settings.js'
import { Metrics } from '../../src/telemetry/metrics.js'

export interface BridgeProcess {
  /** Addresses by the names of servers. */
  urls: Record<string, string>
  pid: number
  /** Calls that are open, and those that wait for their clients, of all servers. */
  busy(): Promise<number>
  /**
   * What is there after a garbage collection: objects by their class (timers, sockets, signals …), whether they keep the process
   * alive or not; what keeps it alive, by kind; listeners of the process; and warnings of Node.js so far.
   */
  holds(): Promise<Record<string, number>>
}

/** Starts a bridge, which ends with the test. */
export async function startBridgeProcess(t: Test, settings: object): Promise<BridgeProcess> {
  const args = [
    '--disable-warning=ExperimentalWarning',
    '--import=tsx',
    fileURLToPath(import.meta.url),
    JSON.stringify(settings),
  ]
  const child = spawn(execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGTERM'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error('The bridge has ended')
    return JSON.parse(value as string) as unknown
  }
  const urls = (await next()) as BridgeProcess['urls']
  const ask = (what: string) => {
    child.stdin.write(`${what}\n`)
    return next()
  }
  const busy = () => ask('busy') as Promise<number>
  const holds = () => ask('holds') as Promise<Record<string, number>>
  return { urls, busy, holds, pid: child.pid as number }
}

async function serve(): Promise<void> {
  const settings = parseSettings(JSON.parse(argv[2] ?? '{}'), { env, read: String })
  const version = '0.0.0'
  const metrics = new Metrics({ version })
  const bridge = new Bridge(settings, { log: pino({ level: 'silent' }), version, env, metrics })
  const urls = await bridge.listen()
  stdout.write(`${JSON.stringify(Object.fromEntries(urls))}\n`)
  let warnings = 0
  // What counts the objects is experimental, and says so.
  process.on('warning', ({ name }) => {
    if (name !== 'ExperimentalWarning') warnings++
  })
  for await (const line of createInterface(stdin)) {
    const busy = [...bridge.mounts.values()].reduce((sum, { busy: { calls, parked } }) => sum + calls + parked, 0)
    stdout.write(`${JSON.stringify(line === 'holds' ? { ...held(), warnings } : busy)}\n`)
  }
  await bridge.close(true)
}

/** Classes of Node.js of which there are many in a bridge that has much open. */
const CLASSES: Record<string, () => abstract new (...args: never[]) => unknown> = {
  timers: () => {
    const timer = setTimeout(() => {}, 0)
    clearTimeout(timer)
    return timer.constructor as new () => unknown
  },
  sockets: () => Socket,
  answers: () => ServerResponse,
  requests: () => IncomingMessage,
  'child processes': () => ChildProcess,
  'abort signals': () => AbortSignal,
}

function held(): Record<string, number> {
  const objects = Object.entries(CLASSES).map(([name, find]) => [name, queryObjects(find(), { format: 'count' })])
  const active: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) active[`active ${kind}`] = (active[`active ${kind}`] ?? 0) + 1
  const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  return { ...Object.fromEntries(objects), ...active, 'listeners of the process': listeners }
}

if (argv[1] === fileURLToPath(import.meta.url)) await serve()
