/**
 * A server with several addresses. Each of them is a `Server` of its own, with its era, its sessions and their cookies; this one
 * chooses among them. Calls of modern servers spread; what belongs to a session goes to the address of that session. What an address
 * has certainly not acted on goes to another one.
 */

import { digest } from '../base/crypto/digest.js'
import { Fault } from '../base/fault/fault.js'
import { BoundedMap } from '../base/limits/bounded.js'
import type { Log } from '../base/log/events.js'
import { raw, stringUnder } from '../base/rpc/splice.js'
import type { Signal } from '../base/time/hang-up.js'
import { lookEvery } from '../base/time/time.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { AskedClient, Call, Final, Handler, Notice, Sender } from '../mcp/protocol/call.js'
import { clientName } from '../mcp/protocol/capabilities.js'
import { LISTEN, ROOTS_CHANGED } from '../mcp/protocol/methods.js'
import { filterIn } from '../mcp/protocol/subscriptions.js'
import type { ForwardInitialize, LegacyRoute, OverHttp } from '../mcp/protocol/upstream.js'
import { type AddressState, choose, failed, RESTS_AFTER, succeeded, tried } from './addresses.js'
import { whyInLine } from './advice.js'
import type { ServerFailure } from './era/detection.js'
import type { Verdict } from './era/verdict.js'
import { ReopeningSession } from './legacy/reopening-session.js'
import type { ServerBounds, ServerOptions } from './options.js'
import type { AddressHealth, Server, UpstreamServer } from './server.js'

export interface AddressedOptions {
  /** The addresses now, in any form that `make` knows. Rejects if they cannot be found. */
  find(): Promise<readonly string[]>
  /** Whether they may change. */
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
/** Most calls that wait for their clients, tasks and callers of sessions whose address is remembered. */
const MAX_PLACED = 10_000
/** Milliseconds without calls after which a caller may get another address, as its idle session has ended. */
const STAYS = 600_000

class Place implements AddressState {
  readonly address: string
  readonly server: Server
  calls = 0
  failures = 0
  restsUntil = 0
  leaves = false
  /** The last failure. */
  why: Fault | undefined

  constructor(address: string, server: Server) {
    this.address = address
    this.server = server
  }

  get sessions(): number {
    return this.server.sessions
  }

  /** Why it gets nothing. */
  get down(): Fault | undefined {
    return this.failures < RESTS_AFTER ? this.server.down : (this.why ?? this.server.down)
  }

  get health(): AddressHealth {
    const { down, calls, sessions, leaves } = this
    const { verdict, everAnswered, target: address } = this.server
    const of = { address, calls, sessions, ...(leaves && { leaves }) }
    if (down) return { ...of, state: 'down', why: whyInLine(down) }
    return { ...of, state: everAnswered ? 'ready' : 'unknown', era: verdict?.era, revision: verdict?.revision }
  }
}

/** A client that is connected, at all addresses. */
interface Connected {
  args: [principal: string, client: AskedClient | undefined, maySleep: boolean]
  left: Map<Place, () => void>
}

export class AddressedServer implements UpstreamServer {
  readonly #options: AddressedOptions
  #places: Place[] = []
  /** Settles when the addresses have been found for the first time; undefined since then. */
  #finding: Promise<void> | undefined
  readonly #looking: NodeJS.Timeout | undefined
  /** Stands for all addresses, and is asked itself while none is known. */
  readonly #name: Place
  #bounds: ServerBounds | undefined
  readonly #connected = new Set<Connected>()
  /** Where calls wait for their clients' answers, and where tasks are, by digests. */
  readonly #owners = new BoundedMap<string, Place>(MAX_PLACED)
  /** Where callers have their sessions. */
  readonly #stays = new BoundedMap<string, { place: Place; at: number }>(MAX_PLACED)
  #closed = false

  constructor(options: AddressedOptions) {
    this.#options = options
    this.#name = new Place('', options.make())
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

  get programs(): readonly number[] {
    return []
  }

  get pause(): { failures: number; ms: number } | undefined {
    return undefined
  }

  get parked(): number {
    return this.#sum(({ parked }) => parked)
  }

  get sessions(): number {
    return this.#sum(({ sessions }) => sessions)
  }

  get isProgram(): boolean {
    return false
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
    const owner = this.#ownerOf(call)
    const isOfTask = call.method.startsWith('tasks/')
    // A legacy server knows a task only in the session that has created it.
    if (owner && isOfTask && owner.server.verdict?.era !== 'modern')
      return this.#at(owner, (server) => server.handle(call))
    const key = this.#options.staying ? keyOf(call) : undefined
    let at: Place | undefined
    const last = await this.#anywhere(
      owner ?? this.#placeOf(key),
      (server, place) => {
        at = place
        if (key !== undefined) this.#note(key, place)
        return server.handle(call)
      },
      call.signal,
    )
    if (at) this.#remember(call, last, at)
    // Only now its era may be known.
    if (at && key !== undefined) this.#note(key, at)
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
    const place = this.#placeOf(keyOf(notice)) ?? this.#chosen()
    return (place ?? this.#name).server.notify(notice)
  }

  async legacyRoute(sender: Sender, address?: string): Promise<LegacyRoute> {
    await this.#finding
    const known = this.#places.find((one) => one.address === address)
    if (known) return known.server.legacyRoute(sender)
    let at: Place | undefined
    const route = await this.#anywhere(undefined, (server, place) => {
      at = place
      return server.legacyRoute(sender)
    })
    if (route === 'translate') return route
    return { ...route, connect: this.#connectAt(at) }
  }

