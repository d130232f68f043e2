/** How the entry of a client starts the bridge: the program that runs now, by a path that stays. */
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../config/value.js'
import { UsageError } from '../usage-error.js'

/** A command and its first arguments. */
export interface Launcher {
  command: string
  args: readonly string[]
}

/** What runs now. */
export interface Running {
  /** The path of Node.js. */
  node: string
  /** The path of the script that it was started with. */
  script: string
  version: string
  platform: string
}

/** The folder in which npx keeps what it has downloaded, until its cache is cleaned. */
const NPX = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]/s
/** Homebrew removes the folder of a version when it installs the next one. */
const HOMEBREW = /^(.*)\/Cellar\/(node(?:@\d+)?)\/[^/]+\/bin\/node$/

/** How to start this program again. Throws a UsageError if it runs from a place that does not stay. */
export function launcherOf({ node, script, version, platform }: Running): Launcher {
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

/** Whether npx got mcp-bridge by its name, and not from a file, folder or repository. */
function isFromRegistry(folder: string): boolean {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>
  const wanted = isObject(dependencies) ? dependencies['mcp-bridge'] : undefined
  return typeof wanted === 'string' && /^[~^]?\d/.test(wanted)
}
