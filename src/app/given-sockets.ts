/**
 * Sockets that systemd has opened for the bridge (socket activation, sd_listen_fds(3)). They stay open while the bridge starts again:
 * who connects meanwhile waits, and is not refused.
 */
import type { Server } from 'node:net'
import { type ListenAt, listenGiven, originOf } from '../base/net/listen.js'
import { isLoopback } from '../config/settings.js'
import { ListenError } from './listen-error.js'

/** The first of the file descriptors. */
const FIRST = 3

/** The file descriptors, by the option whose address they have. */
interface Given {
  listen?: number
  admin?: number
}

/** The sockets for this process: one for `listen`, or several with the names of options. Throws a ListenError for any other one. */
export function givenSockets(env: Readonly<Record<string, string | undefined>>, pid: number, hasAdmin: boolean): Given {
  const count = env['LISTEN_PID'] === String(pid) ? Number(env['LISTEN_FDS']) : 0
  const names = (env['LISTEN_FDNAMES'] ?? '').split(':')
  const given: Given = {}
  for (let i = 0; i < count; i++) {
    const option = optionOf(names[i], count)
    if (option === undefined || option in given || (option === 'admin' && !hasAdmin))
      throw new ListenError(
        `systemd gives a socket with the name "${names[i] ?? ''}" that is for no option of the configuration`,
        'Set FileDescriptorName=listen in one socket unit and, if "admin" is configured, FileDescriptorName=admin in another.',
      )
    given[option] = FIRST + i
  }
  return given
}

/** Without a name, systemd names a socket after its unit. */
function optionOf(name: string | undefined, count: number): keyof Given | undefined {
  if (name === 'listen' || name === 'admin') return name
  return count === 1 ? 'listen' : undefined
}

/**
 * Listens on a given socket. Rejects with a ListenError if it is at another address than the configuration says: that address
 * decides who has to have a token. Resolves to its origin.
 */
export async function listenOnGiven(server: Server, fd: number, at: ListenAt): Promise<string> {
  const actual = await listenGiven(server, fd).catch((error: Error) => {
    throw new ListenError(`systemd gives no socket that listens: ${error.message}`, 'Use a unit of the type socket.')
  })
  if (at.socket !== undefined && actual === null) return `unix:${at.socket}:`
  const there = actual && { host: actual.address, port: actual.port, secure: at.secure ?? false }
  if (at.socket === undefined && there && isSame(at, there)) return originOf(there)
  throw new ListenError(
    `systemd listens at ${there ? originOf(there) : 'a unix socket'}, and the configuration says ${at.socket ?? originOf(at)}`,
    'Set ListenStream of the socket unit to the address of the configuration.',
  )
}

function isSame(wanted: ListenAt, { host, port }: ListenAt): boolean {
  return port === wanted.port && (host === wanted.host || (wanted.host === 'localhost' && isLoopback(host)))
}
