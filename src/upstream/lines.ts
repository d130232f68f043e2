/** The sessions that legacy clients themselves have with a legacy server: opened for them, and ended when there is no room. */
import type { Line, Sender } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import type { Request } from '../rpc/message.js'
import type { ChannelError } from './channel.js'
import type { Detection, Verdict } from './detection.js'
import { credentialOf } from './failure.js'
import { DirectLine } from './line.js'
import type { Peer } from './peer.js'

export interface LinesOptions {
  detection: Detection
  /** Sessions with the server at once, those of the bridge included. */
  max: number
  /** Sessions of the bridge, and a way to end one that nobody uses. */
  pool: { readonly size: number; evictIdle(): boolean }
  /** Milliseconds for the answer to `initialize`. */
  timeout: number
  onEnd(error: ChannelError): void
  /** What has become of a session, for whoever counts. */
  told?: ((what: 'opened' | 'ended' | 'lost') => void) | undefined
  log: { debug(fields: object, message: string): void }
}

export class Lines {
  readonly #options: LinesOptions
  /** By channel; undefined while the session is being opened. */
  readonly #lines = new Map<Peer, DirectLine | undefined>()

  constructor(options: LinesOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#lines.size
  }

  /**
   * Hands a client's `initialize` to the server, on a channel of its own. Resolves to undefined where the server turns out to
   * keep no sessions. Rejects with a Fault.
   */
  async connect(verdict: Verdict, opening: Request, sender: Sender): Promise<Line | undefined> {
    const { detection } = this.#options
    this.#makeRoom()
    const peer = await detection.channel(verdict.transport).catch((error: unknown) => {
      throw detection.failed(error)
    })
    this.#lines.set(peer, undefined)
    try {
      const line = await this.#open(peer, opening, sender)
      if (line.revision !== undefined) {
        verdict.revision ??= line.revision
        this.#lines.set(peer, line)
        this.#options.told?.('opened')
        return line
      }
      this.#lines.delete(peer)
      if (verdict.era === 'modern' || (await detection.isModernAfterAll(verdict, peer))) {
        verdict.alsoLegacy = false
        detection.giveBack(peer)
        return undefined
      }
      line.close()
      return line
    } catch (error) {
      this.#lines.delete(peer)
      await peer.channel.close()
      if (verdict.era === 'legacy') throw detection.failed(error)
      verdict.alsoLegacy = false
      return undefined
    }
  }

  async close(hurry: boolean): Promise<void> {
    await Promise.all([...this.#lines.keys()].map(({ channel }) => channel.close(hurry)))
  }

  /** Ends a session that nobody uses, if there are as many as there may be. Throws a Fault where all are in use. */
  #makeRoom(): void {
    const { max, pool } = this.#options
    if (this.#lines.size + pool.size < max || pool.evictIdle()) return
    let idlest: DirectLine | undefined
    for (const line of this.#lines.values()) {
      if (line?.idle && line.lastUsed < (idlest?.lastUsed ?? Number.POSITIVE_INFINITY)) idlest = line
    }
    if (!idlest) throw new Fault('overloaded', `All ${max} sessions with the server are in use`, { retryAfter: 1 })
    idlest.end()
  }

  #open(peer: Peer, opening: Request, sender: Sender): Promise<DirectLine> {
    const { timeout, log } = this.#options
    peer.headers = credentialOf(sender)
    const onEnd = (error: ChannelError | undefined) => {
      if (this.#lines.get(peer)) this.#options.told?.(error ? 'lost' : 'ended')
      this.#lines.delete(peer)
      if (error) this.#options.onEnd(error)
    }
    return DirectLine.open(peer, opening, { principal: sender.principal, timeout, log, onEnd })
  }
}
