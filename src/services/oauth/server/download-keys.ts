/** Downloads the public keys of an issuer, from the address in its metadata or in the configuration. */
import { failed, quotedAddress, unavailable } from '../failure.js'
import { type Got, getObject } from '../get-object.js'
import type { Issuers } from '../issuers.js'
import { quoted } from '../quoted.js'
import type { Reach } from '../reach.js'
import type { IssuerSettings } from './settings.js'

/** Most keys of an issuer that are kept, and bytes of all. Certificates of keys (x5c) take some kilobytes each. */
const MAX_KEYS = 200
const KEYS_BYTES = 1024 * 1024

export interface DownloadOptions {
  settings: Pick<IssuerSettings, 'issuer' | 'jwksUri' | 'introspection'>
  issuers: Issuers
  reach: Reach
}

export interface DownloadedKeys {
  keys: readonly object[]
  /** How many keys there were beyond the bound. */
  leftOut: number
  /** Another name that the issuer has in its tokens. */
  alias?: string | undefined
}

/** Rejects with an error that says why the keys cannot be had. */
export async function downloadKeys({ settings, issuers, reach }: DownloadOptions): Promise<DownloadedKeys> {
  const { issuer, jwksUri, introspection } = settings
  const metadata = jwksUri === undefined ? await issuers.find({ issuer, reach }) : undefined
  const place = jwksUri ?? metadata?.jwks_uri
  const alias = metadata?.access_token_issuer
  if (place === undefined) {
    // Its tokens are no JWTs.
    if (introspection && metadata?.introspection_endpoint !== undefined) return { keys: [], leftOut: 0, alias }
    throw failed(`The metadata of ${quoted(issuer)} have no jwks_uri: set "jwksUri"`)
  }
  const got = await getObject(place, { ...reach, maxBytes: KEYS_BYTES, decompress: true })
  const all = got.kind === 'object' && 'keys' in got.value ? got.value.keys : undefined
  if (!Array.isArray(all)) throw unavailable(`${quotedAddress(place)} has no keys: ${whyNot(got)}`)
  const usable = all.filter(isForSignatures)
  // Where tokens are introspected, none may have a signature.
  if (usable.length === 0 && !introspection) {
    const why = all.length === 0 ? 'its list "keys" is empty' : 'none in its list "keys" is for signatures'
    throw unavailable(`${quotedAddress(place)} has no keys: ${why}`)
  }
  return { keys: usable.slice(0, MAX_KEYS), leftOut: Math.max(0, usable.length - MAX_KEYS), alias }
}

/** A key that may verify signatures. */
function isForSignatures(key: unknown): key is object {
  return typeof key === 'object' && key !== null && (key as { use?: unknown }).use !== 'enc'
}

function whyNot(got: Got): string {
  if (got.kind === 'object') return 'it is JSON without a list "keys"'
  return got.status === 200 ? 'it answers with what is no JSON object' : `it answers HTTP ${got.status}`
}
