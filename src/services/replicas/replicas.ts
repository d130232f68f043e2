/**
 * The replicas of a bridge: a client reaches a session or call of one replica through all, because ids of sessions name their replica
 * (`sessionId` makes them, `ownerOf` checks them). They have state in common.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener } from 'node:http'
import { Sealer, type SealKey } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import { Windows } from '../../base/limits/windows.js'
import type { Log } from '../../base/log/events.js'
import { Recent } from '../../base/rpc/memoize.js'
import type { Signal } from '../../base/time/hang-up.js'
import type { Certificate } from '../../mcp/ports/events.js'
import type {
  ChangeListener,
  ChangeNotice,
  ForwardedAnswer,
  ForwardedRequest,
  OwnedByReplica,
  Replicas,
} from '../../mcp/ports/replicas.js'
import { Broadcast } from './broadcast.js'
import type { Common } from './common.js'
import { Internal } from './internal.js'
import { ADDRESS, Peers, RENEW } from './peers.js'
import { digestOf } from './proof.js'
import { SealedStore } from './store.js'

/** Options of a replica. */
export interface ReplicasOptions {
  common: Common
  /** Prefix of all keys and channels. */
  prefix: string
  /** The client certificate for Redis. */
  certificate?: Certificate | undefined
  /** The same in all replicas. */
  keys: readonly SealKey[]
  /** The internal address, at which this replica listens for the others. */
  address: URL
  log: Pick<Log, 'warn'>
}

/** Milliseconds for which the address of a replica is kept, or the record of its shutdown. */
const LEASE = 3_600_000
const A_MINUTE = 60_000
/** Most sessions of other replicas whose owners are cached, in each generation. */
const OWNERS = 5_000
/** Kinds of warnings: more than there are. */
const MAX_KINDS = 100
/** The record of the replica that was the last to renew its address. */
const LATEST = 'latest'

/** The Replicas over HTTP. */
export class HttpReplicas implements Replicas {
  readonly id = randomBytes(8).toString('hex')
  readonly certificate: Certificate | undefined
  readonly records: SealedStore
  readonly #common: Common
  #sealer: Sealer
  /** The owners of requested sessions. */
  #owners = new Recent<string>({ max: OWNERS })
  readonly #notices: Broadcast
  readonly #internal: Internal
  readonly #peers: Peers
  /** The address for other replicas. */
  #address = ''
  #renewing: NodeJS.Timeout | undefined
  #leaving = false
  #areAllLeaving = false

  constructor({ common, prefix, keys, certificate, address, log }: ReplicasOptions) {
    this.certificate = certificate
    this.#common = common
    this.#sealer = new Sealer(keys, 'replica')
    const { id } = this
    const warn = onceAMinute(log)
    const sealer = () => this.#sealer
    const sharing = { id, prefix, common, sealer }
    this.records = new SealedStore(sharing)
    this.#notices = new Broadcast(sharing)
    this.#internal = new Internal({
      id,
      address,
      sealer,
      refused: (why, from) =>
        warn(why, { event: 'internal_request_refused', why, from }, 'refused a request at the address for replicas'),
    })
    this.#peers = new Peers({
      records: this.records,
      sealer,
      refused: (replica, why) =>
        warn(
          `of ${why}`,
          { event: 'replica_refused', replica, why },
          'another replica refuses the requests of this one',
        ),
    })
  }

  /** Replaces the keys. The first one seals, all of them open. */
  set keys(keys: readonly SealKey[]) {
    this.#sealer = new Sealer(keys, 'replica')
    this.#owners = new Recent({ max: OWNERS })
    this.#peers.connectAnew()
  }

  /** Whether Redis is reachable; undefined without it. */
  get isUp(): boolean | undefined {
    return this.#common.working
  }

  /** Whether Redis may evict records; undefined if it has not told. */
  get mayEvict(): boolean | undefined {
    return this.#common.mayEvict
  }

  /** Listens for other replicas, and connects to what they have in common. Without it, this replica reaches only those that it knows. */
  async connect(): Promise<void> {
    this.#address = await this.#internal.listen()
    await this.#common.connect()
    this.#renewing = setInterval(() => void this.#renew(), RENEW).unref()
    await this.#renew()
  }

  async #renew(): Promise<void> {
    await this.records.remember(ADDRESS, this.id, this.#address, LEASE)
    if (!this.#leaving) await this.records.remember(LATEST, LATEST, this.id, 3 * RENEW)
  }

  /** All replicas shut down together: none takes over from another. */
  allLeave(): void {
    this.#areAllLeaving = true
  }

  /** Stops announcing this replica as one that takes over requests from others. */
  leave(): void {
    this.#leaving = true
    this.#internal.leave()
  }

  async another(): Promise<string | undefined> {
    if (this.#areAllLeaving) return undefined
    const isOther = (id: string) => id !== this.id
    const id = await this.records.waitFor(LATEST, LATEST, 2 * RENEW, isOther)
    return id !== undefined && isOther(id) ? id : undefined
  }

  /** Sets the handler for forwarded requests. */
  serve(answer: RequestListener): void {
    this.#internal.use(answer)
  }

  async forward(owned: OwnedByReplica, request: ForwardedRequest, signal: Signal): Promise<ForwardedAnswer> {
    if (this.isForwarded(request.received))
      throw new Fault('internal', `Forwarding loop: this request was already forwarded, and ${owned.owner} owns it`)
    return this.#peers.forward(owned, request, signal)
  }

  isForwarded(request: IncomingMessage): boolean {
    return this.#internal.isForwarded(request)
  }

  checkBody(request: IncomingMessage, body: unknown): void {
    const digest = this.#internal.digestFor(request)
    if (digest !== undefined && digest !== digestOf(body instanceof Uint8Array ? body : undefined))
      throw new Fault('unauthorized', 'The body differs from the one that the other replica has signed')
  }

  sessionId(): string {
    const id = `${this.id}.${randomBytes(24).toString('base64url')}`
    return `${id}.${this.#sealer.hash(id)}`
  }

  ownerOf(sessionId: string): string | undefined {
    const known = this.#owners.get(sessionId)
    if (known !== undefined) return known
    const [owner, , hash] = sessionId.split('.')
    const ours = owner !== undefined && hash !== undefined && owner !== this.id
    if (!ours || !this.#sealer.standsFor(hash, sessionId.slice(0, -hash.length - 1))) return undefined
    this.#owners.set(sessionId, owner)
    return owner
  }

  tell(notice: ChangeNotice): void {
    this.#notices.tell(notice)
  }

  hear(server: string, listener: ChangeListener): () => void {
    return this.#notices.hear(server, listener)
  }

  /** Records that this replica has shut down, so that requests for its sessions and calls fail at once. */
  async close(): Promise<void> {
    clearInterval(this.#renewing)
    this.#peers.close()
    await Promise.all([this.#internal.close(), this.records.remember(ADDRESS, this.id, '', LEASE)])
    this.#common.close()
  }
}

/** Logs each kind of warning at most once a minute, because strangers can cause them. */
function onceAMinute(log: Pick<Log, 'warn'>): (kind: string, ...entry: Parameters<Log['warn']>) => void {
  const minutes = new Windows(MAX_KINDS)
  return (kind, ...entry) => {
    if (minutes.count(kind, A_MINUTE).current === 1) log.warn(...entry)
  }
}
