/** Accepts the connections of clients, and gives them to workers in turn. */
import { createServer, type Server, type Socket } from 'node:net'
import { givenSockets } from '../app/given-sockets.js'
import { listenWith } from '../app/listen-with.js'
import type { Door, DoorOpening } from './worker-messages.js'

/** Most connections that wait for a worker, while there is none. */
const MAX_UNGIVEN = 1_000
const OPTIONS = { pauseOnConnect: true, allowHalfOpen: true, noDelay: true }

/** Gives a connection to a worker. `lost` is to be called if it has not left. */
type Give<W> = (worker: W, door: Door, socket: Socket, lost: () => void) => void

interface Open<W> {
  servers: Server[]
  origin: Promise<string>
  /** Who takes connections, the next one first. */
  takers: W[]
  waiting: Socket[]
}

export class Doors<W> {
  readonly #env: Readonly<Record<string, string | undefined>>
  readonly #hasAdmin: boolean
  readonly #give: Give<W>
  readonly #open = new Map<Door, Open<W>>()

  constructor(env: Readonly<Record<string, string | undefined>>, hasAdmin: boolean, give: Give<W>) {
    this.#env = env
    this.#hasAdmin = hasAdmin
    this.#give = give
  }

  /** Gives a worker its share of the connections. Listens, for the first one. Resolves to the origin. */
  async open(worker: W, opening: DoorOpening): Promise<string> {
    const { door } = opening
    const open = this.#open.get(door) ?? this.#listen(opening)
    this.#open.set(door, open)
    const origin = await open.origin.catch((error: unknown) => {
      this.#open.delete(door)
      throw error
    })
    open.takers.push(worker)
    for (const socket of open.waiting.splice(0)) this.#pass(open, door, socket)
    return origin
  }

  /** A worker takes no more connections. Without any worker, nobody listens. */
  close(worker: W, door: Door): void {
    const open = this.#open.get(door)
    if (!open) return
    open.takers = open.takers.filter((one) => one !== worker)
    if (open.takers.length === 0) this.#shut(door)
  }

  /** A worker has ended. Until another one takes its place, connections wait if there is none. */
  leave(worker: W): void {
    for (const open of this.#open.values()) open.takers = open.takers.filter((one) => one !== worker)
  }

  end(): void {
    for (const door of this.#open.keys()) this.#shut(door)
  }

  #listen({ door, at, mode }: DoorOpening): Open<W> {
    const open: Open<W> = { servers: [], origin: Promise.resolve(''), takers: [], waiting: [] }
    const make = () => {
      const server = createServer(OPTIONS, (socket) => this.#pass(open, door, socket))
      open.servers.push(server)
      return server
    }
    const listening = async () =>
      listenWith(make, at, { given: givenSockets(this.#env, process.pid, this.#hasAdmin)[door], mode })
    open.origin = listening()
    return open
  }

  #pass(open: Open<W>, door: Door, socket: Socket): void {
    const next = open.takers.shift()
    if (next === undefined) {
      socket.on('error', () => {})
      if (open.waiting.push(socket) > MAX_UNGIVEN) open.waiting.shift()?.destroy()
      return
    }
    open.takers.push(next)
    this.#give(next, door, socket, () => socket.destroy())
  }

  #shut(door: Door): void {
    const open = this.#open.get(door)
    this.#open.delete(door)
    for (const server of open?.servers ?? []) server.close()
    for (const socket of open?.waiting ?? []) socket.destroy()
  }
}
