/** The replicas of a bridge, connected by Redis: what one of them owns can be reached through all. */
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import type { Certificate } from '../ports/events.js'
import type {
  ChangeListener,
  ChangeNotice,
  ForwardedAnswer,
  ForwardedRequest,
  OwnedByReplica,
  Replicas,
} from '../ports/replicas.js'
import { Fault } from '../protocol/fault.js'
import { Sealer, type SealKey } from '../seal.js'
import { Answering } from './answer.js'
import { Broadcast } from './broadcast.js'
import type { RedisAddress } from './connection.js'
import { faultOf, forward } from './forward.js'
import { Links } from './links.js'
import { Redis, type RedisLog } from './redis.js'
import { RedisStore } from './store.js'

/** How replicas reach each other. */
export interface ReplicasOptions extends RedisAddress {
  /** Prefix of all keys and channels. */
  prefix: string
  /** Milliseconds that one command may take. */
  timeout: number
  /** Of the bridge, for Redis. */
  certificate?: Certificate | undefined
  /** Equal in all replicas. */
  keys: readonly SealKey[]
  log: RedisLog
}

/** Milliseconds for which a replica is known to be gone, so that later requests fail at once. */
const REMEMBERED = 60_000
/** Milliseconds for which a shut down replica is recorded in Redis: longer than anything in it could live. */
const GOODBYE = 3_600_000

/** The `Replicas` over Redis. */
export class RedisReplicas implements Replicas {
  readonly id = randomBytes(8).toString('hex')
  readonly certificate: Certificate | undefined
  readonly #redis: Redis
  #sealer: Sealer
  readonly records: RedisStore
  readonly #links: Links
  readonly #notices: Broadcast
  readonly #serving = new Answering()
  /** Replicas that are gone, and since when that is known. */
  readonly #lost = new Map<string, number>()

  constructor({ prefix, keys, certificate, ...connecting }: ReplicasOptions) {
    this.certificate = certificate
    this.#redis = new Redis(connecting)
    this.#sealer = new Sealer(keys, 'replica')
    const common = { id: this.id, prefix, redis: this.#redis, sealer: () => this.#sealer }
    this.records = new RedisStore(common)
    this.#notices = new Broadcast(common)
    this.#links = new Links({
      ...common,
      opened: (link) => this.#serving.answer(link),
      heard: (replica) => this.#lost.delete(replica),
      hasLeft: (replica) => this.#hasLeft(replica),
    })
  }

  /** Replaces the keys. The first one seals, all of them open. */
  set keys(keys: readonly SealKey[]) {
    this.#sealer = new Sealer(keys, 'replica')
  }

  /** Whether Redis can be used now. */
  get isUp(): boolean {
    return this.#redis.working
  }

  /** Connects to Redis. Without Redis, everything works that needs no other replica. */
  connect(): Promise<void> {
    return this.#redis.connect()
  }

  /** Sets the handler for forwarded requests. */
  serve(answer: RequestListener): void {
    this.#serving.use(answer)
  }

  async carry(owned: OwnedByReplica, request: ForwardedRequest, signal: AbortSignal): Promise<ForwardedAnswer> {
    const { owner, what } = owned
    if (this.isCarried(request.connection))
      throw new Fault('internal', `Forwarding loop: this request was already forwarded, and ${owner} owns it`)
    if (this.#isLost(owner)) {
      this.#links.knock(owner)
      throw faultOf('lost', what, false)
    }
    const link = this.#links.open(owner)
    try {
      return await forward(link, owned, request, signal)
    } catch (error) {
      if (link.broken === 'lost') this.#lost.set(owner, performance.now())
      throw error
    }
  }

  isCarried(connection: object): boolean {
    return this.#serving.isCarried(connection)
  }

  sessionId(): string {
    const id = `${this.id}.${randomBytes(24).toString('base64url')}`
    return `${id}.${this.#sealer.hash(id)}`
  }

  ownerOf(sessionId: string): string | undefined {
    const [owner, , hash] = sessionId.split('.')
    const ours = owner !== undefined && hash !== undefined && owner !== this.id
    return ours && this.#sealer.standsFor(hash, sessionId.slice(0, -hash.length - 1)) ? owner : undefined
  }

  tell(notice: ChangeNotice): void {
    this.#notices.tell(notice)
  }

  hear(server: string, listener: ChangeListener): () => void {
    return this.#notices.hear(server, listener)
  }

  /** Records that this replica has shut down, so that requests for what it owned fail at once. */
  async close(): Promise<void> {
    this.#links.close()
    this.#serving.close()
    await this.records.remember('gone', this.id, '', GOODBYE)
    this.#redis.close()
  }

  #isLost(replica: string): boolean {
    const since = this.#lost.get(replica)
    if (since === undefined) return false
    if (performance.now() - since < REMEMBERED) return true
    this.#lost.delete(replica)
    return false
  }

  async #hasLeft(replica: string): Promise<boolean> {
    return (await this.records.recall('gone', replica).catch(() => undefined)) !== undefined
  }
}
