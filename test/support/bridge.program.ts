/**
 * A bridge from the sources that takes its settings as JSON, says where it listens, and answers each line on its input: how busy its
 * servers are, or what it holds after a garbage collection. See bridge-process.ts.
 */
import { ChildProcess } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { argv, env, stdin, stdout } from 'node:process'
import { createInterface } from 'node:readline'
import { queryObjects } from 'node:v8'
import { pino } from 'pino'
import { Bridge } from '../../src/app/bridge.js'
import { replicasOf } from '../../src/app/replicas.js'
import { parseSettings } from '../../src/config/settings.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'

async function serve(): Promise<void> {
  const settings = parseSettings(JSON.parse(argv[2] ?? '{}'), { env, read: String })
  const version = '0.0.0'
  const metrics = new Metrics({ version })
  const log = pino({ level: 'silent' })
  const replicas = replicasOf(settings, log)
  const bridge = new Bridge(settings, { log, version, env, metrics, replicas })
  const urls = await bridge.listen()
  stdout.write(`${JSON.stringify(Object.fromEntries(urls))}\n`)
  let warnings = 0
  // What counts the objects is experimental, and says so.
  process.on('warning', ({ name }) => {
    if (name !== 'ExperimentalWarning') warnings++
  })
  for await (const line of createInterface(stdin)) {
    const busy = [...bridge.mounts.values()].reduce((sum, { busy: { calls, parked } }) => sum + calls + parked, 0)
    const answers: Record<string, () => unknown> = { holds: () => ({ ...held(), warnings }), memory: used }
    stdout.write(`${JSON.stringify(answers[line]?.() ?? busy)}\n`)
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

/** After a garbage collection, which counting objects does. */
function used(): Record<string, number> {
  const sockets = queryObjects(Socket, { format: 'count' })
  return { sockets, heap: process.memoryUsage().heapUsed, files: readdirSync('/proc/self/fd').length }
}

await serve()
