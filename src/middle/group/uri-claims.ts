/** Remembers which servers of a group have sent or served a URI to a caller. */
import { Recent } from '../../base/rpc/memoize.js'
import type { Member } from './member.js'

/** A server that has served a URI has answered a request for it. Another one has only named it in an answer. */
export type UriClaim = 'sent' | 'served'

/** Most remembered URIs of one server. Each has its own, so that none makes the bridge forget what another one has. */
const MAX_URI_CLAIMS = 2_000

export class UriClaims {
  /** By server; within it by caller and URI. */
  readonly #claims = new Map<string, Recent<UriClaim>>()

  add(who: string, { server }: Member, uri: string, claim: UriClaim): void {
    let ofServer = this.#claims.get(server)
    if (!ofServer) {
      ofServer = new Recent({ max: MAX_URI_CLAIMS })
      this.#claims.set(server, ofServer)
    }
    const key = `${who} ${uri}`
    if (ofServer.get(key) !== 'served') ofServer.set(key, claim)
  }

  of(who: string, { server }: Member, uri: string): UriClaim | undefined {
    return this.#claims.get(server)?.get(`${who} ${uri}`)
  }

  /** Forgets servers that are no longer in the group. */
  change(members: readonly Member[]): void {
    for (const name of this.#claims.keys())
      if (!members.some(({ server }) => server === name)) this.#claims.delete(name)
  }
}
