/** Listens on a unix socket: sets its mode, and replaces a stale socket at its path. */
import { once } from 'node:events'
import { chmodSync, lstatSync, type Stats, unlinkSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { ListenError } from './listen-error.js'

export interface UnixSocket {
  path: string
  /** File permissions. Write permission allows to connect. */
  mode: number
}

/**
 * Starts to listen. Replaces the socket of a killed process. Rejects with a ListenError if another process listens on the path,
 * or if the path is not a socket.
 */
export async function listenOn(server: Server, { path, mode }: UnixSocket): Promise<void> {
  // The system would truncate a longer path.
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new ListenError(
      `the path of the socket ${path} is too long`,
      `Choose a path of at most ${MAX_SOCKET_PATH} bytes.`,
    )
  if (!at(dirname(path))) throw new ListenError(`there is no folder ${dirname(path)}`, 'Create it.')
  const there = at(path)
  if (there) {
    if (!there.isSocket()) throw new ListenError(`${path} exists and is not a socket`, ELSEWHERE)
    if (await isLive(path)) throw new ListenError(`another process listens on ${path}`, ELSEWHERE)
    // Another bridge may have replaced it in the meantime.
    if (at(path)?.ino === there.ino) unlinkSync(path)
  }
  await bind(server, path, mode)
  chmodSync(path, mode)
}

const ELSEWHERE = 'Choose another path with --listen unix:/path/to/other.sock.'

/** Most bytes of the path of a socket, on all systems. */
const MAX_SOCKET_PATH = 103

const PROBLEMS: Readonly<Record<string, readonly [what: string, next: string]>> = {
  EACCES: ['this user may not write its folder', 'Choose a folder that this user may write.'],
  EADDRINUSE: ['another process listens on it', ELSEWHERE],
}

async function bind(server: Server, path: string, mode: number): Promise<void> {
  const bound = once(server, 'listening')
  // `listen` creates the socket before it returns. Nobody may connect before it has its mode.
  const before = process.umask(0o777 & ~mode)
  try {
    server.listen({ path })
  } finally {
    process.umask(before)
  }
  await bound.catch((error: Error & { code?: string }) => {
    const [what, next] = PROBLEMS[error.code ?? ''] ?? [error.message, ELSEWHERE]
    throw new ListenError(`cannot listen on the socket ${path}: ${what}`, next)
  })
}

function at(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

/** Whether a process listens on a socket; also true if that is unknown. */
function isLive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', (error: Error & { code?: string }) =>
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    )
  })
}
