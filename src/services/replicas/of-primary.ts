/** What workers have in common, as a worker sees it: the process that has started it has the values, and passes messages on. */
import type { Common, Count, Swap } from './common.js'
import type { ProcessLink } from './link.js'

export class CommonOfPrimary implements Common {
  readonly lasting = false
  readonly working = undefined
  readonly mayEvict = undefined
  /** Nothing is missed: a worker ends with the process that has started it. */
  onReturn = () => {}
  readonly #link: ProcessLink
  readonly #listeners = new Map<string, (message: Buffer) => void>()

  constructor(link: ProcessLink) {
    this.#link = link
  }

  async connect(): Promise<void> {}

  close(): void {}

  listen(channel: string, listener: (message: Buffer) => void): void {
    this.#listeners.set(channel, listener)
  }

  async publish(channel: string, message: Buffer): Promise<void> {
    this.#link.tell('publish', { channel, text: message.toString('base64') })
  }

  /** To be called with what another worker has published. */
  hear({ channel, text }: { channel: string; text: string }): void {
    this.#listeners.get(channel)?.(Buffer.from(text, 'base64'))
  }

  get(key: string): Promise<string | null> {
    return this.#link.call('get', { key })
  }

  set(key: string, text: string, milliseconds: number): Promise<unknown> {
    return this.#link.call('set', { key, text, milliseconds })
  }

  add(key: string, text: string, milliseconds: number): Promise<boolean> {
    return this.#link.call('add', { key, text, milliseconds })
  }

  delete(key: string): Promise<unknown> {
    return this.#link.call('delete', { key })
  }

  swap(key: string, change: Swap): Promise<boolean> {
    return this.#link.call('swap', { key, change })
  }

  increment(key: string, milliseconds: number): Promise<Count> {
    return this.#link.call('increment', { key, milliseconds })
  }
}
