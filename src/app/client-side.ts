/** The client side of a mount: on stdio, and over HTTP, whose code is loaded on first use. */

import { type PipeOptions, type PipePlace, servePipe } from '../clients/stdio.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { HttpMount, HttpMountOptions } from './http-mount.js'
import type { Shared } from './shared.js'

export interface ClientSideOptions extends HttpMountOptions {
  shared: Shared
}

/** Streams of a client on stdio, or of one in memory. */
export type Pipe = Pick<PipeOptions, 'input' | 'output' | 'patience' | 'principal' | 'moves'>

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
    this.#served = new HttpMount(this.#options)
    return this.#served
  }

  /** What a client on stdio is served. */
  get place(): PipePlace {
    const { upstream, settings, sessionSettings, log } = this.#options
    return { upstream, log, settings: sessionSettings, options: settings }
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
