/** The authorization request that a browser is sent with, and what it brings back (RFC 6749, 4.1; RFC 7636; RFC 9207). */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import {
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  skipStateCheck,
  validateAuthResponse,
} from 'oauth4webapi'
import { Fault } from '../../protocol/fault.js'
import { serverOf } from '../client/grants.js'
import type { IssuerMetadata } from '../documents.js'
import { quoted, unsafe } from '../failure.js'
import type { Pending } from '../store/record.js'

const CODE = /^[\w.:-]{1,64}$/
/** Errors that say that somebody declined. */
const DECLINED: ReadonlySet<string> = new Set([
  'access_denied',
  'consent_required',
  'interaction_required',
  'login_required',
])

/** The secrets of a sign-in: the verifier, and the digest of the state that is made of it. */
export function newSecrets(): Pick<Pending, 'verifier' | 'state'> {
  const verifier = generateRandomCodeVerifier()
  return { verifier, state: digest(stateOf(verifier)) }
}

/**
 * The state of a sign-in, 256 bits that nobody can guess without the verifier. It is made anew where it is needed: whichever
 * process sends the browser, all of its windows can be finished.
 */
function stateOf(verifier: string): string {
  return createHmac('sha256', verifier).update('state').digest('base64url')
}

/** Whether an answer belongs to a sign-in. */
export function isAnswerTo(params: URLSearchParams, { state }: Pick<Pending, 'state'>): boolean {
  const given = params.getAll('state')
  return given.length === 1 && timingSafeEqual(Buffer.from(digest(given[0] as string)), Buffer.from(state))
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Throws a Fault where the authorization server does not say that it checks what keeps a code from being stolen. */
export function checkPkce(
  { issuer, code_challenge_methods_supported: methods }: IssuerMetadata,
  assume: boolean,
): void {
  if (assume || methods?.includes('S256')) return
  throw unsafe(
    `The authorization server ${quoted(issuer)} does not say that it supports PKCE with S256. ` +
      'If it does all the same, set "oauth.pkce" to "assume"',
  )
}

/** The address that a browser is sent to. `params` cannot replace what the protocol needs. */
export async function authorizationAddress(
  endpoint: string,
  pending: Pending,
  params: Readonly<Record<string, string>> = {},
): Promise<string> {
  const url = new URL(endpoint)
  const { client, redirectUri, verifier, asked, resource } = pending
  const own: Record<string, string | undefined> = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirectUri,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state: stateOf(verifier),
    scope: asked.length > 0 ? asked.join(' ') : undefined,
    resource,
  }
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  for (const [name, value] of Object.entries(own)) {
    if (value === undefined) url.searchParams.delete(name)
    else url.searchParams.set(name, value)
  }
  return url.href
}

/**
 * The authorization response, as its code can be redeemed. Throws a Fault for what is none of this issuer, which tells
 * nothing of it; and for what says that there is no code.
 */
export function checkedResponse(params: URLSearchParams, server: IssuerMetadata, clientId: string): URLSearchParams {
  const { issuer, authorization_response_iss_parameter_supported: says = false } = server
  const given = params.getAll('iss')
  if (given.length === 0 && says)
    throw unsafe(`An answer came back without the issuer, which ${quoted(issuer)} says that it always names`)
  if (given.length > 1 || (given.length === 1 && given[0] !== issuer))
    throw unsafe(`An answer came back that names another issuer than ${quoted(issuer)}`)
  const error = params.get('error')
  if (error !== null) {
    const code = CODE.test(error) ? error : 'unknown'
    if (DECLINED.has(code)) throw new Fault('signInRefused', `Signing in was declined at ${quoted(issuer)} (${code})`)
    throw new Fault('authFailed', `The authorization server ${quoted(issuer)} answers with the error ${code}`)
  }
  try {
    const response = validateAuthResponse(serverOf({ server }), { client_id: clientId }, params, skipStateCheck)
    if (response.has('code')) return response
  } catch {
    // What it says is of the answer: nothing of that is shown.
  }
  throw unsafe(`An answer of ${quoted(issuer)} came back that is none of OAuth`)
}
