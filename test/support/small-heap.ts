/** The bridge as a process with a heap of 512 MB, and a healthy client beside whoever attacks it. */
import { spawn } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { type Program, says, startProgram } from './cli.js'
import { until } from './eventually.js'
import { temporaryFile } from './folder.js'
import { readSeries } from './prometheus.js'

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))

/** Bytes of the old space, in MB. */
const HEAP = 512

/** A bridge that healthy clients call, while others attack it. */
export interface Neighbours {
  url: string
  alive(): boolean
  /** What it wrote, if it is a program of its own. */
  stderr?(): string
}

export interface Attacked extends Neighbours {
  program: Program
  /** The origin that the bridge listens on. */
  origin: string
  /** What the gauge of a bound says, `memory` as a rule: used, and limit. */
  gauge(bound?: string): Promise<{ used: number; limit: number }>
  /** Resident memory in MiB. */
  resident(): Promise<number>
}

/** A server of test/fixtures/bulky.mjs as an entry of the configuration. Over HTTP it is `{ url }` of a started one. */
export const bulkyStdio = (era: 'legacy' | 'modern') => ({
  command: execPath,
  args: [fixture('bulky.mjs'), era, 'stdio'],
})

/** Starts the bridge in front of one server, where the settings say. */
export function startProgramSmall(t: Test, server: object, settings: object): Program {
  const file = temporaryFile(t, 'config.json', { mcpServers: { test: server }, log: { format: 'json' }, ...settings })
  return startProgram(t, ['--config', file], { NODE_OPTIONS: `--max-old-space-size=${HEAP}` })
}

/** Starts the bridge in front of one server, over HTTP. It has to be alive when the test ends. */
export async function startSmall(t: Test, server: object, settings: object = {}): Promise<Attacked> {
  const program = startProgramSmall(t, server, { listen: 'http://127.0.0.1:0/mcp', ...settings })
  const [, url = ''] = await says(program, /"url":"([^"]+)"/)
  const { origin } = new URL(url)
  const series = async () => readSeries(await (await fetch(`${origin}/metrics`)).text())
  return {
    program,
    url,
    origin,
    alive: () => program.child.exitCode === null && program.child.signalCode === null,
    stderr: program.stderr,
    async gauge(bound = 'memory') {
      const all = await series()
      const of = (name: string) => all[`mcp_bridge_${name}{bound="${bound}",server=""}`] ?? Number.NaN
      return { used: of('bound_used'), limit: of('bound_limit') }
    },
    async resident() {
      const text = await (await fetch(`${origin}/metrics`)).text()
      return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1]) / 1024 / 1024
    },
  }
}

export interface RecordedEvent {
  answered: number
  failed: number
  failures: string[]
  /** Milliseconds. */
  p50: number
  p99: number
  max: number
}

/** Has a healthy client call while `attack` runs. Prints how it fared, and gives it back. */
export async function besideHealthy(
  t: Test,
  { url, alive, stderr }: Neighbours,
  attack: () => Promise<unknown>,
  credential = '',
  tool = 'echo',
): Promise<RecordedEvent> {
  const child = spawn(execPath, [fixture('healthy.mjs'), url, credential, tool])
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => t.comment(chunk))
  await until(() => said.includes('calling') || !alive(), 'the first answer')
  await attack()
  const ended = new Promise((resolve) => child.once('close', resolve))
  child.stdin.end()
  await ended
  const seen = JSON.parse(said.trim().split('\n').at(-1) as string) as RecordedEvent
  t.comment(`healthy client: ${JSON.stringify(seen)}`)
  t.ok(alive(), 'the bridge is alive', { stderr: stderr?.().slice(-2_000) })
  t.ok(seen.answered > 0, 'the healthy client was answered')
  t.equal(seen.failed, 0, 'no call of the healthy client failed', { failures: seen.failures })
  return seen
}
