/** The command with which a client's entry starts the bridge: the running program, by a stable path. */
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../config/value.js'
import { UsageError } from '../usage-error.js'

/** A command and its first arguments. */
export interface Launcher {
  command: string
  args: readonly string[]
  /** Flags of the bridge itself, after `--listen stdio`. */
  flags?: readonly string[]
}

export interface RunningCommand {
  /** The path of Node.js, or of the executable. */
  node: string
  /** The path of its script; undefined of the executable. */
  script: string | undefined
  version: string
  platform: string
}

/** The cache folder of npx, which may be cleaned. */
const NPX = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]/s
/** Homebrew removes the folder of a version when it installs the next one. */
const HOMEBREW = /^(.*)\/Cellar\/(node(?:@\d+)?)\/[^/]+\/bin\/node$/

/** The command that starts this program again. Throws a UsageError if it runs from a temporary place. */
export function launcherOf({ node, script, version, platform }: RunningCommand): Launcher {
  if (script === undefined) return { command: node, args: [] }
  const path = realpathSync(script)
  const folder = NPX.exec(path)?.[1]
  if (folder === undefined) return { command: node.replace(HOMEBREW, '$1/opt/$2/bin/node'), args: [path] }
  if (!isFromRegistry(folder))
    throw new UsageError(
      'npx runs mcp-bridge from a temporary folder, which entries cannot name: install it with npm install -g, and run mcp-bridge wrap again',
    )
  const words = ['npx', '-y', `mcp-bridge@${version}`]
  // On Windows npx is a batch file, which clients cannot start.
  const [command = '', ...args] = platform === 'win32' ? ['cmd', '/c', ...words] : words
  return { command, args }
}

/** Whether npx resolved mcp-bridge by name, and not from a file, folder or repository. */
function isFromRegistry(folder: string): boolean {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>
  const wanted = isObject(dependencies) ? dependencies['mcp-bridge'] : undefined
  return typeof wanted === 'string' && /^[~^]?\d/.test(wanted)
}
