/** The authorization request for the browser, and its response (RFC 6749, 4.1; RFC 7636; RFC 9207). */

import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  skipStateCheck,
  validateAuthResponse,
} from 'oauth4webapi'
import { sha256 } from '../../../base/crypto/digest.js'
import { Fault } from '../../../base/fault/fault.js'
import { AuthorizationRefused, serverOf } from '../client/grants.js'
import type { IssuerMetadata } from '../documents.js'
import { unsafe } from '../failure.js'
import { quoted } from '../quoted.js'
import type { Pending } from '../store/record.js'

const CODE = /^[\w.:-]{1,64}$/
/** Error codes that mean that the person declined. */
const DECLINED: ReadonlySet<string> = new Set([
  'access_denied',
  'consent_required',
  'interaction_required',
  'login_required',
])

/** What an authorization request is made of. */
export type Authorization = Pick<Pending, 'client' | 'redirectUri' | 'verifier' | 'asked' | 'resource'>

/** The secrets of a sign-in: the code verifier, and the digest of the state derived from it. */
export function newSecrets(): Pick<Pending, 'verifier' | 'state'> {
  const verifier = generateRandomCodeVerifier()
  return { verifier, state: hex(stateOf(verifier)) }
}

/**
 * The state of a sign-in: 256 bits, derived from the verifier. Any process can derive it again, so every opened window
 * can be finished.
 */
function stateOf(verifier: string): string {
  return createHmac('sha256', verifier).update('state').digest('base64url')
}

/** Whether a response belongs to a sign-in. */
export function isAnswerTo(params: URLSearchParams, { state }: Pick<Pending, 'state'>): boolean {
  const given = params.getAll('state')
  return given.length === 1 && timingSafeEqual(Buffer.from(hex(given[0] as string)), Buffer.from(state))
}

function hex(text: string): string {
  return sha256(text).toString('hex')
}

/** Throws a Fault if the authorization server does not announce PKCE, which protects the code. */
export function checkPkce(
  { issuer, code_challenge_methods_supported: methods }: IssuerMetadata,
  assume: boolean,
): void {
  if (assume || methods?.includes('S256')) return
  throw unsafe(
    `The authorization server ${quoted(issuer)} does not announce PKCE with S256. ` +
      'If it supports that, set "oauth.pkce" to "assume"',
  )
}

/** The address for the browser. `params` cannot replace parameters of the protocol. */
export async function authorizationAddress(
  endpoint: string,
  pending: Authorization,
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
 * The authorization response, validated to redeem its code. Throws a Fault if it is not from this issuer or if the
 * person declined, and AuthorizationRefused if it is another error.
 */
export function checkedResponse(params: URLSearchParams, server: IssuerMetadata, clientId: string): URLSearchParams {
  const { issuer, authorization_response_iss_parameter_supported: says = false } = server
  const given = params.getAll('iss')
  if (given.length === 0 && says)
    throw unsafe(
      `The authorization response has no issuer, although ${quoted(issuer)} announces that it always sends one`,
    )
  // Compared as text, without exceptions (RFC 9207, 2.4): this is what tells issuers apart.
  if (given.length > 1 || (given[0] !== undefined && given[0] !== issuer))
    throw unsafe(`The authorization response names another issuer than ${quoted(issuer)}`)
  const error = params.get('error')
  if (error !== null) {
    const code = CODE.test(error) ? error : 'unknown'
    if (DECLINED.has(code)) throw new Fault('signInRefused', `Signing in was declined at ${quoted(issuer)} (${code})`)
    throw new AuthorizationRefused(code)
  }
  try {
    const checked = new URLSearchParams(params)
    if (given.length > 0) checked.set('iss', issuer)
    const response = validateAuthResponse(serverOf({ server }), { client_id: clientId }, checked, skipStateCheck)
    if (response.has('code')) return response
  } catch {
    // Its message quotes the response, which must not be shown.
  }
  throw unsafe(`The authorization response of ${quoted(issuer)} is not valid OAuth`)
}
