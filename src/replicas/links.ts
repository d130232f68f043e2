/**
 * Links between replicas over Redis channels, which may lose, repeat and reorder packets, and over a Redis that may be
 * unreachable for a while. What is sent on a link arrives once and in order, or both sides learn that it does not.
 */
import { randomBytes } from 'node:crypto'
import type { Sealer } from '../seal.js'
import { type Data, openPacket, type Packet, sealPacket } from './packet.js'
import type { Redis } from './redis.js'
import { Incoming, Outgoing } from './reliable.js'

/** Why a link ended early. */
export type Broken =
  /** The other side is silent although Redis works. */
  | 'lost'
  /** Redis is unreachable for too long. */
  | 'away'
  /** The other side refuses the link, or has ended it. */
  | 'refused'

/** The parties of the links. */
export interface LinksOptions {
  /** The id of this replica. */
  id: string
  /** Prefix of all channels. */
  prefix: string
  redis: Pick<Redis, 'working' | 'publish' | 'listen'>
  sealer(): Sealer
  /** Another replica has opened a link to this one. */
  opened(link: Link): void
  /** A packet of a replica has arrived. */
  heard(replica: string): void
  /** Nobody receives on a replica's channel. Resolves to whether that replica has shut down. */
  hasLeft(replica: string): Promise<boolean>
}

/** Milliseconds between checks for what to send again, and the most that counts as passed between two checks. */
const TICK = 250
const MOST = 1_000
/**
 * Milliseconds of silence, while Redis works, after which the other side is lost. The side that waits for an answer
 * asks for acknowledgements all the time.
 */
const SILENCE = { asker: 5_000, owner: 10_000 }
/** Milliseconds until an unacknowledged part is sent again, and of silence until an acknowledgement is requested. */
const AGAIN_AFTER = 400
const ASK_AFTER = 400
/** Milliseconds for which Redis may be unreachable: before anything of a request was sent, and after. */
const AWAY = { before: 2_000, after: 30_000 }
/** Milliseconds for which an acknowledgement may wait for further parts. */
const ACKNOWLEDGE_WITHIN = 10
const MAX_LINKS = 20_000

/** One side of a link. */
export class Link {
  readonly id: string
  /** The replica on the other side. */
  readonly peer: string
  /** Whether this side has opened the link. */
  readonly asks: boolean
  readonly outgoing = new Outgoing()
  readonly incoming = new Incoming()
  /** Proves that a packet is for this link. The opener learns it from the other side's first answer. */
  key: string | undefined
  /** This side accepts no more for now. */
  full = false
  /** Everything was sent: the link ends when it has arrived. */
  finishing = false
  over = false
  broken: Broken | undefined
  /** Milliseconds of silence while Redis worked, and milliseconds since Redis stopped working. */
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

  /** Whether the other side may have received something. */
  get said(): boolean {
    return this.key !== undefined
  }

  /** Sends a part. Resolves when there is room for another. */
  send(part: Uint8Array): Promise<void> {
    this.#links.send(this, part)
    return this.outgoing.room()
  }

  /** Pauses or resumes the other side. */
  hold(full: boolean): void {
    if (this.full === full || this.over) return
    this.full = full
    this.#links.acknowledge(this)
  }

  /** This side has sent everything: the link ends when that has arrived. */
  finish(): void {
    this.finishing = true
    this.#links.endIfDone(this)
  }

  /** This side has received everything. */
  end(): void {
    this.#links.acknowledge(this)
    this.#links.drop(this)
  }

  /** Ends the link early, and informs the other side. */
  abandon(): void {
    this.#links.abandon(this)
  }
}

/** All links of this replica. */
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

  /** Opens a link to another replica. Parts wait until that has answered. */
  open(peer: string): Link {
    const link = new Link(this, newId(), peer, true)
    this.#links.set(link.id, link)
    this.#greet(link)
    return link
  }

  /** Checks whether a replica answers, for later requests. */
  knock(peer: string): void {
    this.#say(peer, { kind: 'hello', link: newId(), from: this.#options.id })
  }

  send(link: Link, part: Uint8Array): void {
    if (link.over) return
    link.outgoing.add(part)
    this.#flush(link)
  }

  /** Acknowledges what has arrived, and says whether more is accepted. `asks`: requests an acknowledgement. */
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

  /** Sends lost parts again and parts that were not sent yet, as far as there is room. */
  #flush(link: Link): void {
    if (link.key === undefined || link.over) return
    for (const { number, part } of link.outgoing.repair()) this.#sayData(link, { number }, part)
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
    // Time in which this process did not run does not count as silence of the other side.
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

  /** Sends a packet if possible. Important ones are sent again anyway. */
  #say(to: string, packet: Packet, part?: Uint8Array): void {
    this.#publish(to, packet, part).catch(() => {})
  }

  /** Resolves to the number of receivers. Rejects if Redis is unreachable. */
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
