/** A short name for the server of a command line: for people who choose among several bridges. */
import { basename } from 'node:path'
import { addressesOf, isStdio } from '../config/kinds.js'
import type { Settings } from '../config/settings.js'

/** Parts of a path that say nothing. */
const USUAL = /^(?:index|main|server|cli|dist|build|src|lib|bin|out)(?:\.\w+)?$/
/** Most characters. */
const TITLE = 60

/**
 * The package, script or host of the only server, if its own name says nothing; undefined if there are several. Arguments
 * after the first are not read.
 */
export function titleOf({ mcpServers }: Pick<Settings, 'mcpServers'>): string | undefined {
  const [[name, server] = ['', undefined], ...more] = Object.entries(mcpServers)
  if (!server || more.length > 0 || !USUAL.test(name)) return undefined
  if (!isStdio(server)) return new URL(addressesOf(server)[0]).host.slice(0, TITLE)
  const { command, args } = server
  const first = args.find((word) => !word.startsWith('-') && !word.includes('='))
  const parts = (first ?? command).split(/[\\/]/).filter(Boolean)
  const title = parts.findLast((part) => !USUAL.test(part)) ?? basename(command)
  return title.slice(0, TITLE)
}
