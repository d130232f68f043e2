/**
 * Signatures of manifests: a detached JWS (RFC 7515, appendix F) over the bytes of the manifest, in a document of its
 * own at `<address of the manifest>.jws`. It has the compact form with an empty payload: `<header>..<signature>`. The
 * payload is base64url-encoded for signing; `b64` (RFC 7797) is not supported.
 *
 * The header has `alg`, and may have `kid` and `typ`. Any other member makes the signature invalid, because it could
 * change how the signature is to be verified. No key is ever taken from the header.
 */

import { FlattenedSign, flattenedVerify } from 'jose'
import { digest as digestOf } from '../../../base/crypto/digest.js'
import { readStrictly, StrictJsonError } from '../../../base/rpc/strict-json.js'
import { type Manifest, ManifestError, readManifest } from '../manifest.js'
import { type Algorithm, algorithmOf, type PublisherKey, type SigningKey } from './keys.js'

/** A manifest, and what is needed to verify it. */
export interface Verifying {
  bytes: Uint8Array
  /** The document at `<address>.jws`; undefined if there is none. */
  jws: Uint8Array | undefined
  /** The trusted keys of a publisher. */
  keysOf(publisher: string): readonly PublisherKey[]
  /** The newest trusted document of the publisher at this address. */
  lastOf(publisher: string): DocumentVersion | undefined
  /** Milliseconds since 1970. */
  now: number
}

/** A version of a publisher's document. */
export interface DocumentVersion {
  serial: number
  /** Digest of the bytes. */
  digest: string
}

/** The result of a verification. */
export type Verification =
  | ({ trusted: true; manifest: Manifest; publisher: string; keyId: string; expires: number } & DocumentVersion)
  /** The manifest, if it could be read: for people, and for approvals. */
  | { trusted: false; manifest: Manifest | undefined; reason: Untrusted; message: string }

/** Why a manifest is not trusted. */
export type Untrusted =
  /** It is invalid. */
  | 'malformed'
  /** There is no signature, or not a detached JWS. */
  | 'unsigned'
  /** The signature is of an unsupported kind. */
  | 'header'
  | 'unknown-publisher'
  | 'unknown-key'
  /** It does not match these bytes, or was made with another key. */
  | 'signature'
  /** A newer document of the publisher was seen here, or another one with the same serial. */
  | 'rolled-back'
  | 'not-yet-valid'
  | 'expired'

const MAX_JWS_BYTES = 4 * 1024
/** Tolerated difference of clocks, in milliseconds. */
export const LEEWAY = 60_000
const HEADER_MEMBERS: readonly string[] = ['alg', 'kid', 'typ']
const SHAPE = /^([\w-]+)\.\.([\w-]+)\r?\n?$/

/** Verifies that a manifest is its publisher's. Use only the manifest in the result. */
export async function verifyManifest({ bytes, jws, keysOf, lastOf, now }: Verifying): Promise<Verification> {
  let manifest: Manifest | undefined
  try {
    manifest = readManifest(bytes)
    if (jws === undefined) throw new Distrust('unsigned', 'it is not signed')
    const { publisher, serial, issued, expires } = manifest
    const signature = readSignature(jws)
    const keyId = await signerOf(bytes, signature, candidates(signature, publisher, keysOf(publisher)))
    const digest = digestOf(bytes)
    checkIssue({ serial, digest }, lastOf(publisher))
    if (issued > now + LEEWAY) throw new Distrust('not-yet-valid', `it is valid from ${dayOf(issued)}`)
    if (expires < now - LEEWAY) throw new Distrust('expired', `it expired on ${dayOf(expires)}`)
    return { trusted: true, manifest, publisher, keyId, serial, expires, digest }
  } catch (error) {
    if (error instanceof Distrust) return { trusted: false, manifest, reason: error.reason, message: error.message }
    if (error instanceof ManifestError) return { trusted: false, manifest, reason: 'malformed', message: error.message }
    throw error
  }
}

