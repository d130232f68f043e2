/** Finds the bridge for `mcp-bridge tail`: by address, or by the socket of a bridge on stdio. */

import { bridgesIn, type RunningBridge, readFromBridge } from '../app/running-bridges.js'
import { homeFolder } from '../base/net/home-folder.js'
import { stateFolder } from '../base/net/state-folder.js'
import { printable } from '../base/texts/printable.js'
import { type Environment, type InspectorTarget, inspectorAt, placeAt } from './tail-connection.js'
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

/** The bridge to follow. Throws a UsageError if that is ambiguous. */
export async function targetOf({ target, sockets }: WantedBridge): Promise<InspectorTarget> {
  if (target !== undefined && !/^\d+$/.test(target)) return inspectorAt(placeAt(target, 'tail'), 'events')
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
  const { socketPath } = one
  return inspectorAt({ url: new URL('http://localhost'), token: undefined, socketPath }, 'events')
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
