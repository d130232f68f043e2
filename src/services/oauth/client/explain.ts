/** Describes for people how to sign in to a server, and the state of accounts. */

import type { AccountRefusal } from '../../../base/fault/fault.js'
import { printable } from '../../../base/texts/printable.js'
import type { SignInExplanation } from '../../../mcp/protocol/account.js'
import { readChallenges, wantedBy } from '../challenge.js'
import type { TokenStore } from '../store/store.js'
import type { Accounts } from './accounts.js'
import { clientChoice } from './register.js'
import type { AccountStatus } from './status.js'

/** Reads what a server and its authorization server publish. Sends nothing secret. Rejects with a Fault. */
export async function explainSignIn(
  accounts: Accounts,
  refusal: AccountRefusal | undefined,
): Promise<SignInExplanation> {
  const { settings } = accounts
  const obtainer = await accounts.obtainer()
  const wanted = wantedBy(readChallenges(refusal?.challenges ?? []))
  const { server, resource, scopes, guessed } = await obtainer.find(wanted, undefined, true)
  const client = clientChoice(server, settings)
  return {
    issuer: server.issuer,
    resource,
    scopes: settings.scopes ?? wanted.scopes ?? scopes,
    client: guessed && client === 'registered' ? 'guessed' : client,
  }
}

const KNOWN = {
  configured: '"oauth.clientId" of the configuration',
  document: 'client metadata document',
  registered: 'dynamic registration',
  guessed:
    'dynamic registration, if the server supports it: it publishes nothing about signing in. If it requires a key, set it with --header or "headers"',
  none: 'none: the authorization server does not register clients. Set "oauth.clientId"',
} as const

/** Rows for a terminal: a label and a text each. */
export function signInRows({ issuer, resource, scopes, client }: SignInExplanation): [label: string, text: string][] {
  return [
    ['issuer', printable(issuer, 200)],
    ...(resource === undefined ? [] : [['resource', printable(resource, 200)] satisfies [string, string]]),
    ['client', KNOWN[client]],
    ['scopes', scopes === undefined || scopes.length === 0 ? 'none named' : printable(scopes.join(' '), 300)],
  ]
}

/** The lines of `mcp-bridge auth status` and `mcp-bridge login` for an account. */
export function statusLines(status: AccountStatus, now: number): string[] {
  const { account, issuer, scopes, client, expires, signedIn, renewable, pending } = status
  const state = signedIn ? 'signed in' : pending ? 'waiting for a sign-in' : 'not signed in'
  const minutes = expires === undefined ? undefined : Math.round((expires - now) / 60_000)
  const until =
    minutes === undefined
      ? 'until the server refuses the token'
      : minutes > 0
        ? `for ${minutes} more min${renewable ? ', renewed automatically' : ''}`
        : renewable
          ? 'renewed at the next request'
          : 'for less than 1 min'
  return [
    `account    ${printable(account, 100)}: ${state}${signedIn ? ` ${until}` : ''}`,
    ...(issuer === undefined ? [] : [`issuer     ${printable(issuer, 200)}`]),
    ...(client === undefined ? [] : [`client     ${KNOWN[client]}`]),
    ...(scopes.length === 0 ? [] : [`scopes     ${printable(scopes.join(' '), 300)}`]),
  ]
}

/** All stored accounts, and why some records cannot be used. */
export async function listAccounts(
  store: TokenStore,
  now: number,
): Promise<{ accounts: AccountStatus[]; refusals: string[] }> {
  const { statusOf } = await import('./status.js')
  const listed = await store.list()
  return {
    accounts: listed.flatMap(({ record }) => (record ? [statusOf(record, now)] : [])),
    refusals: listed.flatMap(({ refusal }) => (refusal === undefined ? [] : [refusal])),
  }
}
