/** Servers of the legacy era that people use, from npm: how the bridge is told to reach each. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Scope } from '../support/scope.js'
import { openTether, TIED } from './tether.js'

export const EVERYTHING = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'
export const FILESYSTEM = 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js'
export const MEMORY = 'node_modules/@modelcontextprotocol/server-memory/dist/index.js'

/** A server as it is named to the bridge. */
export interface Named {
  /** As `--upstream` takes it. */
  upstream: string
  env?: Record<string, string>
}

/** Ways to server-everything. The last leaves it to the bridge to find out that an address is not Streamable HTTP. */
export const WAYS = ['stdio', 'Streamable HTTP', 'HTTP+SSE', 'HTTP+SSE found out'] as const

/** Starts server-everything for each way that needs it running, and says how it is reached by all of them. */
export async function startEverything(t: Scope): Promise<Record<(typeof WAYS)[number], Named>> {
  const [http, sse] = await Promise.all([listen(t, 'streamableHttp'), listen(t, 'sse')])
  return {
    stdio: { upstream: `stdio:node ${EVERYTHING}` },
    'Streamable HTTP': { upstream: `http://127.0.0.1:${http}/mcp` },
    'HTTP+SSE': { upstream: `sse+http://127.0.0.1:${sse}/sse` },
    'HTTP+SSE found out': { upstream: `http://127.0.0.1:${sse}/sse` },
  }
}

/** Starts server-everything on a port of the system's choice, which it does not say by itself. */
async function listen(t: Scope, transport: 'streamableHttp' | 'sse'): Promise<number> {
  const tether = await openTether(t)
  const child = spawn(process.execPath, [TIED, EVERYTHING, transport], {
    env: { PORT: '0', TETHER_PORT: String(tether.port) },
    stdio: 'ignore',
  })
  t.teardown(() => end(child))
  const exit = once(child, 'exit').then(([code]) => {
    throw new Error(`server-everything exited with code ${code} before it listened`)
  })
  const [line] = (await Promise.race([once(createInterface(await tether.next()), 'line'), exit])) as [string]
  exit.catch(() => {})
  return Number(line)
}

/** Ends a process that the test has started, and waits until it has. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill()
  await exit
}
