/** Which bridge `mcp-bridge tail` follows: that of an address, or one on stdio, which has a socket. */
import { lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { homeFolder } from '../discovery/home.js'
import { socketFolder } from '../inspect/socket.js'
import { printable } from '../printable.js'
import { connect, type Environment, type Target } from './tail-connection.js'
import { UsageError } from './usage-error.js'

/** The folder where bridges of this user have their sockets. */
export function socketsOf(env: Environment): string | undefined {
  return socketFolder(env, homeFolder())
}

/** What was given to find a bridge by. */
export interface Wanted {
  /** The address that the bridge printed, or the id of its process; undefined for the only bridge of this user. */
  target: string | undefined
  /** The folder with the sockets of running bridges; undefined where there is none. */
  sockets: string | undefined
}

/** A unix socket, and the token. */
const UNIX = /^unix:([^:#]+)[^#]*(?:#(.*))?$/

/** The inspector at an address. Throws a UsageError. */
function targetAt(address: string): Target {
  const [, socketPath, own = ''] = UNIX.exec(address) ?? []
  if (socketPath === undefined && !URL.canParse(address))
    throw new UsageError(`${printable(address)} is not a valid address`, 'tail')
  const url = new URL(socketPath === undefined ? address : 'http://localhost')
  const token = socketPath === undefined ? url.hash.slice(1) : own
  return { url: new URL('/inspect/events', url), token: token === '' ? undefined : token, socketPath }
}

/** Which bridge is followed. Throws a UsageError if that is not clear. */
export async function targetOf({ target, sockets }: Wanted): Promise<Target> {
  if (target !== undefined && !/^\d+$/.test(target)) return targetAt(target)
  const found = sockets === undefined ? [] : await running(sockets)
  const wanted = target === undefined ? found : found.filter(({ pid }) => pid === target)
  const [one, ...more] = wanted
  if (!one)
    throw new UsageError(
      target === undefined
        ? 'no bridge on stdio with --inspect runs as this user: of one on HTTP, give the address that it printed after "Inspector:"'
        : `no bridge with --inspect has the process id ${printable(target)}`,
      'tail',
    )
  if (more.length > 0)
    throw new UsageError(
      `several bridges run: choose one of ${wanted.map(({ pid }) => pid).join(', ')}, as in mcp-bridge tail ${one.pid}`,
      'tail',
    )
  return { url: new URL('http://localhost/inspect/events'), token: undefined, socketPath: one.path }
}

/** Bridges whose sockets answer. Sockets of others are removed: their processes were killed. */
async function running(folder: string): Promise<{ pid: string; path: string }[]> {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  const sockets = names.flatMap((name) => {
    const [, pid] = /^(\d+)\.sock$/.exec(name) ?? []
    return pid === undefined ? [] : [{ pid, file: join(folder, name) }]
  })
  const paths = await Promise.all(sockets.map(({ file }) => livePath(file)))
  return sockets.flatMap(({ pid }, i) => {
    const path = paths[i]
    return path === undefined ? [] : [{ pid, path }]
  })
}

/** The socket, or the pipe that a file of the folder names. Undefined if nothing answers there; if its process is gone, the file is removed. */
async function livePath(file: string): Promise<string | undefined> {
  try {
    const socketPath = lstatSync(file).isFile() ? readFileSync(file, 'utf8') : file
    // The bridge is just writing it.
    if (socketPath === '') return undefined
    const url = new URL('http://localhost/inspect/payloads')
    const response = await connect({ url, token: undefined, socketPath }, false, {})
    response.destroy()
    return socketPath
  } catch (error) {
    // A socket without a process refuses; a pipe goes with its process.
    if (error instanceof Error && 'code' in error && (error.code === 'ECONNREFUSED' || error.code === 'ENOENT'))
      rmSync(file, { force: true })
    return undefined
  }
}
