/** Finds the bridge for `mcp-bridge tail`: by address, or by the socket of a bridge on stdio. */
import { lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { homeFolder } from '../discovery/home.js'
import { INSPECT } from '../inspect/address.js'
import { socketFolder } from '../inspect/socket.js'
import { folderProblem } from '../net/private-file.js'
import { parseUrl } from '../texts/parse-url.js'
import { printable } from '../texts/printable.js'
import { connect, type Environment, type InspectorTarget } from './tail-connection.js'
import { UsageError } from './usage-error.js'

/** The folder where bridges of this user have their sockets. */
export function socketsOf(env: Environment): string | undefined {
  return socketFolder(env, homeFolder())
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
  const found = sockets === undefined ? [] : await running(sockets, target)
  const [one, ...more] = found
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

/** A bridge on stdio that answers. */
interface Running {
  pid: string
  socketPath: string
}

/** Milliseconds in which a bridge on this machine answers. */
const ANSWERS = 5_000
/** Most servers in the description of a bridge. */
const MAX_NAMED_SERVERS = 5

/** The bridges whose sockets answer, or the one with this process id. Removes other sockets: their processes were killed. */
async function running(folder: string, wanted: string | undefined): Promise<Running[]> {
  let names: string[]
  let problem: string | undefined
  try {
    names = readdirSync(folder)
    problem = folderProblem(folder, process.getuid?.() ?? -1)
  } catch {
    return []
  }
  if (problem !== undefined) throw new UsageError(`the sockets in ${folder} may be somebody else's: ${problem}`, 'tail')
  const found = names.map(async (name) => {
    const [, pid] = /^(\d+)\.sock$/.exec(name) ?? []
    if (pid === undefined || (wanted !== undefined && pid !== wanted)) return []
    const socketPath = await livePath(join(folder, name))
    return socketPath === undefined ? [] : [{ pid, socketPath }]
  })
  return (await Promise.all(found)).flat()
}

/** The socket, or the pipe named by a file of the folder. Undefined if nothing answers; removes the file if its process is gone. */
async function livePath(file: string): Promise<string | undefined> {
  try {
    const socketPath = lstatSync(file).isFile() ? readFileSync(file, 'utf8') : file
    // The bridge is still writing it.
    if (socketPath === '') return undefined
    const response = await ask(socketPath, 'payloads')
    response.destroy()
    return socketPath
  } catch (error) {
    // A socket without a process refuses connections; a pipe disappears with its process.
    if (error instanceof Error && 'code' in error && (error.code === 'ECONNREFUSED' || error.code === 'ENOENT'))
      rmSync(file, { force: true })
    return undefined
  }
}

/** Names of a bridge's servers; empty if it does not tell them. */
async function serversOf({ socketPath }: Running): Promise<string> {
  try {
    let text = ''
    for await (const chunk of (await ask(socketPath, 'servers')).setEncoding('utf8')) text += String(chunk)
    const names = (JSON.parse(text) as { servers: { name: string }[] }).servers.map(({ name }) => printable(name))
    return [...names.slice(0, MAX_NAMED_SERVERS), ...(names.length > MAX_NAMED_SERVERS ? ['…'] : [])].join(', ')
  } catch {
    return ''
  }
}

function ask(socketPath: string, what: string): ReturnType<typeof connect> {
  return connect(at(socketPath, what), false, {}, AbortSignal.timeout(ANSWERS))
}

function at(socketPath: string, what: string): InspectorTarget {
  return { url: new URL(`http://localhost${INSPECT}/${what}`), token: undefined, socketPath }
}
