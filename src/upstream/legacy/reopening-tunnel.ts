/**
 * A legacy client's own session, for a client that cannot open another by itself: where the server has lost it, another one
 * takes its place.
 */

import type { Log } from '../../logging.js'
import { ECHOED, printable } from '../../printable.js'
import type { Tunnel, TunnelListener, TunnelMessage } from '../../protocol/call.js'
import type { LegacyRevision } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { UPDATED } from '../../protocol/subscriptions.js'
import { type Notification, notification, parseMessage, type Request, type Response } from '../../rpc/message.js'
import { join, sourceOf, type Wire } from '../../rpc/source.js'
import { EMPTY, type Json, keys, objectIn, type Payload, payloadAt, raw, value } from '../../rpc/splice.js'
import { backoff, pause, unlessAborted } from '../../time.js'
import { Asked } from './asked.js'
import { KeptSettings } from './kept-settings.js'
import { SeenLists } from './seen-lists.js'
import type { DirectTunnel } from './tunnel.js'

/**
 * Hands the client's `initialize` to the server. Resolves to undefined where the server has no sessions. Rejects with a Fault.
 * `write` is how the client gets what the server says of its own accord.
 */
export type OpenLine = (write: (message: Request | Notification) => Wire) => Promise<DirectTunnel | undefined>

type ReopeningLog = Pick<Log, 'debug' | 'warn'>

/** Methods whose answers say what the client has set or seen. */
const NOTED: ReadonlySet<string> = new Set([
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
])
/** Attempts to open another session before the client asks for anything, and milliseconds before each. */
const MAX_ATTEMPTS = 8
const WAIT = { first: 100, most: 12_800 }
/** Milliseconds after which a session counts as stable: when it is lost, the attempts are counted from zero. */
const STABLE = 30_000

export class ReopeningTunnel implements Tunnel {
  readonly opened: Wire
  readonly revision: LegacyRevision
  readonly #open: OpenLine
  readonly #log: ReopeningLog
  readonly #settings = new KeptSettings()
  readonly #lists = new SeenLists()
  readonly #closed = new AbortController()
  #sessions = 1
  #line: DirectTunnel
  #asked: Asked
  #openedAt = performance.now()
  #reopening: Promise<DirectTunnel> | undefined
  #recovering = false
  #attempts = 0
  #listener: TunnelListener | undefined

  private constructor(line: DirectTunnel, revision: LegacyRevision, asked: Asked, open: OpenLine, log: ReopeningLog) {
    this.opened = line.opened
    this.revision = revision
    this.#line = line
    this.#asked = asked
    this.#open = open
    this.#log = log
  }

  /** Opens the first session. Resolves to undefined where the server has none. Rejects with a Fault. */
  static async open(open: OpenLine, log: ReopeningLog): Promise<Tunnel | undefined> {
    const asked = new Asked(1)
    const line = await open((message) => asked.write(message))
    return line?.revision === undefined ? line : new ReopeningTunnel(line, line.revision, asked, open, log)
  }

  async *ask(request: Request, signal: AbortSignal): AsyncGenerator<TunnelMessage, void> {
    const noted = NOTED.has(request.method)
    for (let again = false; ; again = true) {
      const line = this.#reopening || this.#line.over ? await this.#reopened(signal) : this.#line
      try {
        for await (const message of line.ask(request, signal)) {
          if (noted && message.answer) this.#note(request, message.answer)
          yield message
        }
        return
      } catch (error) {
        // Only what the server has certainly not acted on is sent once more.
        const unprocessed = error instanceof Fault && error.row.outcome === undefined
        if (!unprocessed || !line.over || signal.aborted) throw error
        if (again)
          throw new Fault('upstreamUnavailable', 'The server lost the session twice before it took the request', {
            cause: error,
          })
      }
    }
  }

