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
  const run = (command: string, args: string[], cwd = folder) =>
    execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  process.stderr.write(`bench: building ${commit}\n`)
  run('git', ['clone', '--quiet', '--no-checkout', root, folder], root)
  run('git', ['-c', 'advice.detachedHead=false', 'checkout', '--quiet', commit])
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'])
  run('npm', ['run', 'build', '--silent'])
  return join(folder, 'dist/main.js')
}
