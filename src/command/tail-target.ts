/** Finds the bridge for `mcp-bridge tail`: by address, or by the socket of a bridge on stdio. */

import { INSPECT } from '../app/inspector-path.js'
import { bridgesIn, type RunningBridge, readFromBridge } from '../app/running-bridges.js'
import { homeFolder } from '../base/net/home-folder.js'
import { stateFolder } from '../base/net/state-folder.js'
import { parseUrl } from '../base/texts/parse-url.js'
import { printable } from '../base/texts/printable.js'
import type { Environment, InspectorTarget } from './tail-connection.js'
import { UsageError } from './usage-error.js'

/** The folder where bridges of this user have their sockets. */
export function socketsOf(env: Environment): string | undefined {
  return stateFolder(env, homeFolder())
}

/** The arguments that identify a bridge. */
export interface WantedBridge {
  /** The address that the bridge printed, or its process id; undefined for the only bridge of this user. */
  target: string | undefined
  /** The folder with the sockets of running bridges; undefined if there is none. */
  sockets: string | undefined
}

/** A unix socket, and the token. */
const UNIX = /^unix:([^:#]+)[^#]*(?:#(.*))?$/

/** The inspector at an address. Throws a UsageError. */
function targetAt(address: string): InspectorTarget {
  const [, socketPath, own = ''] = UNIX.exec(address) ?? []
  const url = parseUrl(socketPath === undefined ? address : 'http://localhost')
  if (!url) throw new UsageError(`${printable(address)} is not a valid address`, 'tail')
  const token = socketPath === undefined ? url.hash.slice(1) : own
  return { url: new URL(`${INSPECT}/events`, url), token: token === '' ? undefined : token, socketPath }
}

/** The bridge to follow. Throws a UsageError if that is ambiguous. */
export async function targetOf({ target, sockets }: WantedBridge): Promise<InspectorTarget> {
  if (target !== undefined && !/^\d+$/.test(target)) return targetAt(target)
  const { bridges: found, refused } =
    sockets === undefined
      ? { bridges: [], refused: [] }
      : await bridgesIn(sockets, process.getuid?.() ?? -1, (pid) => target === undefined || pid === target)
  const [problem] = refused
  const [one, ...more] = found
  if (!one && problem) throw new UsageError(`${problem.path} may be somebody else's: ${problem.why}`, 'tail')
  if (!one)
    throw new UsageError(
      target === undefined
        ? 'no bridge on stdio with --inspect runs as this user: of one on HTTP, give the address that it printed after "Inspector:"'
        : `no bridge with --inspect has the process id ${printable(target)}`,
      'tail',
    )
  if (more.length > 0) {
    const names = await Promise.all(found.map(serversOf))
    const choices = found.map(({ pid }, i) => `${pid}${names[i] === '' ? '' : ` (${names[i]})`}`)
    throw new UsageError(
      `several bridges run: choose one of ${choices.join(', ')}, as in mcp-bridge tail ${one.pid}`,
      'tail',
    )
  }
  return at(one.socketPath, 'events')
}

/** Most servers in the description of a bridge. */
const MAX_NAMED_SERVERS = 5

/** Names of a bridge's servers; empty if it does not tell them. */
async function serversOf({ socketPath }: RunningBridge): Promise<string> {
  try {
    const { servers } = await readFromBridge<{ servers: { name: string }[] }>(socketPath, 'servers')
    const names = servers.map(({ name }) => printable(name))
    return [...names.slice(0, MAX_NAMED_SERVERS), ...(names.length > MAX_NAMED_SERVERS ? ['…'] : [])].join(', ')
  } catch {
    return ''
  }
}

function at(socketPath: string, what: string): InspectorTarget {
  return { url: new URL(`http://localhost${INSPECT}/${what}`), token: undefined, socketPath }
}
