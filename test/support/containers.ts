/** Containers of Docker for tests, `npm run test:containers`: the client that .ci/containers has found, and what tests ask it for. */
import { type ChildProcessWithoutNullStreams, execFile, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { type Program, watchProgram } from './cli.js'
import { until } from './eventually.js'

const run = promisify(execFile)
/** The client of Docker. */
export const engine = env['MCP_BRIDGE_DOCKER'] ?? 'docker'
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** As few privileges as a container can have. */
export const CONFINED = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges', '--user=65532:65532']

/** Why tests with Compose are skipped; false where they are not. */
export const noCompose: string | false =
  spawnSync(engine, ['compose', 'version']).status === 0 ? false : 'there is no plugin compose of Docker'

/** Runs a command of Docker that fails. Resolves to what it said. */
export async function dockerFails(...args: string[]): Promise<string> {
  return docker(...args).then(
    (said) => Promise.reject(new Error(`It did not fail: ${said}`)),
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
  )
}

/** Runs a command of Docker to its end. Resolves to its output. */
export async function docker(...args: string[]): Promise<string> {
  const { stdout } = await run(engine, args, { cwd: root, maxBuffer: 64 * 1024 * 1024 })
  return stdout.trim()
}

/** Starts `docker run` with these arguments and leaves it running, with its streams. */
export function startDocker(t: Test, args: readonly string[], more: Record<string, string> = {}): Program {
  const child = spawn(engine, args, { cwd: root, env: { ...env, ...more } })
  return watchProgram(t, child as ChildProcessWithoutNullStreams)
}

/** A name for what a test creates, which is removed after it. */
export function newName(t: Test, ...remove: string[]): string {
  const name = `mcp-bridge-test-${randomBytes(4).toString('hex')}`
  t.teardown(() => spawnSync(engine, [...(remove.length > 0 ? remove : ['rm', '--force', '--volumes']), name]))
  return name
}

/** Starts a container in the background, of the image or of a variant of it. Resolves to its name. */
export async function startContainer(
  t: Test,
  options: readonly string[],
  args: readonly string[],
  image = 'mcp-bridge',
): Promise<string> {
  const name = newName(t)
  await docker('run', '--detach', `--name=${name}`, ...options, image, ...args)
  return name
}

/** What Docker says of a container: `{{.State.Health.Status}}` and the like. */
export function inspect(name: string, what: string): Promise<string> {
  return docker('inspect', '--format', what, name)
}

export async function untilHealthy(name: string): Promise<void> {
  await until(async () => (await inspect(name, '{{.State.Health.Status}}')) === 'healthy', `${name} being healthy`)
}

/** The address of a published port on this machine. */
export async function published(name: string, port: number): Promise<string> {
  const [address = ''] = (await docker('port', name, String(port))).split('\n')
  return `http://${address}`
}

/** What a container has written to both streams. */
export async function logsOf(name: string): Promise<string> {
  const { stdout, stderr } = await run(engine, ['logs', name], { maxBuffer: 64 * 1024 * 1024 })
  return stdout + stderr
}
