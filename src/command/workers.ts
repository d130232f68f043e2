/**
 * Serves with several processes: starts them as workers, and one in place of each that ends by itself. This process accepts the
 * connections of clients and gives them to the workers in turn, and has what they have in common. It answers no request.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { statusTogether } from '../app/together.js'
import type { WorkerFact } from '../app/workers.js'
import { createLog, isReadable } from '../base/log/log.js'
import { homeFolder } from '../base/net/home-folder.js'
import { stateFolder } from '../base/net/state-folder.js'
import { backoff } from '../base/time/pause.js'
import { within } from '../base/time/time.js'
import { parseListen, type Settings } from '../config/settings.js'
import type { BridgeStatus } from '../mcp/ports/bridge-status.js'
import type { ValueCall } from '../services/replicas/common.js'
import { type ProcessChannel, ProcessLink } from '../services/replicas/link.js'
import { CommonMemory } from '../services/replicas/memory.js'
import { Doors } from './doors.js'
import { EXIT } from './ends.js'
import { Heartbeat } from './heartbeat.js'
import { type EndSignal, type Program, WORKER } from './program.js'
import type { RunCommand } from './serve.js'
import { StatusSocket } from './status-socket.js'
import { UsageError } from './usage-error.js'
import { checkParts } from './worker-bounds.js'
import { workersOf } from './worker-count.js'
import type { Begin, Door, DoorOpening } from './worker-messages.js'

/** Milliseconds before a worker takes the place of one that has ended: the first delay and the longest. */
const AGAIN = { first: 100, most: 30_000 }
/** Milliseconds that a worker has to serve for its end not to count as another failure. */
const STEADY = 30_000
/** Milliseconds without an answer after which a worker does not serve. */
const SILENCE = 5_000
/** Milliseconds for a worker to tell something of itself. */
const TELLS = 3_000

interface Running {
  number: number
  process: ChildProcess
  link: ProcessLink
  /** When it began to serve. */
  servedSince: number | undefined
  /** When it last answered. */
  heard: number
}

/** How many workers a configuration wants; 1 for this process alone. A client on stdio has one process. */
export function workersFor({ workers, listen }: Settings): number {
  return parseListen(listen).kind === 'stdio' ? 1 : workersOf(workers)
}

export function startWorkers({ settings, record }: RunCommand, program: Program, count: number): void {
  checkParts(settings, count)
  if (record !== undefined)
    throw new UsageError('--record writes the calls of one process: leave it out, or set --workers 1')
  program.errors.readable = isReadable(settings.log, program.output)
  new Workers(settings, program, count).start()
}

class Workers {
  readonly #program: Program
  readonly #count: number
  readonly #log: ReturnType<typeof createLog>
  readonly #memory = new CommonMemory(Math.floor(getHeapStatistics().heap_size_limit / 4))
  readonly #key = randomBytes(32).toString('hex')
  readonly #folder: string | undefined
  readonly #doors: Doors<Running>
  readonly #running = new Set<Running>()
  /** Failures in a row, by number. */
  readonly #failures = new Map<number, number>()
  readonly #status: StatusSocket
  readonly #heartbeat: Heartbeat
  #started = 0
  #origins: readonly string[] = []
  #hasServed = false
  #signals = 0

