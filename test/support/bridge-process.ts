/**
 * A bridge in a process of its own, for load: tap watches every promise of the test's process, which costs as much as the
 * bridge. As a program it takes its settings as JSON, says where it listens, and tells on each line that comes in how busy
 * its servers are.
 */
import { spawn } from 'node:child_process'
import { argv, env, execPath, stdin, stdout } from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { Test } from 'tap'
import { Bridge } from '../../src/app.js'
import { parseSettings } from '../../src/config.js'

export interface BridgeProcess {
  /** Addresses by the names of servers. */
  urls: Record<string, string>
  /** Calls that are open, and those that wait for their clients, of all servers. */
  busy(): Promise<number>
}

/** Starts a bridge, which ends with the test. */
export async function startBridgeProcess(t: Test, settings: object): Promise<BridgeProcess> {
  const args = ['--import=tsx', fileURLToPath(import.meta.url), JSON.stringify(settings)]
  const child = spawn(execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGTERM'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error('The bridge has ended')
    return JSON.parse(value as string) as unknown
  }
  const urls = (await next()) as BridgeProcess['urls']
  const busy = () => {
    child.stdin.write('\n')
    return next() as Promise<number>
  }
  return { urls, busy }
}

async function serve(): Promise<void> {
  const settings = parseSettings(JSON.parse(argv[2] ?? '{}'), { env, read: String })
  const bridge = new Bridge(settings, { log: pino({ level: 'silent' }), version: '0.0.0', env })
  const urls = await bridge.listen()
  stdout.write(`${JSON.stringify(Object.fromEntries(urls))}\n`)
  for await (const _line of createInterface(stdin)) {
    const busy = [...bridge.mounts.values()].reduce((sum, { busy: { calls, parked } }) => sum + calls + parked, 0)
    stdout.write(`${busy}\n`)
  }
  await bridge.close(true)
}

if (argv[1] === fileURLToPath(import.meta.url)) await serve()
