/**
 * Seals cursors and states that clients keep for the bridge, with the server's cursor or state inside. The server's text stays
 * readable, as without the bridge, but is accepted only with its original seal.
 */

import { digest } from './digest.js'
import { Sealer, type SealKey } from './seal.js'

/** The fields of the bridge, and the JSON string of the server, if there is one. */
export interface OpenedText {
  fields: Readonly<Record<string, unknown>>
  text: string | undefined
}

/** Parts of a sealed text, followed by the server's text. */
const PARTS = 3
const SEPARATOR = '.'

export class TextSealer {
  readonly #sealer: Sealer

  /** The first key seals; all keys open. By default a random key of this process. */
  constructor(keys: readonly SealKey[], purpose: string) {
    this.#sealer = new Sealer(keys, purpose)
  }

  /** A keyed hash of a secret text. */
  hash(text: string): string {
    return this.#sealer.hash(text)
  }

  standsFor(hash: unknown, text: string): boolean {
    return this.#sealer.standsFor(hash, text)
  }

  /** A string for the client. `text` is the server's JSON string. */
  seal(fields: Readonly<Record<string, string | number>>, text: string | undefined): string {
    if (text === undefined) return JSON.stringify(this.#sealer.seal(fields))
    const theirs = JSON.parse(text) as string
    return JSON.stringify(this.#sealer.seal({ ...fields, t: digest(theirs) }) + SEPARATOR + theirs)
  }

  /** The content of a client's string; undefined if the bridge did not make it. */
  open(json: string): OpenedText | undefined {
    if (!json.startsWith('"')) return undefined
    const given = JSON.parse(json) as string
    let end = -1
    for (let part = 0; part < PARTS; part++) {
      end = given.indexOf(SEPARATOR, end + 1)
      if (end < 0) break
    }
    const theirs = end < 0 ? undefined : given.slice(end + 1)
    const fields = this.#sealer.open(end < 0 ? given : given.slice(0, end))
    if (!fields || fields['t'] !== (theirs === undefined ? undefined : digest(theirs))) return undefined
    return { fields, text: theirs === undefined ? undefined : JSON.stringify(theirs) }
  }
}
