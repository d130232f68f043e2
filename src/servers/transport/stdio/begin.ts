/** Starts the programs of servers, one of them ahead of the code that speaks to it. */
import type { ChildProcess } from 'node:child_process'
import process from 'node:process'
import spawn from 'cross-spawn'
import { cannotStart, type ProgramStart } from './cannot-start.js'

interface Begun {
  child: ChildProcess
  /** The event of its start has been. */
  hasSpawned: boolean
}

let ahead: (Begun & { start: string }) | undefined

/**
 * Starts a program before the rest of the bridge is loaded, so that both take their time at once. The first transport that begins the
 * same takes it. What cannot be started is left to the transport, which says why.
 */
export function beginAhead(start: ProgramStart): void {
  // There, finding the program is the work of the transport.
  if (process.platform === 'win32') return
  try {
    const { child } = spawned(start)
    child.once('error', () => {})
    if (child.pid === undefined) return
    const own = { start: asText(start), child, hasSpawned: false }
    child.once('spawn', () => {
      own.hasSpawned = true
    })
    ahead = own
    process.once('exit', endAhead)
  } catch {
    // As above.
  }
}

/** Starts a program. Throws a ChannelError; some errors of the system are not thrown, but become events of the child. */
export function begin(start: ProgramStart): Begun {
  if (ahead?.start === asText(start) && isRunning(ahead.child)) {
    const { child, hasSpawned } = ahead
    ahead = undefined
    return { child, hasSpawned }
  }
  endAhead()
  return spawned(start)
}

function asText({ command, args, env, cwd }: ProgramStart): string {
  return JSON.stringify([command, args, env, cwd])
}

function spawned(start: ProgramStart): Begun {
  const { command, args, env, cwd } = start
  try {
    // Without a shell. Only for `.cmd` and `.bat` on Windows, cross-spawn uses cmd.exe, and escapes the arguments. The
    // program gets a process group of its own, so that its descendants can be ended with it.
    const child = spawn(command, args, {
      env,
      stdio: 'pipe',
      shell: false,
      detached: process.platform !== 'win32',
      windowsHide: true,
      ...(cwd && { cwd }),
    })
    return { child, hasSpawned: false }
  } catch (cause) {
    throw cannotStart(start, cause as NodeJS.ErrnoException)
  }
}

/** Ends the program that nobody has taken. */
function endAhead(): void {
  const { child } = ahead ?? {}
  ahead = undefined
  if (child?.pid !== undefined && isRunning(child)) process.kill(-child.pid, 'SIGKILL')
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}
