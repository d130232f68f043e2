/** How legacy clients are served: with sessions of their own where the server keeps sessions, else by translation. */
import type { Connect, LegacyRoute, Sender } from '../../protocol/call.js'
import { NEWEST_LEGACY } from '../../protocol/eras.js'
import { isOfSignIn } from '../../protocol/fault.js'
import { initializeParams } from '../../protocol/legacy-server.js'
import type { Verdict } from '../era/verdict.js'
import { credentialOf } from '../failure.js'
import type { Access } from '../half.js'
import type { ServerOptions } from '../options.js'
import { Peer } from '../peer.js'
import { type OpenLine, ReopeningTunnel } from './reopening-tunnel.js'
import type { LegacySessions } from './sessions.js'
import { negotiated } from './tunnel.js'
import { Tunnels } from './tunnels.js'

export class ClientRoutes {
  readonly #options: ServerOptions
  readonly #access: Access
  readonly #sessions: LegacySessions
  readonly #tunnels: Tunnels
  /** The question whether a modern server keeps sessions as well, while it is asked. */
  #asking: Promise<boolean> | undefined

  constructor(options: ServerOptions, access: Access, sessions: LegacySessions) {
    this.#options = options
    this.#access = access
    this.#sessions = sessions
    this.#tunnels = new Tunnels(options, access)
  }

  /** The way to serve a client. Rejects with a Fault. */
  async routeOf(sender: Sender): Promise<LegacyRoute> {
    const verdict = await this.#withSessions(sender)
    if (!verdict) return 'translate'
    const connect: Connect = (opening, from, reopens) => {
      if (!reopens) return this.#tunnels.connect(verdict, opening, from)
      let known: Verdict | undefined = verdict
      const open: OpenLine = async (write) => {
        const now = known ?? (await this.#withSessions(from))
        known = undefined
        return now && this.#tunnels.connect(now, opening, from, write)
      }
      return ReopeningTunnel.open(open, this.#options.log)
    }
    return { transport: verdict.transport.kind, connect }
  }

  close(hurry: boolean): Promise<void> {
    return this.#tunnels.close(hurry)
  }

  /** What is known of the server; undefined where it has no sessions for clients. Rejects with a Fault. */
  async #withSessions(sender: Sender): Promise<Verdict | undefined> {
    const { detection } = this.#access
    const verdict = await detection.known(sender)
    const { transport } = verdict
    if (verdict.era === 'legacy') return verdict
    if (this.#options.era === 'modern') return undefined
    if (transport.kind === 'http' && verdict.alsoLegacy === undefined)
      detection.amend(verdict, { alsoLegacy: await this.#askedForSessions(verdict, sender) })
    return verdict.alsoLegacy === false ? undefined : verdict
  }

  /** Asked once, however many want to know. */
  #askedForSessions(verdict: Verdict, sender: Sender): Promise<boolean> {
    this.#asking ??= this.#keepsSessions(verdict, sender).finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  /**
   * Whether a modern server over HTTP keeps sessions too. One that answers `initialize` without a session does not, and
   * where nothing speaks for sessions it is not sent: to a server of 2026-07-28 alone it is a malformed request.
   */
  async #keepsSessions({ transport, listsLegacy }: Verdict, sender: Sender): Promise<boolean> {
    const { clientInfo, capabilities, account } = this.#sessions.identityOf(sender)
    const credential = credentialOf(sender)
    const peer = new Peer(await transport.open(), this.#options.log)
    peer.account = account
    const params = initializeParams(NEWEST_LEGACY, clientInfo, capabilities)
    try {
      if (!listsLegacy && !(await peer.channel.wantsSession?.(credential, account))) return false
      const answer = await peer.call('initialize', params, this.#options.timeouts.initialize, credential)
      return negotiated(answer) !== undefined && peer.channel.hasSession === true
    } catch (error) {
      // That nobody has signed in says nothing of sessions.
      if (isOfSignIn(error)) throw error
      return false
    } finally {
      await peer.channel.close()
    }
  }
}
