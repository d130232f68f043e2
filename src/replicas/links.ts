/**
 * Links between replicas, over channels of Redis that may lose, repeat and shuffle what is said on them, and over a Redis that
 * may be away for a while: what is sent on a link arrives once and in order, or both sides learn that it does not.
 */
import { randomBytes } from 'node:crypto'
import type { Sealer } from '../seal.js'
import { type Data, openPacket, type Packet, sealPacket } from './packet.js'
import type { Redis } from './redis.js'
import { Incoming, Outgoing } from './reliable.js'

/** Why a link has come to its end before everything was said. */
export type Broken =
  /** Nothing has been heard of the other side, though Redis works. */
  | 'lost'
  /** Redis is away for too long. */
  | 'away'
  /** The other side does not want it, or not any more. */
  | 'refused'

export interface LinksOptions {
  /** This replica. */
  id: string
  /** What all channels begin with. */
  prefix: string
  redis: Pick<Redis, 'working' | 'publish' | 'listen'>
  sealer(): Sealer
  /** Somebody has opened a link to this replica, and begins to say something. */
  opened(link: Link): void
  /** A replica has said something. */
  heard(replica: string): void
  /** Nobody listens where a replica ought to. Resolves to whether it has said goodbye. */
  hasLeft(replica: string): Promise<boolean>
}

/** Milliseconds between looks at what is to be said again, and that may pass between two of them for all we know. */
const TICK = 250
const MOST = 1_000
/**
 * Milliseconds of silence, while Redis works, after which the other side is lost: who waits for an answer asks for signs of
 * life all the time.
 */
const SILENCE = { asker: 5_000, owner: 10_000 }
/** Milliseconds after which what has not been acknowledged is sent again, and of silence after which a sign of life is asked for. */
const AGAIN_AFTER = 400
const ASK_AFTER = 400
/** Milliseconds for which Redis may be away: before anything of a request has been said, and after. */
const AWAY = { before: 2_000, after: 30_000 }
/** Milliseconds for which what has arrived may wait to be acknowledged together with what follows. */
const ACKNOWLEDGE_WITHIN = 10
const MAX_LINKS = 20_000

/** One side of a link. */
export class Link {
  readonly id: string
  /** The replica on the other side. */
  readonly peer: string
  /** Whether this side has opened it. */
  readonly asks: boolean
  readonly outgoing = new Outgoing()
  readonly incoming = new Incoming()
  /** What is said has to carry it; known to who has opened the link when the other side has answered. */
  key: string | undefined
  /** Whether this side takes no more at the moment. */
  full = false
  /** Everything has been said: the link ends when it has arrived. */
  finishing = false
  over = false
  broken: Broken | undefined
  /** Milliseconds in which the other side was not heard though Redis worked, and since it has not worked. */
  silent = 0
  away = 0
  acknowledging: NodeJS.Timeout | undefined
  onPart: (part: Buffer) => void = () => {}
  onBroken: (why: Broken) => void = () => {}
  readonly #links: Links

  constructor(links: Links, id: string, peer: string, asks: boolean) {
    this.#links = links
    this.id = id
    this.peer = peer
    this.asks = asks
  }

  /** Whether the other side may have been told something. */
  get said(): boolean {
    return this.key !== undefined
  }

  /** Sends a part. Resolves when there is room for another. */
  send(part: Uint8Array): Promise<void> {
    this.#links.send(this, part)
    return this.outgoing.room()
  }

  /** Has the other side wait, or go on. */
  hold(full: boolean): void {
    if (this.full === full || this.over) return
    this.full = full
    this.#links.acknowledge(this)
  }

  /** This side has said all: the link ends when that has arrived. */
  finish(): void {
    this.finishing = true
    this.#links.endIfDone(this)
  }

  /** This side has heard all. */
  end(): void {
    this.#links.acknowledge(this)
    this.#links.drop(this)
  }

  /** Ends the link, and tells the other side. */
  abandon(): void {
    this.#links.abandon(this)
  }
}

export class Links {
  readonly #options: LinksOptions
  readonly #links = new Map<string, Link>()
  readonly #timer: NodeJS.Timeout
  #lastTick = performance.now()

  constructor(options: LinksOptions) {
    this.#options = options
    const own = this.#channelOf(options.id)
    options.redis.listen(own, (sealed) => {
      const opened = openPacket(options.sealer(), own, sealed)
      if (opened) this.#take(opened.packet, opened.part)
    })
    this.#timer = setInterval(() => this.#tick(), TICK).unref()
  }

  get size(): number {
    return this.#links.size
  }

  /** Opens a link to another replica. What is sent on it waits until that has answered. */
  open(peer: string): Link {
    const link = new Link(this, newId(), peer, true)
    this.#links.set(link.id, link)
    this.#greet(link)
    return link
  }

  /** Finds out whether a replica answers, for those who come later. */
  knock(peer: string): void {
    this.#say(peer, { kind: 'hello', link: newId(), from: this.#options.id })
  }

  send(link: Link, part: Uint8Array): void {
    if (link.over) return
    link.outgoing.add(part)
    this.#flush(link)
  }

  /** Says what has arrived, and whether more may come. */
  acknowledge(link: Link, asks = false): void {
    if (link.key !== undefined) this.#sayData(link, { asks })
  }

  endIfDone(link: Link): void {
    if (link.finishing && link.outgoing.empty) this.drop(link)
  }

