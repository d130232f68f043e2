/**
 * Signatures of manifests: a detached JWS (RFC 7515, appendix F) over the bytes of the document, in a document of its own
 * beside it, `<address of the manifest>.jws`. It is in the compact form, with nothing between the dots:
 * `<header>..<signature>`. The payload is encoded as usual; `b64` (RFC 7797) is not spoken.
 *
 * Its header says `alg` and may say `kid` and `typ`. Anything else makes it invalid: a header tells how to check a signature,
 * and what is not understood could tell it otherwise. No key is ever taken from it.
 */
import { createHash } from 'node:crypto'
import { FlattenedSign, flattenedVerify } from 'jose'
import { readStrictly, StrictJsonError } from '../../rpc/strict-json.js'
import { type Manifest, ManifestError, readManifest } from '../manifest.js'
import { type Algorithm, algorithmOf, type PublisherKey, type SigningKey } from './keys.js'

export interface Verifying {
  bytes: Uint8Array
  /** What stands beside the manifest; undefined where nothing does. */
  jws: Uint8Array | undefined
  /** The keys of a publisher, and of nobody else. */
  keysOf(publisher: string): readonly PublisherKey[]
  /** The newest document that has been trusted of the publisher at this address. */
  lastOf(publisher: string): Issue | undefined
  /** Milliseconds since 1970. */
  now: number
}

/** Which document of a publisher it is. */
export interface Issue {
  serial: number
  /** Of its bytes. */
  digest: string
}

export type Verification =
  | ({ trusted: true; manifest: Manifest; publisher: string; keyId: string; expires: number } & Issue)
  /** The manifest is there where it could be read: for people, and for what a person approves. */
  | { trusted: false; manifest: Manifest | undefined; reason: Untrusted; message: string }

export type Untrusted =
  /** Not a manifest. */
  | 'malformed'
  /** Nothing stands beside it, or nothing that is a detached JWS. */
  | 'unsigned'
  /** The signature is none of the kind that is understood. */
  | 'header'
  | 'unknown-publisher'
  | 'unknown-key'
  /** It is not over these bytes, or by another key. */
  | 'signature'
  /** A newer document of the publisher has been seen here, or another one with the same serial. */
  | 'rolled-back'
  | 'not-yet-valid'
  | 'expired'

const MAX_JWS_BYTES = 4 * 1024
/** Milliseconds by which clocks may differ. */
const LEEWAY = 60_000
const HEADER_MEMBERS: readonly string[] = ['alg', 'kid', 'typ']
const SHAPE = /^([\w-]+)\.\.([\w-]+)\r?\n?$/

/** Says whether a manifest is its publisher's. What is used afterwards has to be the manifest that comes back. */
export async function verifyManifest({ bytes, jws, keysOf, lastOf, now }: Verifying): Promise<Verification> {
  let manifest: Manifest | undefined
  try {
    manifest = readManifest(bytes)
    if (jws === undefined) throw new Distrust('unsigned', 'it is not signed')
    const { publisher, serial, issued, expires } = manifest
    const signature = readSignature(jws)
    const keyId = await signerOf(bytes, signature, candidates(signature, publisher, keysOf(publisher)))
    const digest = digestOfBytes(bytes)
    checkIssue({ serial, digest }, lastOf(publisher))
    if (issued > now + LEEWAY) throw new Distrust('not-yet-valid', `it holds from ${dayOf(issued)} on`)
    if (expires < now - LEEWAY) throw new Distrust('expired', `it held until ${dayOf(expires)}`)
    return { trusted: true, manifest, publisher, keyId, serial, expires, digest }
  } catch (error) {
    if (error instanceof Distrust) return { trusted: false, manifest, reason: error.reason, message: error.message }
    if (error instanceof ManifestError) return { trusted: false, manifest, reason: 'malformed', message: error.message }
    throw error
  }
}

/** The text of the document that belongs beside a manifest. */
export async function signManifest(bytes: Uint8Array, { id, algorithm, key }: SigningKey): Promise<string> {
  const signed = await new FlattenedSign(bytes).setProtectedHeader({ alg: algorithm, kid: id }).sign(key)
  return `${signed.protected}..${signed.signature}`
}

export function digestOfBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url')
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
  // It may be a page that says in words that there is nothing.
  if (encoded === '') throw new Distrust('unsigned', 'what stands beside it is no detached JWS: <header>..<signature>')
  // Of several ways to encode the same bytes only one is taken.
  if (![encoded, signature].every((part) => encode(decode(part)) === part))
    throw wrong('is not encoded as it has to be')
  const header = headerOf(decode(encoded))
  if (typeof header !== 'object' || header === null || Array.isArray(header)) throw wrong('has no header')
  const other = Object.keys(header).find((name) => !HEADER_MEMBERS.includes(name))
  if (other !== undefined)
    throw wrong(`says ${JSON.stringify(other.slice(0, 32))} in its header, which is not accepted`)
  if (Object.values(header).some((value) => typeof value !== 'string')) throw wrong('has a header of the wrong types')
  const { alg, kid } = header as Partial<Record<string, string>>
  if (!isAlgorithm(alg)) throw wrong('is made by an algorithm other than EdDSA and ES256')
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
    if (error instanceof StrictJsonError) throw new Distrust('header', 'its signature has a header that is no JSON')
    throw error
  }
}

/** The keys that may have made a signature: those of the publisher, and of these the one that is named. */
function candidates({ alg, kid }: Signature, publisher: string, keys: readonly PublisherKey[]) {
  if (keys.length === 0) throw new Distrust('unknown-publisher', `no key of ${publisher} is in the trust store`)
  const fitting = keys.filter(({ id, jwk }) => algorithmOf(jwk) === alg && (kid === undefined || kid === id))
  if (fitting.length === 0)
    throw new Distrust('unknown-key', `it is signed with another key than those of ${publisher}`)
  return fitting
}

async function signerOf(payload: Uint8Array, signature: Signature, keys: readonly PublisherKey[]): Promise<string> {
  const { alg } = signature
  const jws = { protected: signature.protected, signature: signature.signature, payload: encode(payload) }
  for (const { id, jwk } of keys) {
    const verified = await flattenedVerify(jws, { ...jwk, alg }, { algorithms: [alg] }).catch(() => undefined)
    if (verified) return id
  }
  throw new Distrust('signature', 'its signature is not one of these bytes by a key of its publisher')
}

function checkIssue({ serial, digest }: Issue, last: Issue | undefined): void {
  if (last === undefined || serial > last.serial || (serial === last.serial && digest === last.digest)) return
  const how = serial === last.serial ? 'with the same serial' : `with the serial ${last.serial}, and this is ${serial}`
  throw new Distrust('rolled-back', `another one ${how} has been seen before`)
}

function dayOf(moment: number): string {
  return new Date(moment).toISOString()
}
