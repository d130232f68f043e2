/**
 * A socket that only the user of this process can open, in the folder of the bridge, where its commands find it. Windows has named
 * pipes instead. These are in no folder, so a file in the folder holds the name of the pipe.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { folderProblem } from '../base/net/private-file.js'
import { listenOn } from './unix-socket.js'

/** What a socket serves: the inspector, or the state of the bridge. It is the end of the name of its file. */
export type SocketKind = 'sock' | 'status'

/** The file of the socket of this process. */
export function userSocket(folder: string, kind: SocketKind): string {
  return join(folder, `${process.pid}.${kind}`)
}

/** Listens on the socket of this process. Resolves to what closes it. Rejects if the folder is not safe, or cannot be written. */
export async function listenForUser(server: Server, folder: string, kind: SocketKind): Promise<() => void> {
  const file = userSocket(folder, kind)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const problem = folderProblem(folder, process.getuid?.() ?? -1)
  if (problem !== undefined) throw new Error(`the socket is not safe there: ${problem}`)
  if (process.platform === 'win32') {
    const path = pipeName(process.pid)
    const bound = once(server, 'listening')
    server.listen({ path })
    await bound
    writeFileSync(file, path)
  } else await listenOn(server, { path: file, mode: 0o600 })
  return () => {
    server.close()
    server.closeAllConnections()
    rmSync(file, { force: true })
  }
}

/**
 * A new name for the pipe of a process. Every user of the machine may create pipes of any name, so the name cannot be
 * guessed. Windows lets the creator of a pipe, administrators and the system write to it, and so send requests; Node.js
 * offers no narrower choice.
 */
export function pipeName(pid: number): string {
  return `\\\\.\\pipe\\mcp-bridge-${pid}-${randomBytes(16).toString('hex')}`
}