  abandon(link: Link): void {
    if (link.over) return
    this.drop(link)
    this.#say(link.peer, { kind: 'reset', link: link.id, from: this.#options.id })
  }

  drop(link: Link): void {
    link.over = true
    clearTimeout(link.acknowledging)
    link.outgoing.wake(true)
    this.#links.delete(link.id)
  }

  close(): void {
    clearInterval(this.#timer)
    for (const link of [...this.#links.values()]) this.abandon(link)
  }

  #break(link: Link, why: Broken): void {
    if (link.over) return
    link.broken = why
    if (why === 'refused') this.drop(link)
    else this.abandon(link)
    link.onBroken(why)
  }

  #take(packet: Packet, part: Buffer): void {
    const { link: id, from } = packet
    const link = this.#links.get(id)
    this.#options.heard(from)
    if (packet.kind === 'hello') return this.#welcome(link, packet)
    if (!link || link.peer !== from) {
      if (packet.kind !== 'reset') this.#say(from, { kind: 'reset', link: id, from: this.#options.id })
      return
    }
    if (packet.kind === 'reset') return this.#break(link, 'refused')
    if (packet.kind === 'welcome' && link.asks && link.key === undefined) {
      link.key = packet.key
      link.silent = 0
      this.#flush(link)
    }
    if (packet.kind === 'data' && packet.key === link.key) this.#hear(link, packet, part)
  }

  #welcome(known: Link | undefined, { link: id, from }: Packet): void {
    if (known && (known.asks || known.peer !== from)) return
    if (!known && this.#links.size >= MAX_LINKS) {
      this.#say(from, { kind: 'reset', link: id, from: this.#options.id })
      return
    }
    const link = known ?? new Link(this, id, from, false)
    link.key ??= newId()
    this.#links.set(id, link)
    this.#say(from, { kind: 'welcome', link: id, from: this.#options.id, key: link.key })
  }

  #hear(link: Link, { number, acknowledged, full, asks }: Data, part: Buffer): void {
    link.silent = 0
    link.outgoing.full = full
    link.outgoing.acknowledge(acknowledged)
    const first = !link.asks && link.incoming.arrived === 0
    const complete = number > 0 ? link.incoming.take(number, part) : []
    if (first && complete.length > 0) this.#options.opened(link)
    for (const one of complete) if (!link.over) link.onPart(one as Buffer)
    this.#flush(link)
    if (asks) this.acknowledge(link)
    else if (number > 0 && !link.over)
      link.acknowledging ??= setTimeout(() => this.acknowledge(link), ACKNOWLEDGE_WITHIN)
    this.endIfDone(link)
  }

  /** Sends what has not been sent, as far as there is room for it. */
  #flush(link: Link): void {
    if (link.key === undefined || link.over) return
    for (const { number, part } of link.outgoing.next()) this.#sayData(link, { number }, part)
  }

  #greet(link: Link): void {
    this.#publish(link.peer, { kind: 'hello', link: link.id, from: this.#options.id })
      .then(async (heard) => {
        if (heard === 0 && (await this.#options.hasLeft(link.peer))) this.#break(link, 'lost')
      })
      .catch(() => {})
  }

  #tick(): void {
    const now = performance.now()
    // For what this process itself has slept through, nobody else is to blame.
    const passed = Math.min(now - this.#lastTick, MOST)
    this.#lastTick = now
    const { working } = this.#options.redis
    for (const link of [...this.#links.values()]) {
      if (working) this.#look(link, passed)
      else this.#wait(link, passed)
    }
  }

  #look(link: Link, passed: number): void {
    link.away = 0
    link.silent += passed
    if (link.silent > (link.asks ? SILENCE.asker : SILENCE.owner)) return this.#break(link, 'lost')
    if (link.key === undefined) return this.#greet(link)
    for (const { number, part } of link.outgoing.again(AGAIN_AFTER)) this.#sayData(link, { number }, part)
    if (link.asks && link.silent >= ASK_AFTER) this.acknowledge(link, true)
  }

  #wait(link: Link, passed: number): void {
    link.away += passed
    if (link.asks && link.away > (link.said ? AWAY.after : AWAY.before)) this.#break(link, 'away')
  }

  #sayData(link: Link, { number = 0, asks = false }: { number?: number; asks?: boolean }, part?: Uint8Array): void {
    clearTimeout(link.acknowledging)
    link.acknowledging = undefined
    const { full, id, key = '' } = link
    const acknowledged = link.incoming.arrived
    this.#say(
      link.peer,
      { kind: 'data', link: id, from: this.#options.id, key, number, acknowledged, full, asks },
      part,
    )
  }

  /** Says something, as far as that is possible: what matters is said again. */
  #say(to: string, packet: Packet, part?: Uint8Array): void {
    this.#publish(to, packet, part).catch(() => {})
  }

  /** Gives how many have heard it. Rejects where Redis is away. */
  #publish(to: string, packet: Packet, part?: Uint8Array): Promise<number> {
    const { redis, sealer } = this.#options
    const channel = this.#channelOf(to)
    return redis.publish(channel, sealPacket(sealer(), channel, packet, part))
  }

  #channelOf(replica: string): string {
    return `${this.#options.prefix}r:${replica}`
  }
}

function newId(): string {
  return randomBytes(12).toString('base64url')
}
