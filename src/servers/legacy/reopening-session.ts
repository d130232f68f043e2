/**
 * A direct session for a client that cannot open another session by itself: when the server loses the session, it opens another
 * one.
 */

import { Fault } from '../../base/fault/fault.js'
import type { Log } from '../../base/log/events.js'
import { type Id, jsonOf, notification, type Request, type Response, type Sent } from '../../base/rpc/message.js'
import { detach } from '../../base/rpc/source.js'
import { EMPTY, isEmpty, keys, objectIn, type Payload, raw, value, write } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'
import { backoff, pause } from '../../base/time/pause.js'
import { unlessAborted } from '../../base/time/time.js'
import type { Grant } from '../../mcp/protocol/call.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { LISTS } from '../../mcp/protocol/methods.js'
import { changesIn, everythingIn, type Reportable } from '../../mcp/protocol/subscriptions.js'
import type {
  AboutAsked,
  AgreedSettings,
  AnsweredInitialize,
  DirectSession,
  ForwardInitialize,
  SessionListener,
  TakeSessionMessage,
} from '../../mcp/protocol/upstream.js'
import type { DirectServerSession } from './direct-session.js'
import type { DirectSessionOpening } from './direct-sessions.js'
import { answeredWith, resultIn } from './handshake.js'
import { KeptSettings } from './kept-settings.js'
import { OpenServerRequests } from './open-server-requests.js'
import { SeenLists } from './seen-lists.js'

/**
 * Sends the client's `initialize` to the server. Resolves to undefined if the server does not support sessions. Rejects
 * with a Fault. `grant` is that of the client's last request.
 */
type OpenDirectSession = (options: DirectSessionOpening, grant?: Grant) => Promise<DirectServerSession | undefined>

type ReopeningLog = Pick<Log, 'debug' | 'warn'>

/** Methods whose answers show what the client has set or received. */
const NOTED: ReadonlySet<string> = new Set([
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  ...LISTS.keys(),
])
/** Attempts to open another session without a request of the client, and milliseconds before each. */
const MAX_ATTEMPTS = 8
const WAIT = { first: 100, most: 12_800 }
/** Milliseconds after which a session counts as stable: when it is lost, the attempts are counted from zero. */
const STABLE = 30_000

export class ReopeningSession implements DirectSession {
  /** The answer that the client got to its `initialize`. */
  readonly #answer: Response
  readonly revision: LegacyRevision
  readonly #open: OpenDirectSession
  readonly #log: ReopeningLog
  readonly #settings = new KeptSettings()
  readonly #lists = new SeenLists()
  readonly #closed = new HangUp()
  #sessions = 1
  #direct: DirectServerSession
  #openRequests: OpenServerRequests
  #openedAt = performance.now()
  #reopening: Promise<DirectServerSession> | undefined
  #recovering = false
  #attempts = 0
  #grant: Grant | undefined
  #listener: SessionListener | undefined

  private constructor(
    direct: DirectServerSession,
    revision: LegacyRevision,
    openRequests: OpenServerRequests,
    open: OpenDirectSession,
    log: ReopeningLog,
  ) {
    this.#answer = direct.answer
    this.revision = revision
    this.#direct = direct
    this.#openRequests = openRequests
    this.#open = open
    this.#log = log
  }

  /** Opens the session of a client, which reopens if the client needs that. */
  static async connect(
    open: OpenDirectSession,
    { reopens, call, forwarded }: Parameters<ForwardInitialize>[2],
    log: ReopeningLog,
  ): Promise<DirectSession | undefined> {
    if (!reopens) return open({ call, fromHttp: true, forwarded })
    const openRequests = new OpenServerRequests(1)
    const direct = await open({ call, write: (message) => openRequests.write(message) })
    return direct?.revision === undefined
      ? direct
      : new ReopeningSession(direct, direct.revision, openRequests, open, log)
  }

