/** Says with whom and how one would sign in to a server, and as what one is signed in. For people. */

import { printable } from '../../printable.js'
import type { AccountRefusal } from '../../protocol/account.js'
import { readChallenges, wantedBy } from '../challenge.js'
import type { Store } from '../store/store.js'
import type { Accounts } from './accounts.js'
import { clientChoice } from './register.js'
import type { ClientSettings } from './settings.js'
import type { AccountStatus } from './status.js'

export interface SignInExplanation {
  /** The authorization server. */
  issuer: string
  resource: string | undefined
  /** Scopes that would be asked for; undefined where nobody names any. */
  scopes: readonly string[] | undefined
  /** How the bridge would be known as a client; `none` where it cannot be. */
  client: 'configured' | 'document' | 'registered' | 'none'
}

/** Looks at what a server and its authorization server publish. Nothing secret is sent. Rejects with a Fault. */
export async function explainSignIn(
  accounts: Accounts,
  settings: ClientSettings,
  refusal: AccountRefusal | undefined,
): Promise<SignInExplanation> {
  const obtainer = await accounts.obtainer()
  const wanted = wantedBy(readChallenges(refusal?.challenges ?? []))
  const { server, resource, scopes } = await obtainer.find(wanted, undefined, true)
  return {
    issuer: server.issuer,
    resource,
    scopes: settings.scopes ?? wanted.scopes ?? scopes,
    client: clientChoice(server, settings),
  }
}

const KNOWN = {
  configured: 'as the client of the configuration',
  document: 'by its metadata document',
  registered: 'by registering itself',
  none: 'not at all: the authorization server registers nobody, so set "oauth.clientId"',
} as const

/** In lines, for a terminal. */
export function inLines({ issuer, resource, scopes, client }: SignInExplanation): string[] {
  return [
    `with       ${printable(issuer, 200)}`,
    ...(resource === undefined ? [] : [`for        ${printable(resource, 200)}`]),
    `known      ${KNOWN[client]}`,
    `scopes     ${scopes === undefined || scopes.length === 0 ? 'none are named' : printable(scopes.join(' '), 300)}`,
  ]
}

/** What `mcp-bridge auth status` and `mcp-bridge login` say of an account. */
export function statusLines(status: AccountStatus, now: number): string[] {
  const { account, issuer, scopes, client, expires, signedIn, renewable, pending } = status
  const state = signedIn ? 'signed in' : pending ? 'waiting for somebody to sign in' : 'not signed in'
  const minutes = expires === undefined ? undefined : Math.round((expires - now) / 60_000)
  const until =
    minutes === undefined
      ? 'until the server refuses the token'
      : minutes > 0
        ? `for ${minutes} more min${renewable ? ', renewed by itself' : ''}`
        : renewable
          ? 'renewed at the next request'
          : 'no longer'
  return [
    `account    ${printable(account, 100)}: ${state}${signedIn ? ` ${until}` : ''}`,
    ...(issuer === undefined ? [] : [`with       ${printable(issuer, 200)}`]),
    ...(client === undefined ? [] : [`known      ${KNOWN[client]}`]),
    ...(scopes.length === 0 ? [] : [`scopes     ${printable(scopes.join(' '), 300)}`]),
  ]
}

/** All accounts that are kept, and why others cannot be read. */
export async function listAccounts(
  store: Store,
  now: number,
): Promise<{ accounts: AccountStatus[]; refusals: string[] }> {
  const { statusOf } = await import('./status.js')
  const listed = await store.list()
  return {
    accounts: listed.flatMap(({ record }) => (record ? [statusOf(record, now)] : [])),
    refusals: listed.flatMap(({ refusal }) => (refusal === undefined ? [] : [refusal])),
  }
}
