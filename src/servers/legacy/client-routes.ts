/** Decides how legacy clients are served: in a direct session if the server supports sessions, otherwise by translation. */

import { isAboutOthers } from '../../base/fault/fault.js'
import type { Request } from '../../base/rpc/message.js'
import type { Sender } from '../../mcp/protocol/call.js'
import { NEWEST_LEGACY } from '../../mcp/protocol/eras.js'
import { initializeParams, negotiated } from '../../mcp/protocol/legacy-server.js'
import type { ForwardInitialize, LegacyRoute } from '../../mcp/protocol/upstream.js'
import type { Verdict } from '../era/verdict.js'
import { credentialOf } from '../failure.js'
import type { Access } from '../half.js'
import type { ServerOptions } from '../options.js'
import type { DirectServerSession } from './direct-session.js'
import { type DirectSessionOpening, DirectSessions } from './direct-sessions.js'
import { ReopeningSession } from './reopening-session.js'
import type { LegacySessions } from './sessions.js'
import { StartingSessions } from './starting-sessions.js'

export class ClientRoutes {
  readonly #options: ServerOptions
  readonly #access: Access
  readonly #sessions: LegacySessions
  readonly #directSessions: DirectSessions
  readonly #starting = new StartingSessions()
  /** The running check whether a modern server also supports sessions. */
  #checking: Promise<boolean> | undefined

  constructor(options: ServerOptions, access: Access, sessions: LegacySessions) {
    this.#options = options
    this.#access = access
    this.#sessions = sessions
    this.#directSessions = new DirectSessions(options, access)
  }

  /** How the client of a sender is served. Rejects with a Fault. */
  async routeOf(sender: Sender): Promise<LegacyRoute> {
    const since = performance.now()
    const verdict = await this.#withSessions(sender)
    if (!verdict) return 'translate'
    const connect: ForwardInitialize = (opening, from, options) =>
      ReopeningSession.connect(
        (how, grant = from.grant) => this.open(opening, { ...from, grant }, how),
        options,
        this.#options.log,
      )
    const { startWait } = this.#options.timeouts
    const { kind } = verdict.transport
    if (kind === 'http')
      return { transport: kind, connect, resume: (left, from) => this.#directSessions.resume(verdict, left, from) }
    if (kind !== 'stdio' || startWait === undefined) return { transport: kind, connect }
    return {
      transport: kind,
      connect: (opening, from, options) =>
        this.#starting.open(opening, from, () => connect(opening, from, options), { since, startWait }),
    }
  }

  /** Opens a session of a client. Undefined if the server has none. Rejects with a Fault. */
  async open(
    opening: Request,
    sender: Sender,
    options: DirectSessionOpening,
  ): Promise<DirectServerSession | undefined> {
    const verdict = await this.#withSessions(sender)
    return verdict && this.#directSessions.connect(verdict, opening, sender, options)
  }

  close(hurry: boolean): Promise<void> {
    return this.#directSessions.close(hurry)
  }

  /** The verdict on a server that supports sessions of clients; undefined if it does not. Rejects with a Fault. */
  async #withSessions(sender: Sender): Promise<Verdict | undefined> {
    const { detection } = this.#access
    const verdict = await detection.known(sender)
    const { transport } = verdict
    if (verdict.era === 'legacy') return verdict
    if (this.#options.era === 'modern') return undefined
    if (transport.kind === 'http' && verdict.alsoLegacy === undefined) {
      // Concurrent callers share one check.
      this.#checking ??= this.#supportsSessions(verdict, sender).finally(() => {
        this.#checking = undefined
      })
      detection.amend(verdict, { alsoLegacy: await this.#checking })
    }
    return verdict.alsoLegacy === false ? undefined : verdict
  }

  /**
   * Whether a modern HTTP server also supports sessions: whether it answers `initialize` with a session id. `initialize`
   * is sent only if the server lists legacy revisions or refuses a GET for lack of a session, because it is a malformed
   * request for other servers of 2026-07-28.
   */
  async #supportsSessions({ transport, listsLegacy }: Verdict, sender: Sender): Promise<boolean> {
    const { clientInfo, capabilities, account } = this.#sessions.identityOf(sender)
    const credential = credentialOf(sender)
    const peer = await this.#access.detection.channel(transport)
    peer.account = account
    const params = initializeParams(NEWEST_LEGACY, clientInfo, capabilities)
    try {
      if (!listsLegacy && !(await peer.channel.wantsSession?.(credential, account))) return false
      const answer = await peer.call('initialize', params, this.#options.timeouts.initialize, { headers: credential })
      return negotiated(answer) !== undefined && peer.channel.hasSession === true
    } catch (error) {
      // A required sign-in or an unreachable Redis does not show whether the server supports sessions.
      if (isAboutOthers(error)) throw error
      return false
    } finally {
      await peer.channel.close()
    }
  }
}