  notify(method: string, params: Json | undefined): void {
    if (method === 'notifications/initialized') this.#settings.initialized(params)
    // What is said between two sessions is about the one that is lost.
    if (!this.#line.over) this.#line.notify(method, params)
  }

  respond(response: Response): void {
    const answered = this.#asked.answered(response)
    if (answered) this.#line.respond(answered)
  }

  attach(listener: TunnelListener): void {
    this.#listener = listener
    this.#hear(this.#line, listener)
  }

  close(): void {
    this.#closed.abort()
    this.#line.close()
  }

  #hear(line: DirectTunnel, listener: TunnelListener): void {
    line.attach({
      isIdle: () => listener.isIdle(),
      message: (text) => {
        if (line === this.#line) listener.message(text)
      },
      ended: () => {
        if (line === this.#line && !this.#closed.signal.aborted) this.#lost(listener)
      },
    })
  }

  #lost(listener: TunnelListener): void {
    for (const text of this.#asked.takeBack()) listener.message(text)
    if (performance.now() - this.#openedAt >= STABLE) this.#attempts = 0
    if (!this.#recovering) this.#recover().catch(() => {})
  }

  /** Opens another session before the client asks for anything: it may wait to hear of changes. */
  async #recover(): Promise<void> {
    const { signal } = this.#closed
    this.#recovering = true
    while (this.#line.over && this.#attempts < MAX_ATTEMPTS && !signal.aborted) {
      await pause(backoff(this.#attempts++, WAIT), signal)
      if (!this.#line.over || signal.aborted) break
      await this.#reopened(signal).catch((error: unknown) =>
        this.#log.debug({ event: 'session_reopen_failed', err: error }, 'opening another session failed'),
      )
    }
    this.#recovering = false
  }

  /** The session in the place of the lost one: opened once, however many wait for it. Rejects with a Fault. */
  #reopened(signal: AbortSignal): Promise<DirectTunnel> {
    this.#reopening ??= this.#reopen().finally(() => {
      this.#reopening = undefined
    })
    return unlessAborted(this.#reopening, signal)
  }

  async #reopen(): Promise<DirectTunnel> {
    const asked = new Asked(++this.#sessions)
    const line = await this.#open((message) => asked.write(message))
    if (this.#closed.signal.aborted) {
      line?.close()
      throw new Fault('upstreamUnavailable', 'The client has gone')
    }
    const usable = this.#checked(line)
    this.#line = usable
    this.#asked = asked
    this.#openedAt = performance.now()
    const listener = this.#listener
    if (listener) this.#hear(usable, listener)
    await this.#settings.restore(usable, this.#log)
    if (usable.over) throw new Fault('upstreamUnavailable', 'The server lost the session again as it was being opened')
    this.#log.warn({ event: 'session_reopened' }, "server lost the client's session; another one is open")
    this.#compareCapabilities(usable)
    if (listener) this.#tellChanges(usable, listener).catch(() => {})
    return usable
  }

  /** Throws a Fault where the client cannot go on in this session: what it agreed on cannot be changed any more. */
  #checked(line: DirectTunnel | undefined): DirectTunnel {
    if (!line)
      throw new Fault(
        'upstreamIncompatible',
        'The server has lost the session and has no sessions any more: it speaks 2026-07-28 now. Connect again',
      )
    if (line.revision === undefined)
      throw new Fault(
        'upstreamUnavailable',
        `The server has lost the session and refuses to open another: ${refusalIn(line.opened)}`,
      )
    if (line.revision === this.revision) return line
    line.close()
    throw new Fault(
      'upstreamIncompatible',
      `The server has lost the session and answers initialize with revision ${line.revision} now, but the client has agreed on ${this.revision}: connect again`,
    )
  }

  #note({ method, params }: Request, { outcome: { kind, source, member } }: Response): void {
    if (kind !== 'result') return
    this.#settings.agreed(method, params)
    const result = payloadAt(source, member)
    if (result) this.#lists.saw(method, typeof params === 'string' ? undefined : raw(params, 'cursor'), result)
  }

  /** The client cannot be told of other capabilities: the operator is. */
  #compareCapabilities({ opened }: DirectTunnel): void {
    const [before, now] = [capabilitiesIn(this.opened), capabilitiesIn(opened)]
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

  /** Tells the client what may have changed while there was no session, as far as it may expect to hear of it. */
  async #tellChanges(line: DirectTunnel, listener: TunnelListener): Promise<void> {
    for (const uri of this.#settings.uris) listener.message(notification(UPDATED, `{"uri":${JSON.stringify(uri)}}`))
    const capabilities = capabilitiesIn(this.opened)
    const told = (capability: string) => {
      const offered = objectIn(capabilities, capability)
      return offered !== undefined && value(offered, 'listChanged') === true
    }
    const changed = await this.#lists.changed((method, params) => line.request(method, params))
    for (const { capability, method } of changed)
      if (told(capability)) listener.message(notification(method, undefined))
  }
}

function capabilitiesIn(opened: Wire): Payload {
  const result = memberIn(opened, 'result')
  return (result && objectIn(result, 'capabilities')) ?? EMPTY
}

function refusalIn(opened: Wire): string {
  const error = memberIn(opened, 'error')
  return printable(String(error && value(error, 'message')), ECHOED)
}

/** What an answer says, as far as it is of this kind. */
function memberIn(opened: Wire, kind: 'result' | 'error'): Payload | undefined {
  const message = parseMessage(sourceOf(join(opened)))
  if (message.kind !== 'response' || message.outcome.kind !== kind) return undefined
  return payloadAt(message.outcome.source, message.outcome.member)
}