/** The text of the signature document of a manifest. */
export async function signManifest(bytes: Uint8Array, { id, algorithm, key }: SigningKey): Promise<string> {
  const signed = await new FlattenedSign(bytes).setProtectedHeader({ alg: algorithm, kid: id }).sign(key)
  return `${signed.protected}..${signed.signature}`
}

class Distrust extends Error {
  readonly reason: Untrusted

  constructor(reason: Untrusted, message: string) {
    super(message)
    this.reason = reason
  }
}

interface Signature {
  protected: string
  signature: string
  alg: Algorithm
  kid: string | undefined
}

function readSignature(jws: Uint8Array): Signature {
  const wrong = (what: string) => new Distrust('header', `its signature ${what}`)
  const text = jws.length > MAX_JWS_BYTES ? '' : Buffer.from(jws).toString('latin1')
  const [, encoded = '', signature = ''] = SHAPE.exec(text) ?? []
  // It may be an error page of the host.
  if (encoded === '') throw new Distrust('unsigned', 'its .jws document is not a detached JWS: <header>..<signature>')
  // Only the canonical encoding is accepted.
  if (![encoded, signature].every((part) => encode(decode(part)) === part)) throw wrong('is not in canonical base64url')
  const header = headerOf(decode(encoded))
  if (typeof header !== 'object' || header === null || Array.isArray(header)) throw wrong('has no header')
  const other = Object.keys(header).find((name) => !HEADER_MEMBERS.includes(name))
  if (other !== undefined) throw wrong(`has the unsupported header member ${JSON.stringify(other.slice(0, 32))}`)
  if (Object.values(header).some((value) => typeof value !== 'string'))
    throw wrong('has header members that are not strings')
  const { alg, kid } = header as Partial<Record<string, string>>
  if (!isAlgorithm(alg)) throw wrong('uses an algorithm other than EdDSA and ES256')
  return { protected: encoded, signature, alg, kid }
}

function isAlgorithm(alg: string | undefined): alg is Algorithm {
  return alg === 'EdDSA' || alg === 'ES256'
}

const decode = (text: string) => Buffer.from(text, 'base64url')
const encode = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

function headerOf(bytes: Uint8Array): unknown {
  try {
    return readStrictly(bytes, { maxBytes: MAX_JWS_BYTES, maxDepth: 2 })
  } catch (error) {
    if (error instanceof StrictJsonError) throw new Distrust('header', 'the header of its signature is not valid JSON')
    throw error
  }
}

/**
 * The keys that may have made a signature: those of the publisher with its algorithm, and with its key id if it names
 * one.
 */
function candidates({ alg, kid }: Signature, publisher: string, keys: readonly PublisherKey[]) {
  if (keys.length === 0) throw new Distrust('unknown-publisher', `no key of ${publisher} is in the trust store`)
  const fitting = keys.filter(({ id, jwk }) => algorithmOf(jwk) === alg && (kid === undefined || kid === id))
  if (fitting.length === 0) throw new Distrust('unknown-key', `it is signed with a key that is not one of ${publisher}`)
  return fitting
}

async function signerOf(payload: Uint8Array, signature: Signature, keys: readonly PublisherKey[]): Promise<string> {
  const { alg } = signature
  const jws = { protected: signature.protected, signature: signature.signature, payload: encode(payload) }
  for (const { id, jwk } of keys) {
    const verified = await flattenedVerify(jws, { ...jwk, alg }, { algorithms: [alg] }).catch(() => undefined)
    if (verified) return id
  }
  throw new Distrust('signature', 'its signature does not match its content and the keys of its publisher')
}

function checkIssue({ serial, digest }: DocumentVersion, last: DocumentVersion | undefined): void {
  if (last === undefined || serial > last.serial || (serial === last.serial && digest === last.digest)) return
  const how =
    serial === last.serial ? 'with the same serial' : `with the higher serial ${last.serial} (this one has ${serial})`
  throw new Distrust('rolled-back', `another document ${how} was seen before`)
}

function dayOf(moment: number): string {
  return new Date(moment).toISOString()
}