  opened(id: Id): AnsweredInitialize {
    return answeredWith(this.#answer, id)
  }

  async ask(request: Request, signal: Signal, say: TakeSessionMessage, about?: AboutAsked): Promise<void> {
    const noting: TakeSessionMessage = (message) => {
      if (message.answer) this.#note(request, message.answer)
      return say(message)
    }
    const heard = NOTED.has(request.method) ? noting : say
    this.#grant = about?.grant
    for (let again = false; ; again = true) {
      const direct = this.#reopening || this.#direct.over ? await this.#reopened(signal) : this.#direct
      try {
        return await direct.ask(request, signal, heard, about)
      } catch (error) {
        // A request is sent again only if the server has certainly not acted on it.
        const unprocessed = error instanceof Fault && error.row.outcome === undefined
        if (!unprocessed || !direct.over || signal.aborted) throw error
        if (again)
          throw new Fault('upstreamUnavailable', 'The server lost the session twice before it accepted the request', {
            cause: error,
          })
      }
    }
  }

  notify(method: string, params: Sent): Promise<void> | undefined {
    if (method === 'notifications/initialized') this.#settings.initialized(jsonOf(params))
    // A notification between two sessions can only be about the lost one.
    return this.#direct.over ? undefined : this.#direct.notify(method, params)
  }

  respond(response: Response): Promise<void> | undefined {
    const answered = this.#openRequests.answered(response)
    return answered && this.#direct.respond(answered)
  }

  attach(listener: SessionListener): void {
    this.#listener = listener
    this.#attach(this.#direct, listener)
  }

  get agreed(): AgreedSettings {
    return { offered: detach(write(capabilitiesIn(this.#answer))), ...this.#settings.now }
  }

  close(): void {
    this.#closed.abort()
    this.#direct.close()
  }

  #attach(direct: DirectServerSession, listener: SessionListener): void {
    direct.attach({
      isIdle: () => listener.isIdle(),
      message: (text, about) => {
        if (direct === this.#direct) listener.message(text, about)
      },
      ended: () => {
        if (direct === this.#direct && !this.#closed.aborted) this.#lost(listener)
      },
    })
  }

  #lost(listener: SessionListener): void {
    for (const text of this.#openRequests.takeBack()) listener.message(text)
    if (performance.now() - this.#openedAt >= STABLE) this.#attempts = 0
    if (!this.#recovering) this.#recover().catch(() => {})
  }

  /** Opens another session without waiting for a request, because the client may only be waiting for notifications. */
  async #recover(): Promise<void> {
    const signal = this.#closed
    this.#recovering = true
    while (this.#direct.over && this.#attempts < MAX_ATTEMPTS && !signal.aborted) {
      await pause(backoff(this.#attempts++, WAIT), signal)
      if (!this.#direct.over || signal.aborted) break
      await this.#reopened(signal).catch((error: unknown) =>
        this.#log.debug({ event: 'session_reopen_failed', err: error }, 'opening another session failed'),
      )
    }
    this.#recovering = false
  }

  /** Opens a session in place of the lost one; concurrent callers share it. Rejects with a Fault. */
  #reopened(signal: Signal): Promise<DirectServerSession> {
    this.#reopening ??= this.#reopen().finally(() => {
      this.#reopening = undefined
    })
    return unlessAborted(this.#reopening, signal)
  }

  async #reopen(): Promise<DirectServerSession> {
    const openRequests = new OpenServerRequests(++this.#sessions)
    const opened = await this.#open({ write: (message) => openRequests.write(message) }, this.#grant)
    if (this.#closed.aborted) {
      opened?.close()
      throw new Fault('upstreamUnavailable', 'The client has gone')
    }
    const direct = this.#checked(opened)
    this.#direct = direct
    this.#openRequests = openRequests
    this.#openedAt = performance.now()
    const listener = this.#listener
    if (listener) this.#attach(direct, listener)
    await this.#settings.restore(direct, this.#log)
    if (direct.over) throw new Fault('upstreamUnavailable', 'The server lost the new session while it was being opened')
    this.#log.warn({ event: 'session_reopened' }, "server lost the client's session; another one is open")
    this.#compareCapabilities(direct)
    if (listener) this.#reportChanges(direct, listener).catch(() => {})
    return direct
  }

  /** Throws a Fault if the client cannot continue in this session. Its negotiated revision cannot change. */
  #checked(direct: DirectServerSession | undefined): DirectServerSession {
    if (!direct)
      throw new Fault(
        'upstreamIncompatible',
        'The server lost the session and now supports only 2026-07-28, which has no sessions: connect again',
      )
    if (direct.revision === undefined)
      throw new Fault(
        'upstreamUnavailable',
        `The server lost the session and refuses to open another: ${refusalIn(direct.answer)}`,
      )
    if (direct.revision === this.revision) return direct
    direct.close()
    throw new Fault(
      'upstreamIncompatible',
      `The server lost the session and now answers initialize with revision ${direct.revision}, but the client negotiated ${this.revision}: connect again`,
    )
  }

  #note({ method, params }: Request, { outcome: { kind, payload: result } }: Response): void {
    if (kind !== 'result') return
    this.#settings.agreed(method, params)
    if (result) this.#lists.saw(method, typeof params === 'string' ? undefined : raw(params, 'cursor'), result)
  }

  /** Logs changed capabilities. The protocol has no way to report them to the client. */
  #compareCapabilities({ answer }: DirectServerSession): void {
    const [before, now] = [capabilitiesIn(this.#answer), capabilitiesIn(answer)]
    const names = new Set([...keys(before), ...keys(now)])
    const changed = [...names]
      .filter((name) => raw(before, name) !== raw(now, name))
      .map((name) => printable(name, ECHOED))
    if (changed.length > 0)
      this.#log.warn(
        { event: 'capabilities_changed', changed },
        'server capabilities differ from those the client was given',
      )
  }

  /**
   * Reports to the client everything that may have changed in the meantime, if the client has subscribed to it or the
   * server's capabilities promise a notification.
   */
  async #reportChanges(direct: DirectServerSession, listener: SessionListener): Promise<void> {
    const report = (changed: Reportable) => {
      for (const { method, params } of everythingIn(changed))
        listener.message(notification(method, isEmpty(params) ? undefined : write(params)))
    }
    report({ lists: [], uris: this.#settings.now.uris })
    const changed = await this.#lists.changed((method, params) => direct.request(method, params))
    const { lists } = changesIn(capabilitiesIn(this.#answer))
    report({ lists: lists.filter((list) => changed.includes(list)), uris: [] })
  }
}

function capabilitiesIn(answer: Response): Payload {
  const result = resultIn(answer)
  return (result && objectIn(result, 'capabilities')) ?? EMPTY
}

function refusalIn(answer: Response): string {
  const { payload } = answer.outcome
  return printable(String(payload && value(payload, 'message')), ECHOED)
}
