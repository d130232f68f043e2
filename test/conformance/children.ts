/** The processes of a run. Each is ended by its handle, whatever happens to the run. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** Milliseconds that a process has to end by itself. */
const GRACE = 10_000

export interface Child {
  /** What it writes to standard output, line by line, for whoever reads from the beginning. */
  lines: AsyncIterable<string>
  /** Resolves to the exit code when it has ended; null where a signal ended it. */
  ended: Promise<number | null>
}

const running = new Map<Child, ChildProcess>()

// The last resort, for ways out that wait for nothing.
process.once('exit', () => {
  for (const handle of running.values()) handle.kill('SIGKILL')
})

/** Starts a script under the running Node.js. All that it writes goes to the file `log`, too. */
export function start(args: readonly string[], log: string): Child {
  const handle = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const file = createWriteStream(log, { flags: 'a' })
  handle.stdout.pipe(file, { end: false })
  handle.stderr.pipe(file, { end: false })
  const ended = once(handle, 'close').then(([code]) => {
    running.delete(child)
    file.end()
    return code as number | null
  })
  const child: Child = { lines: createInterface({ input: handle.stdout }), ended }
  running.set(child, handle)
  return child
}

/** Ends a process, gently at first. */
async function end(child: Child): Promise<void> {
  const handle = running.get(child)
  if (!handle) return
  handle.kill('SIGTERM')
  const force = setTimeout(() => handle.kill('SIGKILL'), GRACE)
  await child.ended
  clearTimeout(force)
}

export async function endAll(): Promise<void> {
  await Promise.all([...running.keys()].map(end))
}
