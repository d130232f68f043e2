/** The token of a caller that the bridge exchanges for a token of a server. */

/** The token. Its text is private, so it is in no JSON and in no log. */
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

  /** The text. Send it only to the configured issuer. */
  open(): string {
    return this.#text
  }
}
