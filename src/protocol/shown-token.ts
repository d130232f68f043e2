/** A token that a caller has shown, for those who exchange it for one at a server. */

/** The token. JSON and logs of it do not have its text, which is private. */
export class ShownToken {
  readonly #text: string
  /** A digest of the text: equal for equal tokens. */
  readonly digest: string
  /** When it ends, in milliseconds since 1970. */
  readonly expires: number

  constructor(text: string, digest: string, expires: number) {
    this.#text = text
    this.digest = digest
    this.expires = expires
  }

  /** The text. It goes to the configured issuer alone. */
  open(): string {
    return this.#text
  }
}
