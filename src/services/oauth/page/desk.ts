/**
 * Where people sign in to servers over the network: the address of the page, and tickets that lead there. A ticket says for
 * whom it was made, and proves nothing about who brings it.
 */
import { randomId, Sealer, type SealKey } from '../../../base/crypto/seal.js'
import { BoundedMap } from '../../../base/limits/bounded.js'
import type { Wanted } from '../challenge.js'

/** The sign-in that a person was asked for. */
export interface Ticket {
  server: string
  /** The principal whose call was refused. */
  principal: string
  /** What the server wants, as far as it fits. */
  wanted: Wanted | undefined
  /** The name of the client that called, by its own account. */
  client: string | undefined
}

/** Takes a name for some time; for all replicas, if there are several. */
export type Claim = (name: string, milliseconds: number) => Promise<boolean>

/** Where the page is, and the keys of its replicas. */
export interface DeskPlace {
  /** Its address, as browsers know it. */
  address: string
  keys: readonly SealKey[]
}

/** Milliseconds for which a ticket leads to the page. */
const HOLDS = 600_000
/** Most characters of each foreign text in a ticket: an address has no room for more. */
const MAX_WANTED = 800
const MAX_CLIENT = 60
/** Of what a server says of a token, only this decides which scopes are asked for. */
const STEP_UP = 'insufficient_scope'
/** Most names that a process remembers without other replicas. */
const MAX_CLAIMED = 10_000

/** Makes and reads tickets. */
export class Desk {
  readonly #now: () => number
  readonly #claim: Claim
  #place: { address: string; sealer: Sealer } | undefined

  constructor(claim: Claim | undefined, now: () => number = Date.now) {
    this.#now = now
    this.#claim = claim ?? claimHere(now)
  }

  /** The page is served there from now on; undefined if it is not served. */
  set place(place: DeskPlace | undefined) {
    this.#place = place && { address: place.address, sealer: new Sealer(place.keys, 'ticket') }
  }

  /** The address of a server on the page, without a ticket; undefined if there is no page. */
  addressOf(server: string): string | undefined {
    return this.#place && `${this.#place.address}/${encodeURIComponent(server)}`
  }

  /** The address where people answer the question with this name; undefined if there is no page. */
  approvalAddressOf(name: string): string | undefined {
    return this.#place && `${this.#place.address}/approve/${encodeURIComponent(name)}`
  }

  /** The address of the page for one person. It is only for that person, so it must not be logged. */
  invite(ticket: Ticket): string | undefined {
    if (!this.#place) return undefined
    const { server, principal, wanted, client } = ticket
    const { metadata = null, scopes = null, dpop = false, error } = wanted ?? {}
    const text = JSON.stringify([metadata, scopes, dpop, error === STEP_UP])
    const sealed = this.#place.sealer.seal({
      id: randomId(),
      until: this.#now() + HOLDS,
      server,
      principal,
      wanted: text.length > MAX_WANTED ? '' : text,
      client: client?.slice(0, MAX_CLIENT) ?? '',
    })
    return `${this.addressOf(server)}?t=${sealed}`
  }

  /** The content of a ticket; undefined if it is not from this bridge, or has expired. */
  read(text: string): (Ticket & { id: string }) | undefined {
    const fields = this.#place?.sealer.open(text)
    if (!fields || Number(fields['until']) <= this.#now()) return undefined
    const { id, server, principal, wanted, client } = fields as Record<string, string>
    if (id === undefined || server === undefined || principal === undefined) return undefined
    return { id, server, principal, wanted: wantedIn(wanted), client: client === '' ? undefined : client }
  }

  /** Redeems a ticket. Resolves to whether it was unused. Rejects with a Fault if that is unknown. */
  spend({ id }: { id: string }): Promise<boolean> {
    return this.#claim(id, HOLDS)
  }
}

function wantedIn(text: string | undefined): Ticket['wanted'] {
  if (!text) return undefined
  const [metadata, scopes, dpop, isStepUp] = JSON.parse(text) as [string | null, string[] | null, boolean, boolean]
  const error = isStepUp ? STEP_UP : undefined
  return { metadata: metadata ?? undefined, scopes: scopes ?? undefined, dpop, error }
}

/** Takes names in this process. */
function claimHere(now: () => number): Claim {
  const taken = new BoundedMap<string, number>(MAX_CLAIMED)
  return (name, milliseconds) => {
    if ((taken.get(name) ?? 0) > now()) return Promise.resolve(false)
    taken.set(name, now() + milliseconds)
    return Promise.resolve(true)
  }
}
