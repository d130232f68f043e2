/**
 * The program (see cli.ts) with a configuration file, for tools that watch it from outside for hours: where it listens, whether it
 * still runs, and what the system and its metrics say of it. Of its output only the first mistakes are kept.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { createInterface } from 'node:readline'
import { main } from './cli.js'
import { PATIENCE } from './eventually.js'
import { temporaryFolder } from './folder.js'
import { readSeries } from './prometheus.js'
import type { Scope } from './scope.js'

type Json = Record<string, unknown>

/** From this level on a line says that the bridge has made a mistake. */
const MISTAKE = 50
/** The name of a server in lines of the log where there is only one. */
const ONLY = ''
/** Lines about mistakes that are kept. */
const KEPT = 20

export interface StartOptions {
  /** Options of Node.js. */
  node?: readonly string[]
  env?: Record<string, string>
}

export class BuiltBridge {
  readonly child: ChildProcessWithoutNullStreams
  /** Lines of the log at level `error` or above, and what is no line of it; the first of them. */
  readonly mistakes: string[] = []
  /** Told of each of these when it comes. */
  onMistake: (line: string) => void = () => {}
  /** How it ended; undefined as long as it runs. */
  ended: string | undefined
  /** Why it stops; undefined as long as nobody has asked it to. */
  stopped: string | undefined
  readonly #urls = new Map<string, string>()
  #admin: string | undefined

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.child = child
    child.once('exit', (code, signal) => {
      this.ended = signal ?? `exit code ${code}`
    })
    child.stdin.on('error', () => {})
    createInterface(child.stderr).on('line', (line) => this.#log(line))
  }

  /** Starts one. Over HTTP it resolves when the bridge listens, on stdio at once. */
  static async start(scope: Scope, settings: Json, { node = [], env = {} }: StartOptions = {}): Promise<BuiltBridge> {
    const file = join(temporaryFolder(scope), 'mcp.json')
    writeFileSync(file, JSON.stringify({ log: { format: 'json', level: 'warn' }, ...settings }))
    const args = [...node, main, '--config', file, '--log-format', 'json', '--log-level', 'info']
    const bridge = new BuiltBridge(spawn(execPath, args, { env: { ...process.env, ...env } }))
    scope.teardown(() => bridge.end())
    const servers = Object.keys(settings['mcpServers'] as Json)
    const isReady = () =>
      servers.every((name) => bridge.#urls.has(name) || bridge.#urls.has(ONLY)) && bridge.#admin !== undefined
    if (settings['listen'] !== 'stdio') await bridge.#until(isReady, 'listening')
    return bridge
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  /** The address of a server's endpoint. */
  url(server: string): string {
    const url = this.#urls.get(server) ?? this.#urls.get(ONLY)
    if (url === undefined) throw new Error(`There is no server ${server}`)
    return url
  }

  /** All series of the bridge's own metrics, and the process's. */
  async metrics(): Promise<Record<string, number>> {
    const response = await fetch(new URL('/metrics', this.#admin))
    const text = await response.text()
    return { ...processSeries(text), ...readSeries(text) }
  }

  /** Processes that it has started and that run, by their ids, without the shell that watches over them. */
  children(): number[] {
    return programsOf(this.pid)
  }

  /** Open descriptors. */
  descriptors(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length
  }

  /** Asks it to end, and resolves to how it did. */
  async end(): Promise<string> {
    if (this.ended === undefined) this.child.kill('SIGTERM')
    const impatient = setTimeout(() => this.child.kill('SIGKILL'), PATIENCE)
    await this.#until(() => this.ended !== undefined, 'its end', true)
    clearTimeout(impatient)
    return String(this.ended)
  }

  #log(line: string): void {
    const said = parse(line)
    if (said?.['event'] === 'listening') this.#urls.set(String(said['server'] ?? ONLY), String(said['url']))
    if (said?.['event'] === 'stopping') this.stopped = `asked to by ${said['signal']}`
    if (said?.['event'] === 'admin_listening') this.#admin = String(said['url'])
    if (said && Number(said['level']) < MISTAKE) return
    this.onMistake(line)
    if (this.mistakes.length < KEPT) this.mistakes.push(line)
  }

  async #until(condition: () => boolean, what: string, mayEnd = false): Promise<void> {
    const deadline = Date.now() + 2 * PATIENCE
    while (!condition()) {
      if (this.ended !== undefined && !mayEnd) throw new Error(`The bridge ended (${this.ended}): ${this.mistakes}`)
      if (Date.now() > deadline) throw new Error(`The bridge did not come to ${what}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

function processSeries(text: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => /^(process|nodejs)_\w+ /.test(line))
  return Object.fromEntries(lines.map((line) => line.split(' ') as [string, string]).map(([k, v]) => [k, Number(v)]))
}

/** Processes beside the programs: the watchdog, and the compiler of a bridge that runs from its sources. */
const BESIDE = /mcp-bridge-watchdog|esbuild/

/** The programs that a bridge has started. */
export function programsOf(bridge: number): number[] {
  return childrenOf(bridge).filter((pid) => !BESIDE.test(commandOf(pid)))
}

/** Processes whose parent is this one. */
export function childrenOf(parent: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => parentOf(pid) === parent)
}

function parentOf(pid: number): number | undefined {
  try {
    // The name of the program, in brackets, may hold anything; a zombie is a child that has ended.
    const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    return state === 'Z' ? undefined : Number(parent)
  } catch {
    return undefined
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

function parse(line: string): Json | undefined {
  try {
    return JSON.parse(line) as Json
  } catch {
    return undefined
  }
}
