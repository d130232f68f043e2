/**
 * Runs a program that is not part of the default installation: `node .ci/tool.mjs <set> <program> [arguments]`, or only
 * installs its set: `node .ci/tool.mjs <set>`.
 *
 * A set is a folder of .ci/tools with a package.json and a lockfile of its own, so that versions and contents are pinned, and
 * `npm ci` for a newcomer stays small. A set is installed when it is first used, and again when its lockfile has changed.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { argv, env, execPath, exit, platform, stderr } from 'node:process'
import { fileURLToPath } from 'node:url'

const sets = fileURLToPath(new URL('tools/', import.meta.url))
const [set = '', program, ...args] = argv.slice(2)
const folder = join(sets, set)
const lockfile = join(folder, 'package-lock.json')
if (set === '' || !existsSync(lockfile)) fail(`There is no set ${set}; there are ${readdirSync(sets).join(', ')}`)

if (!installed()) {
  stderr.write(`Installing .ci/tools/${set}\n`)
  // No package of a set may run a script when it is installed. Warnings about engines are for those who use a set.
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], folder)
  if (existsSync(join(folder, 'unpack.mjs'))) run(execPath, ['unpack.mjs'], folder)
  copyFileSync(lockfile, join(folder, 'node_modules/.installed.json'))
}
if (program !== undefined) run(program, args)

function installed() {
  const copy = join(folder, 'node_modules/.installed.json')
  return existsSync(copy) && readFileSync(copy, 'utf8') === readFileSync(lockfile, 'utf8')
}

/** Runs a program of the set, or else of the machine, and ends with its exit code if it fails. */
function run(command, args, cwd) {
  const path = [join(folder, 'node_modules/.bin'), env.PATH].join(delimiter)
  // On Windows, programs of packages are batch files, which only a shell starts.
  const shell = platform === 'win32' && command !== execPath
  const { status, error } = spawnSync(command, args, { cwd, shell, stdio: 'inherit', env: { ...env, PATH: path } })
  if (error) fail(`${command} could not be started: ${error.message}`)
  if (status !== 0) exit(status ?? 1)
}

function fail(message) {
  stderr.write(`${message}\n`)
  exit(2)
}
