/** What the bridge makes of the command line of a container, and of the files that are mounted into it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { type Command, parseCommand } from '../../src/command/parse.js'
import { parseListen, type Settings } from '../../src/config/settings.js'
import { temporaryFolder } from './folder.js'

/** Long enough for every kind of secret, and different wherever secrets have to be. */
export function secret(name: string): string {
  return /url$/i.test(name) ? 'redis://redis:6379' : `a-secret-that-stands-for-${name}-in-this-test`
}

/**
 * Reads a command line as the bridge would in a container that has these files, by their paths there. Throws what it would
 * say: a flag or an option that there is not, or a file that is not there.
 */
export function commandIn(
  t: Test,
  args: readonly string[],
  files: ReadonlyMap<string, string>,
  env: Record<string, string> = {},
): Command {
  const folder = temporaryFolder(t)
  const moved = (text: string) =>
    [...files.keys()].reduce((moving, path) => moving.replaceAll(path, join(folder, path)), text)
  for (const [path, content] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), moved(content))
  }
  return parseCommand(args.map(moved), env)
}

/** The ports that a bridge listens on, and whether others than its own container get there, in networks of both families. */
export function ports({ listen, admin }: Settings): Record<'main' | 'admin', { port: number; reachable: boolean }> {
  const at = (address: string) => {
    const parsed = parseListen(address)
    if (parsed.kind === 'stdio') return { port: 0, reachable: false }
    return { port: parsed.port, reachable: parsed.host === '::' }
  }
  return { main: at(listen), admin: at(admin ?? listen) }
}