  constructor(settings: Settings, program: Program, count: number) {
    const { env, output } = program
    this.#program = program
    this.#count = count
    this.#folder = folderForSockets(program)
    this.#log = createLog(settings.log, output)
    this.#doors = new Doors(env, settings.admin !== undefined, ({ link }, door, socket, lost) =>
      link.tell('connection', { door }, socket, lost),
    )
    this.#status = new StatusSocket(stateFolder(env, homeFolder()), this.#log)
    this.#heartbeat = new Heartbeat(env['MCP_BRIDGE_HEALTH_FILE'], this.#log, () => this.#allServe())
  }

  start(): void {
    const { onSignal, onReload, onCrash, onDroppedLines, abort } = this.#program
    onDroppedLines((lines) => this.#log.error({ event: 'log_lines_dropped', lines }, 'log lines dropped'))
    onSignal((signal) => this.#stop(signal))
    onReload(() => this.#tellAll('reload'))
    // The workers see that this process is gone, and end.
    onCrash(abort)
    // The others follow when it serves: what keeps it from that would keep them, too.
    this.#begin(1)
  }

  #begin(number: number): void {
    const process = fork(this.#program)
    const link: ProcessLink = new ProcessLink(
      process as ProcessChannel,
      this.#callsOf(() => running),
    )
    const running: Running = { number, process, link, servedSince: undefined, heard: 0 }
    this.#running.add(running)
    process.once('exit', (code, signal) => this.#ended(running, code, signal))
    process.once('error', (error) => {
      if (process.pid !== undefined) return
      this.#program.fail(error)
      this.#ended(running, EXIT.failed, null)
    })
  }

  /** What a worker may call. */
  #callsOf(worker: () => Running) {
    const memory = this.#memory
    return {
      begin: (): Begin => ({
        number: worker().number,
        count: this.#count,
        key: this.#key,
        socket: this.#folder && join(this.#folder, `${++this.#started}.sock`),
        isFirst: !this.#hasServed,
      }),
      open: (opening: DoorOpening) => this.#doors.open(worker(), opening),
      close: ({ door }: { door: Door }) => this.#doors.close(worker(), door),
      serves: ({ origins }: { origins: readonly string[] }) => this.#serves(worker(), origins),
      gather: ({ what }: { what: WorkerFact }) => this.#gather(what),
      value: ({ name, of }: ValueCall) => (memory[name] as (...of: unknown[]) => unknown).apply(memory, of),
      publish: (message: object) => {
        for (const other of this.#running) if (other !== worker()) other.link.tell('hear', message)
      },
    }
  }

  #serves(running: Running, origins: readonly string[]): void {
    running.servedSince = performance.now()
    running.heard = running.servedSince
    if (this.#hasServed) return
    this.#hasServed = true
    this.#origins = origins
    this.#heartbeat.start()
    this.#status.serve(async () => ({
      ...statusTogether(await this.#gather<BridgeStatus>('status')),
      pid: process.pid,
      origins: this.#origins,
    }))
    for (let number = 2; number <= this.#count; number++) this.#begin(number)
  }

  /** Whether each worker that serves has answered lately. Asks them again. */
  #allServe(): boolean {
    const serving = [...this.#running].filter(({ servedSince }) => servedSince !== undefined)
    const heard = (running: Running) => {
      running.heard = performance.now()
    }
    for (const running of serving)
      running.link.call('alive').then(
        () => heard(running),
        () => {},
      )
    return serving.every((running) => performance.now() - running.heard < SILENCE)
  }

  /** Asks all workers. Who ends meanwhile, or does not answer, is left out. */
  async #gather<T>(what: WorkerFact): Promise<readonly T[]> {
    const serving = [...this.#running].filter(({ servedSince }) => servedSince !== undefined)
    const told = serving.map(({ link }) => within(link.call<T>('tell', { what }), TELLS).catch(() => undefined))
    return (await Promise.all(told)).filter((one) => one !== undefined) as T[]
  }

  #ended(running: Running, code: number | null, signal: NodeJS.Signals | null): void {
    if (!this.#running.delete(running)) return
    this.#doors.leave(running)
    if (this.#signals > 0) {
      if (this.#running.size === 0) this.#end()
      return
    }
    // It has said why.
    if (!this.#hasServed) {
      this.#end(code ?? EXIT.failed)
      return
    }
    const { number, servedSince } = running
    const wasSteady = servedSince !== undefined && performance.now() - servedSince > STEADY
    const failures = wasSteady ? 0 : (this.#failures.get(number) ?? 0)
    this.#failures.set(number, failures + 1)
    const again = backoff(failures, AGAIN)
    const how = { worker: number, pid: running.process.pid, ...(signal ? { signal } : { code }) }
    this.#log.error({ event: 'worker_lost', ...how, againIn: again }, 'a worker has ended; another one takes its place')
    setTimeout(() => this.#signals === 0 && this.#begin(number), again)
  }

  #stop(signal: EndSignal): void {
    this.#signals++
    this.#tellAll('signal', { signal })
    if (this.#running.size === 0 || this.#signals > 2) this.#end()
  }

  #tellAll(call: string, argument?: object): void {
    for (const { link } of this.#running) link.tell(call, argument)
  }

  #end(code?: number): void {
    this.#close()
      .then(() => this.#program.end(code))
      .catch(this.#program.abort)
  }

  async #close(): Promise<void> {
    this.#doors.end()
    this.#heartbeat.stop()
    await this.#status.close()
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Starts this program again, as a worker. */
function fork({ node, nodeArgs, script, argv, env }: Program): ChildProcess {
  return spawn(node, [...nodeArgs, ...(script === undefined ? [] : [script]), ...argv], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...env, [WORKER]: '1' },
  })
}

/** A folder that only this user can open; undefined if there can be none. */
function folderForSockets({ platform }: Program): string | undefined {
  if (platform === 'win32') return undefined
  try {
    return mkdtempSync(join(tmpdir(), 'mcp-bridge-'))
  } catch {
    return undefined
  }
}
