/** Programs of the bridge to measure: the one of this checkout, and one built from another commit. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beside } from './processes.js'

const root = beside('../..')

/** The built bridge of this checkout. */
export const ownBuild = beside('../../dist/main.js')

/** Builds a commit in a temporary folder, with the dependencies of that commit. Returns the path of its program. */
export function buildOf(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-against-'))
  const run = (command: string, args: string[], cwd = folder) =>
    execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  process.stderr.write(`bench: building ${commit}\n`)
  run('git', ['clone', '--quiet', '--no-checkout', root, folder], root)
  run('git', ['-c', 'advice.detachedHead=false', 'checkout', '--quiet', idOf(commit)])
  const lockfile = (at: string) => readFileSync(join(at, 'package-lock.json'), 'utf8')
  if (lockfile(folder) === lockfile(root)) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  else run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'])
  run('npm', ['run', 'build', '--silent'])
  return join(folder, 'dist/main.js')
}

/** The commit of this checkout, with a plus if files differ from it. */
export function ownCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  return git('rev-parse', '--short=10', 'HEAD') + (git('status', '--porcelain', 'src', 'package-lock.json') && '+')
}

/** The full id of a commit, which names it in a clone too. */
function idOf(commit: string): string {
  return execFileSync('git', ['rev-parse', `${commit}^{commit}`], { cwd: root, encoding: 'utf8' }).trim()
}
