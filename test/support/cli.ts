/**
 * The program as people run it: arguments in, output and exit code out. All output is kept. Tools that watch a bridge for a long time
 * use built-bridge.ts instead, which keeps only mistakes; load tests that count what is in a bridge use bridge-process.ts.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { env as environment, execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { until } from './eventually.js'
import { temporaryFolder } from './folder.js'
import { watchForSecrets } from './secrets.js'

/** Built before the tests, because it starts six times as fast as from the sources. */
export const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))

export interface Program {
  child: ChildProcessWithoutNullStreams
  stdout(): string
  stderr(): string
  /** Resolves to the exit code when the program has ended. */
  ended: Promise<number | null>
}

/** The program as a command, for clients that start it themselves. */
export function bridgeCommand(...args: readonly string[]): { command: string; args: string[] } {
  return { command: execPath, args: [main, ...args] }
}

/** Flags that give an upstream program its environment. */
export function environmentFlags(env: Record<string, string>): string[] {
  return Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`])
}

/** Starts the program as it is published, or as `command` says. */
export function startProgram(
  t: Test,
  args: readonly string[],
  env: Record<string, string> = {},
  [command, ...first]: readonly [string, ...string[]] = [execPath, main],
): Program {
  // What a bridge of another test has kept is not for this one.
  const own = 'HOME' in env || 'XDG_STATE_HOME' in env ? {} : { XDG_STATE_HOME: temporaryFolder(t) }
  return watchProgram(t, spawn(command, [...first, ...args], { cwd: root, env: { ...environment, ...own, ...env } }))
}

/** Takes down what a child says, and sees to it that it does not outlive the test. */
export function watchProgram(t: Test, child: ChildProcessWithoutNullStreams): Program {
  t.teardown(() => child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  // A person gets the address of a sign-in, which has its state.
  const written = () => `${stdout}${stderr.replace(/^Open this address in a browser.*\n\n.*$/gm, '')}`
  watchForSecrets(t, 'the output of a program', written)
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { child, stdout: () => stdout, stderr: () => stderr, ended }
}

/** Runs the program to its end. */
export async function run(t: Test, args: readonly string[], env?: Record<string, string>) {
  const program = startProgram(t, args, env)
  const code = await program.ended
  return { code, stdout: program.stdout(), stderr: program.stderr() }
}

/** Waits for a line on stderr that matches, and gives what matched. */
export async function says(program: Program, pattern: RegExp): Promise<RegExpExecArray> {
  await until(() => pattern.test(program.stderr()), `${pattern} on stderr (${program.stderr()})`)
  return pattern.exec(program.stderr()) as RegExpExecArray
}
