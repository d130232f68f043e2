/** A program of the tests that says where it listens on its first line. It ends with the test. */
import { type ChildProcess, spawn } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Scope } from './scope.js'

export interface Listening {
  url: string
  child: ChildProcess
}

export function startFixture(t: Scope, name: string, ...args: string[]): Promise<Listening> {
  const script = fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))
  const child = spawn(execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
      if (said.includes('\n')) resolve({ url: said.slice(0, said.indexOf('\n')), child })
    })
    child.once('exit', (code) => reject(new Error(`${name} exited with code ${code}`)))
  })
}
