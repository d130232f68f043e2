/** The account of a principal who signs in on the page of the bridge, as requests use it. */
import { type AccountRefusal, Fault, needsSignIn } from '../../../base/fault/fault.js'
import type { Signal } from '../../../base/time/hang-up.js'
import type { SignInAsking } from '../../../mcp/protocol/account.js'
import { readChallenges, wantedBy } from '../challenge.js'
import { enterFirst } from '../client/key-account.js'
import { type HeldAccount, Requesting } from '../client/requesting.js'
import { quoted } from '../quoted.js'
import type { Desk } from './desk.js'

/** Who is invited to the page, and for which server. */
export interface Invitation {
  desk: Desk
  server: string
  principal: string
}

/** The `Account`: instead of opening a browser, it gives the address of the page. */
export class Invited extends Requesting {
  readonly #invitation: Invitation

  constructor(account: HeldAccount, invitation: Invitation) {
    super(account, false)
    this.#invitation = invitation
  }

  override async signIn(refusal: AccountRefusal, signal: Signal, asking: SignInAsking = {}): Promise<string> {
    try {
      return await this.refused(refusal, signal)
    } catch (error) {
      const { desk, server, principal } = this.#invitation
      const page = desk.addressOf(server)
      if (!needsSignIn(error) || page === undefined) throw error
      const arrived = asking.hasAccepted ? await this.account.arrived(refusal, signal) : undefined
      if (arrived !== undefined) return arrived
      const wanted = wantedBy(readChallenges(refusal.challenges))
      const own = `Sign in to ${quoted(server)} with your own account first: ${page}`
      const message = this.header === undefined ? own : enterFirst(server, page)
      const signInUrl = desk.invite({ server, principal, wanted, client: asking.client })
      throw new Fault('signInRequired', message, { signInFor: refusal, signInUrl })
    }
  }
}
