/**
 * A server with several addresses. Each of them is a `Server` of its own, with its era, its sessions and their cookies; this one
 * chooses among them. Calls of modern servers spread; what belongs to a session goes to the address of that session. What an address
 * has certainly not acted on goes to another one.
 */

import type { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import type { Signal } from '../base/time/hang-up.js'
import { lookEvery } from '../base/time/time.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { AskedClient, Handler, Notice, Sender } from '../mcp/protocol/call.js'
import { ROOTS_CHANGED } from '../mcp/protocol/methods.js'
import type { ForwardInitialize, LegacyRoute, OverHttp } from '../mcp/protocol/upstream.js'
import { choose } from './addresses.js'
import type { ServerFailure } from './era/availability.js'
import type { Verdict } from './era/verdict.js'
import type { DirectSessionOpening } from './legacy/direct-sessions.js'
import { ReopeningSession } from './legacy/reopening-session.js'
import type { ServerBounds, ServerOptions } from './options.js'
import { keyOf, Placed } from './placed.js'
import type { AddressHealth, Server, UpstreamServer } from './server.js'
import { isUndone, ServerPlace } from './server-place.js'

export interface AddressedOptions {
  /** The addresses now, in any form that `make` knows. Rejects if they cannot be found. */
  find(): Promise<readonly string[]>
  changes: boolean
  /** Makes the server at one address; without one, at the name that stands for all of them. `reached` is that of `ServerOptions`. */
  make(address?: string, reached?: ServerOptions['reached']): Server
  /** The calls of one principal and client share a session, if it has sessions. */
  staying: boolean
  log: Pick<Log, 'debug' | 'info' | 'warn'>
}

/** Milliseconds between two looks at a name. */
const LOOK_EVERY = 5_000
/** Most addresses of a server. */
const MAX_SERVER_ADDRESSES = 64

/** A client that is connected, at all addresses. */
interface Connected {
  args: [principal: string, client: AskedClient | undefined, maySleep: boolean]
  left: Map<ServerPlace, () => void>
}

export class AddressedServer implements UpstreamServer {
  readonly #options: AddressedOptions
  #places: ServerPlace[] = []
  /** Settles when the addresses have been found for the first time; undefined since then. */
  #finding: Promise<void> | undefined
  readonly #looking: NodeJS.Timeout | undefined
  /** Stands for all addresses, and is asked itself while none is known. */
  readonly #name: ServerPlace
  #bounds: ServerBounds | undefined
  readonly #connected = new Set<Connected>()
  readonly #placed = new Placed()
  #closed = false

  constructor(options: AddressedOptions) {
    this.#options = options
    this.#name = new ServerPlace('', () => options.make(), options.log)
    this.#finding = this.#look().finally(() => {
      this.#finding = undefined
    })
    if (options.changes) this.#looking = lookEvery(LOOK_EVERY, () => void this.#look())
  }

  get addresses(): readonly AddressHealth[] {
    return this.#places.map(({ health }) => health)
  }

  get verdict(): Verdict | undefined {
    return this.#some(({ verdict }) => verdict)
  }

  get everAnswered(): boolean {
    return this.#places.some(({ server }) => server.everAnswered)
  }

  /** Why all addresses are unavailable. */
  get down(): Fault | undefined {
    const staying = this.#places.filter(({ leaves }) => !leaves)
    return staying.every(({ down }) => down) ? staying[0]?.down : undefined
  }

  get lastFailure(): ServerFailure | undefined {
    return this.#places
      .flatMap(({ server }) => server.lastFailure ?? [])
      .sort((a, b) => b.at - a.at)
      .at(0)
  }

  get parked(): number {
    return this.#sum(({ parked }) => parked)
  }

  get sessions(): number {
    return this.#sum(({ sessions }) => sessions)
  }

  get patience(): Server['patience'] {
    return this.#name.server.patience
  }

  get target(): string {
    return this.#name.server.target
  }

  /** The bounds hold for each address. */
  get gauges(): Gauge[] {
    const sums = new Map<string, Gauge>()
    for (const gauge of this.#places.flatMap(({ server }) => server.gauges)) {
      const known = sums.get(gauge.bound)
      sums.set(gauge.bound, {
        ...gauge,
        used: gauge.used + (known?.used ?? 0),
        limit: gauge.limit + (known?.limit ?? 0),
      })
    }
    return [...sums.values()]
  }

  /** For paths beside the endpoint: any address has them. */
  get overHttp(): OverHttp | undefined {
    const { overHttp } = this.#name.server
    return overHttp && { ...overHttp, speaks: () => undefined }
  }

  change(bounds: ServerBounds): void {
    this.#bounds = bounds
    for (const server of this.#servers()) server.change(bounds)
  }

  readonly handle: Handler = async (call) => {
    // A session has its own way to its address.
    if (call.link) return this.#name.server.handle(call)
    const owner = this.#placed.ownerOf(call)
    const isOfTask = call.method.startsWith('tasks/')
    // A legacy server knows a task only in the session that has created it.
    if (owner && isOfTask && owner.server.verdict?.era !== 'modern') return owner.ask((server) => server.handle(call))
    const key = this.#options.staying ? keyOf(call) : undefined
    let at: ServerPlace | undefined
    const last = await this.#anywhere(
      owner ?? this.#placed.sessionOf(key),
      (server, place) => {
        at = place
        if (key !== undefined) this.#placed.noteSession(key, place)
        return server.handle(call)
      },
      call.signal,
    )
    if (at) this.#placed.noteOwner(call, last, at)
    // Only now its era may be known.
    if (at && key !== undefined) this.#placed.noteSession(key, at)
    return last
  }

  answers(notice: Notice): boolean {
    return this.#places.length > 0 && this.#places.every(({ server }) => server.answers(notice))
  }

  notify(notice: Notice): Promise<void> | undefined {
    if (notice.method === ROOTS_CHANGED) {
      // Nobody waits for the answers to it.
      for (const { server } of this.#places) server.notify(notice)?.catch(() => {})
      return undefined
    }
    const place = this.#placed.sessionOf(keyOf(notice)) ?? this.#chosen()
    return (place ?? this.#name).server.notify(notice)
  }

  async legacyRoute(sender: Sender, address?: string): Promise<LegacyRoute> {
    await this.#finding
    const known = this.#places.find((one) => one.address === address)
    if (known) return known.server.legacyRoute(sender)
    let at: ServerPlace | undefined
    const route = await this.#anywhere(undefined, (server, place) => {
      at = place
      return server.legacyRoute(sender)
    })
    if (route === 'translate') return route
    // At this address, or at another one if nothing has reached it. A session that reopens keeps moving.
    const connect: ForwardInitialize = (opening, from, options) => {
      let last = at
      const open = (how: DirectSessionOpening, grant = from.grant) =>
        this.#anywhere(last, (server, place) => {
          last = place
          return server.openSession(opening, { ...from, grant }, how)
        })
      return ReopeningSession.connect(open, options, this.#options.log)
    }
    return { ...route, connect }
  }

  connected(principal: string, client?: AskedClient, maySleep = false): () => void {
    const connected: Connected = { args: [principal, client, maySleep], left: new Map() }
    this.#connected.add(connected)
    for (const place of this.#places) connected.left.set(place, place.server.connected(...connected.args))
    return () => {
      this.#connected.delete(connected)
      for (const left of connected.left.values()) left()
    }
  }

  async warmUp(): Promise<Verdict | undefined> {
    await this.#finding
    const staying = this.#places.filter(({ leaves }) => !leaves)
    const found = await Promise.allSettled(staying.map((one) => one.ask((server) => server.warmUp())))
    const known = found.find((one) => one.status === 'fulfilled' && one.value !== undefined)
    const [any = known] = found.filter(({ status }) => status === 'fulfilled')
    const told = known ?? any ?? found[0]
    if (told?.status === 'rejected') throw told.reason
    return told?.value
  }

  async close(hurry = false): Promise<void> {
    this.#closed = true
    clearInterval(this.#looking)
    await Promise.all([...this.#servers()].map((server) => server.close(hurry)))
  }

  *#servers(): Generator<Server> {
    yield this.#name.server
    for (const { server } of this.#places) yield server
  }

  /** Asks an address, and others after it while it is certain that none has acted. Rejects with the last failure. */
  async #anywhere<T>(
    first: ServerPlace | undefined,
    ask: (server: Server, place: ServerPlace) => Promise<T>,
    signal?: Signal,
  ): Promise<T> {
    await this.#finding
    const before = new Set<ServerPlace>()
    let next: ServerPlace | undefined = first ?? this.#chosen() ?? this.#name
    for (;;) {
      const place: ServerPlace = next
      try {
        return await place.ask((server) => ask(server, place))
      } catch (error) {
        before.add(place)
        next = isUndone(error) && !signal?.aborted && !this.#closed ? this.#chosen(before) : undefined
        if (!next) throw error
        this.#options.log.debug(
          { event: 'address_left', address: place.address, err: error },
          'another address is asked',
        )
      }
    }
  }

  #chosen(before?: ReadonlySet<ServerPlace>): ServerPlace | undefined {
    const left = before ? this.#places.filter((one) => !before.has(one)) : this.#places
    return choose(left, { now: performance.now() })
  }

  /** Looks which addresses there are. Those that have left end when nothing of them is in use. */
  async #look(): Promise<void> {
    const { find, log, changes } = this.#options
    const found = await find().catch((error: unknown) => {
      log.debug({ event: 'addresses_unknown', err: error }, 'addresses of a server not found')
      return undefined
    })
    if (this.#closed) return
    const now = [...new Set(found)].slice(0, MAX_SERVER_ADDRESSES)
    if (now.length === 0) return this.#endUnused()
    const before = this.#places.filter(({ leaves }) => !leaves).map(({ address }) => address)
    for (const place of this.#places) place.leaves = !now.includes(place.address)
    const added = now.filter((address) => !this.#places.some((one) => one.address === address))
    for (const address of added) this.#add(address)
    const left = before.filter((address) => !now.includes(address))
    if (changes && before.length > 0 && added.length + left.length > 0)
      log.info({ event: 'addresses_changed', added, left }, 'addresses of a server changed')
    await this.#endUnused()
  }

  #add(address: string): void {
    const { make, log } = this.#options
    const place = new ServerPlace(address, (reached) => make(address, reached), log)
    if (this.#bounds) place.server.change(this.#bounds)
    this.#places.push(place)
    for (const { args, left } of this.#connected) left.set(place, place.server.connected(...args))
  }

  async #endUnused(): Promise<void> {
    const over = this.#places.filter(({ leaves, isUnused }) => leaves && isUnused)
    if (over.length === 0) return
    this.#places = this.#places.filter((one) => !over.includes(one))
    this.#placed.forget(over)
    for (const place of over)
      for (const { left } of this.#connected) {
        left.get(place)?.()
        left.delete(place)
      }
    await Promise.all(over.map(({ server }) => server.close()))
  }

  #some<T>(of: (server: Server) => T | undefined): T | undefined {
    for (const { server, leaves } of this.#places) {
      const found = leaves ? undefined : of(server)
      if (found !== undefined) return found
    }
    return undefined
  }

  #sum(of: (server: Server) => number): number {
    return this.#places.reduce((sum, { server }) => sum + of(server), 0)
  }
}
