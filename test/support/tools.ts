/** Programs and packages of the sets in .ci/tools, which `node .ci/tool.mjs <set>` installs and `.ci/run` has installed. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'

export type ToolSet = 'extension' | 'kubernetes' | 'models' | 'release'

/** Where programs are that `.ci/debian` took out of a package and did not install. */
const DEBIAN = fileURLToPath(new URL('../../.ci/tools/debian/usr/bin/', import.meta.url))

const folderOf = (set: ToolSet) => fileURLToPath(new URL(`../../.ci/tools/${set}/`, import.meta.url))

/** Why tests that need a set are skipped; false where it is installed as its lockfile says. */
export function missing(set: ToolSet): string | false {
  const folder = folderOf(set)
  const copy = join(folder, 'node_modules/.installed.json')
  const same =
    existsSync(copy) && readFileSync(copy, 'utf8') === readFileSync(join(folder, 'package-lock.json'), 'utf8')
  return same ? false : `not installed: node .ci/tool.mjs ${set}`
}

/** The path of a file in a package of a set. */
export function inTools(set: ToolSet, path: string): string {
  return join(folderOf(set), 'node_modules', path)
}

/** Runs a program of a set, or else of the machine. */
export function runTool(
  set: ToolSet | 'debian',
  program: string,
  args: readonly string[],
  cwd?: string,
): SpawnSyncReturns<string> {
  const folder = set === 'debian' ? DEBIAN : inTools(set, '.bin')
  const PATH = [folder, env['PATH']].join(delimiter)
  return spawnSync(program, args, { cwd, encoding: 'utf8', env: { ...env, PATH } })
}

/** Why tests that need a program are skipped; false where there is one. */
export function lacks(program: string, version: readonly string[], set: ToolSet | 'debian' = 'debian'): string | false {
  const { error } = runTool(set, program, version)
  return error === undefined ? false : `there is no ${program} on the PATH`
}
