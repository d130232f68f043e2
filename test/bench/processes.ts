/** The processes of a run: each on its core, watched by what the system says of it, and ended whatever happens. */
import { type ChildProcess, execFileSync, type StdioOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../support/free-port.js'

const cores = availableParallelism()
/** The proxy has a core to itself; whatever calls it or is called by it shares the others. */
const CORES = { proxy: '0', rest: cores > 2 ? `1-${cores - 1}` : '1' }
/** Of a microsecond. */
const NANOSECONDS = 1_000
const KIB = 1024
const GRACE = 10_000

export const pinned = cores > 1 && spawnSync('taskset', ['--version']).status === 0

/** The Node.js that runs proxies. Everything else runs on that of this process. */
let nodeOfProxies = process.execPath

/** Has proxies run on another Node.js from here on. Returns its version. */
export function runProxiesOn(node: string): string {
  nodeOfProxies = node
  return execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const pid of [...running].flatMap(familyOf)) signal(pid, 'SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

/** Moves this process away from the proxy's core, and with it all that it starts from here on but proxies. */
export function stepAside(): void {
  if (pinned) execFileSync('taskset', ['-a', '-c', '-p', CORES.rest, String(process.pid)], { stdio: 'ignore' })
}

/** The command line of a Node process on a core. */
export function commandOn(core: keyof typeof CORES, args: readonly string[]): [string, ...string[]] {
  const node = core === 'proxy' ? nodeOfProxies : process.execPath
  return pinned ? ['taskset', '-c', CORES[core], node, ...args] : [node, ...args]
}

/** Starts a Node process on a core. `taskset` becomes what it starts: the pid is that of the Node process. */
export function start(core: keyof typeof CORES, args: readonly string[], stdio: StdioOptions): ChildProcess {
  return startCommand(commandOn(core, args), stdio)
}

export function startCommand([command, ...args]: readonly [string, ...string[]], stdio: StdioOptions): ChildProcess {
  return keep(spawn(command, args, { stdio }))
}

/** Has a process end with this one. */
function keep<C extends ChildProcess>(child: C): C {
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Ends a process and what it has started, gently at first. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  const [, ...others] = familyOf(child)
  child.kill('SIGTERM')
  const impatient = setTimeout(() => child.kill('SIGKILL'), GRACE)
  await exited
  clearTimeout(impatient)
  // Programs end with their pipes; a daemon stays.
  for (const pid of others) signal(pid, 'SIGTERM')
}

/** The process and all that it has started, as long as it runs. */
function familyOf({ pid }: ChildProcess): number[] {
  const children = new Map<number, number[]>()
  for (const name of existsSync('/proc/self/stat') ? readdirSync('/proc') : []) {
    const parent = /^\d+$/.test(name) ? / \(.*\) \S (\d+) /s.exec(textIn(`/proc/${name}/stat`))?.[1] : undefined
    if (parent !== undefined) children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(name)])
  }
  const family = pid === undefined ? [] : [pid]
  for (const one of family) family.push(...(children.get(one) ?? []))
  return family
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended.
  }
}

/** What a file has; nothing if it is gone, as that of a process that has ended. */
function textIn(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** Microseconds of CPU that a process and its workers have used, all their threads and the kernel's work for them included. */
export function cpuOf({ pid }: Pick<ChildProcess, 'pid'>): number | undefined {
  const own = cpuOfOne(pid)
  return own && workersOf(pid).reduce((sum, worker) => sum + (cpuOfOne(worker) ?? 0), own)
}

/** The processes that serve together with a bridge: it has no other children where servers are at addresses. */
function workersOf(pid: number | undefined): number[] {
  const path = `/proc/${pid}/task/${pid}/children`
  const children = existsSync(path) ? readFileSync(path, 'latin1').split(' ').filter(Boolean).map(Number) : []
  return children.filter((child) => readFileSync(`/proc/${child}/environ`, 'latin1').includes('MCP_BRIDGE_WORKER='))
}

function cpuOfOne(pid: number | undefined): number | undefined {
  const tasks = `/proc/${pid}/task`
  if (!existsSync(tasks)) return undefined
  // The first field of schedstat is nanoseconds on a CPU. A thread may end between the two reads.
  const nanoseconds = readdirSync(tasks).map((task) => {
    const path = join(tasks, task, 'schedstat')
    return existsSync(path) ? Number(readFileSync(path, 'latin1').split(' ')[0]) : 0
  })
  return nanoseconds.reduce((sum, one) => sum + one, 0) / NANOSECONDS
}

/** MiB of memory that a process holds. */
export function memoryOf({ pid }: ChildProcess): number | undefined {
  const path = `/proc/${pid}/status`
  const kib = existsSync(path) ? /^VmRSS:\s+(\d+)/m.exec(readFileSync(path, 'latin1'))?.[1] : undefined
  return kib === undefined ? undefined : Number(kib) / KIB
}

/** The process with all that it has started: how many they are, and MiB that they hold. What several share counts as shares of each. */
export function familySize(child: ChildProcess): { processes: number; mib: number | undefined } {
  const family = familyOf(child)
  const kib = family.map((pid) => Number(/^Pss:\s+(\d+)/m.exec(textIn(`/proc/${pid}/smaps_rollup`))?.[1]))
  const mib = kib.reduce((sum, one) => sum + one, 0) / KIB
  return { processes: family.length, mib: Number.isFinite(mib) ? mib : undefined }
}

/** A file that is there for as long as this process, with this text in it. */
export function temporary(name: string, text: string): string {
  folder ??= mkdtempSync(join(tmpdir(), 'mcp-bridge-bench-'))
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
let folder: string | undefined
process.on('exit', () => folder !== undefined && rmSync(folder, { recursive: true, force: true }))

export interface Redis {
  url: string
  process: ChildProcess
}

/** Starts a Redis that keeps nothing on disk. Resolves to undefined if the machine has none. */
export async function startRedis(): Promise<Redis | undefined> {
  if (spawnSync('redis-server', ['--version']).status !== 0) return undefined
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  return { url: `redis://127.0.0.1:${port}`, process: keep(spawn('redis-server', args, { stdio: 'ignore' })) }
}

/** How many files a process may have open here; sockets count. */
export function openFilesLimit(): number {
  const limits = existsSync('/proc/self/limits') ? readFileSync('/proc/self/limits', 'latin1') : ''
  const hard = /^Max open files +\S+ +(\d+)/m.exec(limits)?.[1]
  return hard === undefined ? Number.POSITIVE_INFINITY : Number(hard)
}

/** The path of a file beside this one. */
export function beside(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}
