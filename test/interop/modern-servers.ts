/** A server of the modern era, of the SDK: how the bridge is told to reach it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { programArgs } from '../support/program.js'
import type { Scope } from '../support/scope.js'
import { end, type Named } from './legacy-servers.js'

const PROGRAM = 'interop/modern-server'

export const MODERN_WAYS = ['stdio', 'Streamable HTTP'] as const

/** Starts the server for the way that needs it running, and says how it is reached by both. */
export async function startModern(
  t: Scope,
  program = PROGRAM,
  stderr: 'inherit' | 'ignore' = 'inherit',
): Promise<Record<(typeof MODERN_WAYS)[number], Named>> {
  return {
    stdio: { upstream: `stdio:node ${programArgs(program).join(' ')} stdio` },
    'Streamable HTTP': { upstream: await addressOfProgram(t, program, { stderr }) },
  }
}

/** Starts a program that says where it listens, and resolves to that. */
export async function addressOfProgram(
  t: Scope,
  program: string,
  { env, stderr = 'inherit' }: { env?: NodeJS.ProcessEnv; stderr?: 'inherit' | 'ignore' } = {},
): Promise<string> {
  const args = [...programArgs(program), 'http']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', stderr], ...(env && { env }) })
  t.teardown(() => end(child))
  return addressOf(child)
}

async function addressOf(child: ChildProcess): Promise<string> {
  const exit = once(child, 'exit').then(([code]) => {
    throw new Error(`The modern server exited with code ${code} before it listened`)
  })
  const [line] = (await Promise.race([once(createInterface(child.stdout as Readable), 'line'), exit])) as [string]
  exit.catch(() => {})
  return line
}
