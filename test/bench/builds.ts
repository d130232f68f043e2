/** Programs of the bridge to measure: the one of this checkout, and one built from another commit. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beside } from './processes.js'

const root = beside('../..')

/** The built bridge of this checkout. */
export const ownBuild = beside('../../dist/main.js')

/** Builds a commit in a temporary folder, with that commit's own dependencies. Returns the path of its program. */
export function buildOf(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-against-'))
  const checkout = join(folder, 'checkout')
  const run = (command: string, args: string[], cwd: string) =>
    execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  process.on('exit', () => {
    run('git', ['worktree', 'remove', '--force', checkout], root)
    rmSync(folder, { recursive: true, force: true })
  })
  process.stderr.write(`bench: building ${commit}\n`)
  run('git', ['worktree', 'add', '--detach', checkout, commit], root)
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], checkout)
  run('npm', ['run', 'build', '--silent'], checkout)
  return join(checkout, 'dist/main.js')
}
