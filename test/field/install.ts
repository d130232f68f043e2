/** Published packages, installed by name and exact version outside this project. They are kept from one run to the next. */
import { execFile } from 'node:child_process'
import { access, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { promisify } from 'node:util'

export interface Package {
  name: string
  version: string
  /** Others that it does not work without and does not install, as npm takes them. */
  beside?: readonly string[]
}

const run = promisify(execFile)
const FOLDER = env['MCP_BRIDGE_FIELD'] ?? join(tmpdir(), 'mcp-bridge-field')
/** Milliseconds. */
const TIMEOUT = { ask: 30_000, install: 600_000 }

/** Why nothing can be installed here; undefined where it can. */
export async function registryProblem(): Promise<string | undefined> {
  try {
    await run('npm', ['view', 'mcp-remote', 'name', '--fetch-retries=0'], { timeout: TIMEOUT.ask })
    return undefined
  } catch (error) {
    const lines = String((error as { stderr?: unknown }).stderr ?? error).split('\n')
    return `the npm registry cannot be reached: ${lines.find((line) => /npm (?:error|ERR!)/.test(line)) ?? lines[0]}`
  }
}

/** Installs a package, if that has not been done before, and resolves to the folder that it is in. */
export async function install({ name, version, beside = [] }: Package): Promise<string> {
  const folder = join(FOLDER, `${name}@${version}`.replaceAll('/', '+'))
  const done = join(folder, 'installed')
  const installed = join(folder, 'node_modules', name)
  if (await exists(done)) return installed
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{"private":true}')
  // Nothing that a package wants to do at its installation is needed here, and nothing of it is to happen.
  const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact', '--loglevel=error']
  const args = ['install', ...quietly, `${name}@${version}`, ...beside]
  await run('npm', args, { cwd: folder, timeout: TIMEOUT.install })
  await writeFile(done, '')
  return installed
}

/** The file that an installed package starts with, under the name of one of its programs or, without one, the first. */
export async function programOf(folder: string, name?: string): Promise<string> {
  const { bin } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { bin: string | Bins }
  const path = typeof bin === 'string' ? bin : name === undefined ? Object.values(bin)[0] : bin[name]
  if (path === undefined) throw new Error(`There is no program ${name ?? ''} in ${folder}`)
  return join(folder, path)
}

type Bins = Record<string, string>

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
