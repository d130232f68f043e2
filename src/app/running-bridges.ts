/**
 * Finds the bridges of this user on this machine by their sockets, and sends requests to them. A socket
 * of another user, or one that others may open, is refused: its owner could show anything.
 */
import { lstatSync, readdirSync, readFileSync, rmSync, type Stats } from 'node:fs'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { folderProblem } from '../base/net/private-file.js'
import { INSPECT } from './inspector-path.js'
import type { SocketKind } from './user-socket.js'

/** A bridge that answers. */
export interface RunningBridge {
  /** The id of its process. */
  pid: string
  /** Its socket, or its pipe on Windows. */
  socketPath: string
}

/** The bridges of a folder, and what was refused there. */
export interface FoundBridges {
  bridges: RunningBridge[]
  refused: { path: string; why: string }[]
}

/** What is sent to a bridge, besides the path. */
export interface BridgeRequest {
  method?: string
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array | undefined
  signal?: AbortSignal | undefined
}

/** Time limit in milliseconds for an answer of a bridge. */
const ANSWERS = 5_000
/** Most sockets that are asked, and most of one answer, in bytes. */
const MAX_SOCKETS = 200
const MAX_BRIDGE_ANSWER = 32 * 1024 * 1024
/** A path that a socket of a kind answers at once. */
const ALIVE: Readonly<Record<SocketKind, string>> = { sock: `${INSPECT}/payloads`, status: '/status' }
/** The bits of a mode that let other users open a socket. */
const OPEN_TO_OTHERS = 0o077

/**
 * The bridges whose sockets answer, of those whose process id is wanted. Removes sockets whose processes are gone. `uid` is
 * the number of this user; below zero on systems without owners and modes.
 */
export async function bridgesIn(
  folder: string,
  uid: number,
  isWanted: (pid: string) => boolean = () => true,
  kind: SocketKind = 'sock',
): Promise<FoundBridges> {
  const refused: FoundBridges['refused'] = []
  let names: string[]
  try {
    names = readdirSync(folder)
    const why = folderProblem(folder, uid)
    if (why !== undefined) return { bridges: [], refused: [{ path: folder, why }] }
  } catch {
    return { bridges: [], refused }
  }
  const found = names.slice(0, MAX_SOCKETS).map(async (name) => {
    const [own = '', ending] = name.split('.', 2)
    if (ending !== kind || !/^\d+$/.test(own) || !isWanted(own)) return []
    const path = join(folder, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    const why = stats && problemWith(stats, uid)
    if (why !== undefined) refused.push({ path, why })
    const socketPath = stats && why === undefined ? await livePath(path, stats, ALIVE[kind]) : undefined
    return socketPath === undefined ? [] : [{ pid: own, socketPath }]
  })
  return { bridges: (await Promise.all(found)).flat(), refused }
}

/** Sends a request of the inspector to a bridge. Resolves to the answer, before its body. Rejects if it is unreachable. */
export function askBridge(socketPath: string, path: string, more: BridgeRequest = {}): Promise<IncomingMessage> {
  return send(socketPath, `${INSPECT}/${path}`, more)
}

function send(socketPath: string, path: string, more: BridgeRequest): Promise<IncomingMessage> {
  const { method = 'GET', headers = {}, body, signal } = more
  return new Promise((resolve, reject) => {
    const options = { socketPath, path, method, headers, agent: false, ...(signal && { signal }) }
    const sent: ClientRequest = request(options, resolve)
    sent.once('error', reject)
    sent.end(body)
  })
}

/** A JSON answer of a bridge. Rejects if it is none. */
export async function readFromBridge<T>(socketPath: string, path: string, more: BridgeRequest = {}): Promise<T> {
  const response = await askBridge(socketPath, path, { signal: AbortSignal.timeout(ANSWERS), ...more })
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > MAX_BRIDGE_ANSWER) throw new Error('the answer is too long')
    chunks.push(chunk)
  }
  if (response.statusCode !== 200) throw new Error(`the bridge answered ${response.statusCode}`)
  return JSON.parse(Buffer.concat(chunks).toString()) as T
}

/** Why a socket may not be used. */
function problemWith(stats: Stats, uid: number): string | undefined {
  if (stats.isSymbolicLink()) return 'it is a symbolic link'
  if (uid < 0) return undefined
  if (stats.uid !== uid) return 'it belongs to another user'
  return (stats.mode & OPEN_TO_OTHERS) !== 0 && stats.isSocket()
    ? 'others may open it (run chmod 600 on it)'
    : undefined
}

/** The socket, or the pipe named by a file of the folder. Undefined if nothing answers; removes the file if its process is gone. */
async function livePath(file: string, stats: Stats, path: string): Promise<string | undefined> {
  try {
    const socketPath = stats.isFile() ? readFileSync(file, 'utf8') : file
    // The bridge is still writing it.
    if (socketPath === '') return undefined
    const response = await send(socketPath, path, { signal: AbortSignal.timeout(ANSWERS) })
    response.destroy()
    return socketPath
  } catch (error) {
    // A socket without a process refuses connections; a pipe disappears with its process.
    if (error instanceof Error && 'code' in error && (error.code === 'ECONNREFUSED' || error.code === 'ENOENT'))
      rmSync(file, { force: true })
    return undefined
  }
}