  /** Opens sessions at an address, or at another one if nothing has reached it. A client that cannot open another one keeps moving. */
  #connectAt(first: Place | undefined): ForwardInitialize {
    return (opening, from, options) => {
      let at = first
      if (!options.reopens)
        return this.#anywhere(at, async (server) => {
          const route = await server.legacyRoute(from)
          return route === 'translate' ? undefined : route.connect(opening, from, options)
        })
      let call = options.call
      return ReopeningSession.open((write) => {
        const opened = this.#anywhere(at, (server, place) => {
          at = place
          return server.openSession(opening, from, { call, write })
        })
        call = undefined
        return opened
      }, this.#options.log)
    }
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
    const found = await Promise.allSettled(staying.map((one) => this.#at(one, (server) => server.warmUp())))
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
    first: Place | undefined,
    ask: (server: Server, place: Place) => Promise<T>,
    signal?: Signal,
  ): Promise<T> {
    await this.#finding
    const before = new Set<Place>()
    let next: Place | undefined = first ?? this.#chosen() ?? this.#name
    for (;;) {
      const place: Place = next
      try {
        return await this.#at(place, (server) => ask(server, place))
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

  async #at<T>(place: Place, ask: (server: Server) => Promise<T>): Promise<T> {
    const isTrial = tried(place, performance.now())
    place.calls++
    try {
      const answer = await ask(place.server)
      this.#works(place)
      return answer
    } catch (error) {
      if (isOfAddress(error)) this.#fails(place, error, isTrial)
      else if (isTrial) this.#works(place)
      throw error
    } finally {
      place.calls--
    }
  }

  #works(place: Place): void {
    if (place.failures >= RESTS_AFTER)
      this.#options.log.info({ event: 'address_works', address: place.server.target }, 'address works again')
    succeeded(place)
  }

  #fails(place: Place, fault: Fault, isTrial: boolean): void {
    place.why = fault
    if (!failed(place, performance.now(), isTrial) || place.failures > RESTS_AFTER) return
    const { target: address } = place.server
    this.#options.log.warn({ event: 'address_rests', address, why: whyInLine(fault) }, 'address fails, and rests')
  }

  #chosen(before?: ReadonlySet<Place>): Place | undefined {
    const left = before ? this.#places.filter((one) => !before.has(one)) : this.#places
    return choose(left, { now: performance.now() })
  }

  /** The address with the session of a caller, while it can be used. */
  #placeOf(key: string | undefined): Place | undefined {
    const known = key === undefined ? undefined : this.#stays.get(key)
    if (!known) return undefined
    const { place, at } = known
    const now = performance.now()
    const isUsable = place.restsUntil <= now && (!place.leaves || place.sessions > 0) && now - at < STAYS
    return isUsable && place.server.verdict?.era !== 'modern' ? place : undefined
  }

  #note(key: string, place: Place): void {
    if (place.server.verdict?.era === 'modern') this.#stays.delete(key)
    else if (place !== this.#name) this.#stays.set(key, { place, at: performance.now() })
  }

  /** The address that has asked the question which a call answers, or has its task. */
  #ownerOf(call: Call): Place | undefined {
    const { answers, params, method } = call
    if (answers?.state !== undefined) return this.#owners.get(nameOf(call, 'state', answers.state))
    if (method.startsWith('tasks/')) return this.#owners.get(nameOf(call, 'task', stringUnder(params, 'taskId') ?? ''))
    const [id] = method === LISTEN ? filterIn(params).tasks : []
    return id === undefined ? undefined : this.#owners.get(nameOf(call, 'task', id))
  }

  #remember(call: Call, last: Final, place: Place): void {
    if (last.kind === 'input') {
      const state = raw(last.result, 'requestState')
      if (state !== undefined) this.#owners.set(nameOf(call, 'state', state), place)
    } else if (last.kind === 'result' && last.type === 'task') {
      const id = stringUnder(last.result, 'taskId')
      if (id !== undefined) this.#owners.set(nameOf(call, 'task', id), place)
    }
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
    const reached = (fault: Fault | undefined): boolean => {
      if (!fault) this.#works(place)
      else if (isOfAddress(fault)) this.#fails(place, fault, false)
      return place.failures < RESTS_AFTER
    }
    const place: Place = new Place(address, this.#options.make(address, reached))
    if (this.#bounds) place.server.change(this.#bounds)
    this.#places.push(place)
    for (const { args, left } of this.#connected) left.set(place, place.server.connected(...args))
  }

  async #endUnused(): Promise<void> {
    const over = this.#places.filter(
      ({ leaves, calls, sessions, server }) => leaves && calls + sessions + server.parked === 0,
    )
    if (over.length === 0) return
    this.#places = this.#places.filter((one) => !over.includes(one))
    for (const [key, { place }] of this.#stays) if (over.includes(place)) this.#stays.delete(key)
    for (const [key, place] of this.#owners) if (over.includes(place)) this.#owners.delete(key)
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

/** What callers with a session of their own have in common, as `LegacySessions` tells them apart. */
function keyOf({ principal, caller }: Pick<Sender, 'principal' | 'caller'>): string {
  return `${principal} ${clientName(caller.clientInfo ?? '{}')}`
}

function nameOf({ principal }: Call, what: 'state' | 'task', text: string): string {
  return digest(JSON.stringify([principal, what, text]))
}

/** Whether a failure shows that the address has not acted, and others may. */
function isUndone(error: unknown): boolean {
  if (!(error instanceof Fault)) return false
  const { fault, status } = error
  return fault === 'upstreamUnavailable' || (fault === 'upstreamBusy' && status === 503)
}

/** Whether a failure is one of the address, and not of a call. */
function isOfAddress(error: unknown): error is Fault {
  return error instanceof Fault && (isUndone(error) || error.fault === 'upstreamClosed')
}
