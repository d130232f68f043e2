/** What workers have in common, as a worker sees it: the process that has started it has the values, and passes messages on. */
import type { Common, CommonValues, ValueCall } from './common.js'
import type { ProcessLink } from './link.js'

export class CommonOfPrimary implements Common {
  readonly lasting = false
  readonly working = undefined
  readonly mayEvict = undefined
  /** Nothing is missed: a worker ends with the process that has started it. */
  onReturn = () => {}
  readonly get = this.#value('get')
  readonly set = this.#value('set')
  readonly add = this.#value('add')
  readonly delete = this.#value('delete')
  readonly swap = this.#value('swap')
  readonly increment = this.#value('increment')
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

  #value<N extends ValueCall['name']>(name: N): CommonValues[N] {
    const call = (...of: unknown[]) => this.#link.call('value', { name, of } satisfies ValueCall)
    return call as CommonValues[N]
  }
}
