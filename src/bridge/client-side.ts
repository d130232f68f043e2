/** The client side of a mount: on stdio, and over HTTP, whose code is loaded on first use. */

import { type PipeOptions, servePipe } from '../downstream/stdio.js'
import { Admission } from '../policy/admission.js'
import { compose } from '../policy/compose.js'
import type { Gauge } from '../ports/events.js'
import type { HttpMount, HttpMountOptions } from './http-mount.js'
import type { Shared } from './shared.js'

export interface ClientSideOptions extends HttpMountOptions {
  shared: Shared
}

/** Streams of a client on stdio, or of one in memory. */
export type Pipe = Pick<PipeOptions, 'input' | 'output' | 'patience' | 'principal'>

export class ClientSide {
  readonly #options: ClientSideOptions
  #http: Promise<HttpMount> | undefined
  /** The HTTP side, once it is created. */
  #served: HttpMount | undefined

  constructor(options: ClientSideOptions) {
    this.#options = options
  }

  /** The usage of its bounds. */
  get gauges(): Gauge[] {
    return this.#served?.gauges ?? []
  }

  /** The HTTP side. It is loaded and created on first use. */
  http(): Promise<HttpMount> {
    this.#http ??= this.#makeHttp()
    return this.#http
  }

  async #makeHttp(): Promise<HttpMount> {
    const { HttpMount } = await import('./http-mount.js')
    this.#served = new HttpMount(this.#options)
    return this.#served
  }

  /**
   * Serves stdio until the input ends or the output is closed. After the input has ended, requests in flight have
   * `patience` milliseconds.
   */
  async pipe(streams: Pipe): Promise<void> {
    const { upstream, settings, sessionSettings, log, shared } = this.#options
    // When the input ends, the subscriptions of this pipe end too, but not those of other pipes of this server.
    const endings = new Admission()
    streams.input.once('end', () => endings.end())
    await servePipe({
      ...streams,
      upstream: { ...upstream, handle: compose(upstream.handle, endings.policy) },
      compat: settings.compat,
      log,
      lineLimit: settings.limits.lineBytes,
      memory: shared.memory,
      settings: sessionSettings,
    })
  }

  drain(): void {
    this.#served?.drain()
  }

  leave(): Promise<void> {
    return this.#served?.leave() ?? Promise.resolve()
  }

  cut(): void {
    this.#served?.cut()
  }

  close(): void {
    this.#served?.close()
  }
}
