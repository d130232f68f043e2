/** A token that somebody else writes into a file: read again when the file changes, and when the server refuses it. */
import { stampOf } from '../../net/private-file.js'
import type { Account, AccountRefusal } from '../../protocol/account.js'
import { Fault } from '../../protocol/fault.js'
import { readSecretFile } from './secret-file.js'

/** Milliseconds between one look at the file and the next. */
const LOOK_EVERY = 500

export class TokenFile implements Account {
  readonly #path: string
  #looked = Number.NEGATIVE_INFINITY
  #read: { stamp: string; header: string } | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Throws a Fault where there is no token in the file. */
  authorization(): string {
    const now = performance.now()
    if (this.#read && now - this.#looked < LOOK_EVERY) return this.#read.header
    this.#looked = now
    const stamp = stampOf(this.#path)
    if (this.#read?.stamp !== stamp)
      this.#read = { stamp, header: `Bearer ${readSecretFile(this.#path, 'oauth.tokenFile')}` }
    return this.#read.header
  }

  signIn(refusal: AccountRefusal): Promise<string> {
    return this.refused(refusal)
  }

  /** The token that is in the file now, if it is another one. Rejects with a Fault. */
  async refused({ status, sent }: AccountRefusal): Promise<string> {
    this.#read = undefined
    const header = this.authorization()
    if (header !== sent && status === 401) return header
    throw new Fault(
      'upstreamAuthRequired',
      `The server does not take the token of "oauth.tokenFile" (HTTP ${status})`,
      {
        data: { httpStatus: String(status) },
      },
    )
  }
}
