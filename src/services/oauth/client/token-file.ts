/**
 * A token that another program writes into a file. Read again when the file changes and when the server refuses the
 * token.
 */

import type { AccountRefusal } from '../../../base/fault/fault.js'
import { Fault } from '../../../base/fault/fault.js'
import { stampOf } from '../../../base/net/private-file.js'
import type { Account } from '../../../mcp/protocol/account.js'
import { readSecretFile } from './secret-file.js'

/** Milliseconds between checks of the file. */
const LOOK_EVERY = 500

/** The account of a token in a file. */
export class TokenFile implements Account {
  readonly #path: string
  #looked = Number.NEGATIVE_INFINITY
  #read: { stamp: string; header: string } | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Throws a Fault if the file has no token. */
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

  /** The token in the file, if it is now another one. Rejects with a Fault. */
  async refused({ status, sent }: AccountRefusal): Promise<string> {
    this.#read = undefined
    const header = this.authorization()
    if (header !== sent && status === 401) return header
    throw new Fault('upstreamAuthRequired', `The server refused the token in "oauth.tokenFile" (HTTP ${status})`, {
      data: { httpStatus: status },
    })
  }
}
