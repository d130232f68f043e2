/**
 * A bridge from the sources in a process of its own, for load tests: tap watches every promise of the test's process, which costs as
 * much as the bridge. It is not the program (see cli.ts), because it also tells what only its own process can count: how busy its
 * servers are, and what it holds after a garbage collection.
 */
import { spawn } from 'node:child_process'
import { execPath } from 'node:process'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { programArgs } from './program.js'

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
  /** Sockets, bytes of the heap and open files, after a garbage collection. */
  memory(): Promise<{ sockets: number; heap: number; files: number }>
}

/** Starts a bridge, which ends with the test. */
export async function startBridgeProcess(t: Test, settings: object): Promise<BridgeProcess> {
  const args = ['--disable-warning=ExperimentalWarning', ...programArgs('support/bridge'), JSON.stringify(settings)]
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
  const memory = () => ask('memory') as ReturnType<BridgeProcess['memory']>
  return { urls, busy, holds, memory, pid: child.pid as number }
}
