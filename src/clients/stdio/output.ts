/** Writes lines to a client on stdio, with memory for those that wait to be read. */

import type { Writable } from 'node:stream'
import { type Memory, type Reservation, SMALL } from '../../base/limits/memory.js'
import { encodeLine } from '../../base/rpc/lines.js'
import { lengthOf, type Wire } from '../../base/rpc/source.js'

export class PipeOutput {
  readonly #output: Writable
  readonly #waiting: Reservation

  constructor(output: Writable, memory: Memory, principal: string) {
    this.#output = output
    this.#waiting = memory.reserve(principal, SMALL)
  }

  /** Writes a message, or `instead` if there is no memory for it. Without `instead` the message is dropped. */
  write(message: Wire, instead?: () => Wire): Promise<void> | undefined {
    const output = this.#output
    if (this.#waiting.resize(output.writableLength + lengthOf(message))) return instead && this.write(instead())
    const line = encodeLine(message)
    let taken = true
    output.cork()
    for (const piece of typeof line === 'string' ? [line] : line) taken = output.write(piece)
    output.uncork()
    if (taken || output.destroyed) {
      this.#waiting.resize(output.writableLength)
      return undefined
    }
    return new Promise((resolve) => {
      const done = () => {
        output.off('drain', done).off('close', done).off('error', done)
        this.#waiting.resize(output.writableLength)
        resolve()
      }
      output.on('drain', done).on('close', done).on('error', done)
    })
  }

  end(): void {
    this.#waiting.end()
  }
}
