/** The client side of a mount: on stdio, and over HTTP, whose code is loaded on first use. */

import type { SessionSettings } from '../clients/legacy/session.js'
import { type PipeOptions, type PipePlace, servePipe } from '../clients/stdio/stdio.js'
import { isStdio, type ServerSettings } from '../config/settings.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { Admission } from '../middle/policy/admission.js'
import type { HttpMount, HttpMountOptions } from './http-mount.js'
import type { CommonSettings } from './mount-settings.js'
import { timesOf } from './server-options.js'
import type { Shared } from './shared.js'

export interface ClientSideOptions extends Omit<HttpMountOptions, 'isGroup' | 'further' | 'sessionSettings'> {
  /** The settings now: a reload may change them. A group has no server. */
  settings: CommonSettings & { server?: ServerSettings }
  shared: Shared
  /** The version of the bridge. */
  version: string
  /** Where calls register that do not pass the policies. */
  admission: Admission
}

/** Streams of a client on stdio, or of one in memory. */
export type Pipe = Pick<PipeOptions, 'input' | 'output' | 'patience' | 'principal' | 'moves'>

export class ClientSide {
  readonly #options: ClientSideOptions
  readonly #sessionSettings: SessionSettings
  #http: Promise<HttpMount> | undefined
  /** The HTTP side, once it is created. */
  #served: HttpMount | undefined

  constructor(options: ClientSideOptions) {
    const { settings, version, admission } = options
    this.#options = options
    this.#sessionSettings = {
      ...sessionSettingsIn(settings),
      serverInfo: JSON.stringify({ name: 'mcp-bridge', version }),
      begin: (abort) => admission.begin(abort),
    }
  }

  /** The usage of its bounds. */
  get gauges(): Gauge[] {
    return this.#served?.gauges ?? []
  }

  /** The number of sessions over HTTP. */
  get sessions(): number {
    return this.#served?.sessionCount ?? 0
  }

  /** The HTTP side. It is loaded and created on first use. */
  http(): Promise<HttpMount> {
    this.#http ??= this.#makeHttp()
    return this.#http
  }

  async #makeHttp(): Promise<HttpMount> {
    const { HttpMount } = await import('./http-mount.js')
    const { server } = this.#options.settings
    this.#served = new HttpMount({
      ...this.#options,
      isGroup: server === undefined,
      further: server === undefined || isStdio(server) ? [] : server.paths,
      sessionSettings: this.#sessionSettings,
    })
    return this.#served
  }

  /** What a client on stdio is served. */
  get place(): PipePlace {
    const { upstream, settings, log } = this.#options
    return { upstream, log, settings: this.#sessionSettings, options: settings }
  }

  /**
   * Serves stdio until the input ends or the output is closed. After the input has ended, requests in flight have
   * `patience` milliseconds.
   */
  pipe(streams: Pipe): Promise<void> {
    const { place } = this
    const { memory } = this.#options.shared
    return servePipe(Object.assign(place, streams, { memory }))
  }

  /** Applies the settings, which have changed. */
  adapt(): void {
    Object.assign(this.#sessionSettings, sessionSettingsIn(this.#options.settings))
    this.#served?.adapt()
  }

  drain(): void {
    this.#served?.drain()
  }

  leave(): Promise<void> {
    return this.#served?.leave() ?? Promise.resolve()
  }

  leaveNamed(): void {
    this.#served?.leaveNamed()
  }

  cut(): void {
    this.#served?.cut()
  }

  get unanswered(): number {
    return this.#served?.unanswered ?? 0
  }

  close(): void {
    this.#served?.close()
  }
}

/** What sessions of clients take from settings. */
function sessionSettingsIn(settings: ClientSideOptions['settings']) {
  const { server, compat } = settings
  const { strictRevisions, emulateTasks } = compat
  const { answer: answerWithin } = server ? timesOf(settings, server) : settings.timeouts
  return { strict: server?.strictRevisions ?? strictRevisions, emulateTasks, answerWithin }
}
