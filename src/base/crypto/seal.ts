/**
 * Encrypts state that clients or Redis keep for the bridge (AES-256-GCM). It can be neither read nor changed outside.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { distinct } from './digest.js'

/** A key to seal with. */
export interface SealKey {
  /** Identifies the key in sealed texts. */
  id: string
  /** 32 bytes. */
  secret: Uint8Array
}

const CIPHER = 'aes-256-gcm'
const VERSION = 'b1'
const ID_BYTES = 4
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MAC_BYTES = 32
/** Longer texts are refused before they are looked at; as a JSON string, each character can be an escape of six. */
const MAX_SEALED = 2_048
const MAX_JSON = 6 * MAX_SEALED + 2

/** Seals and opens texts and bytes. */
export class Sealer {
  readonly #given: readonly SealKey[]
  #own: readonly SealKey[] | undefined
  readonly #purpose: Uint8Array

  /**
   * The first key seals; all of them open. Without keys, there is a random one for as long as the process runs. Texts sealed
   * for one `purpose` cannot be opened for another.
   */
  constructor(keys: readonly SealKey[], purpose: string) {
    this.#given = keys
    this.#purpose = new TextEncoder().encode(`mcp-bridge/${purpose}/1`)
  }

  /** Seals the fields in a text. */
  seal(fields: Readonly<Record<string, string | number>>): string {
    const [key] = this.#keys as [SealKey]
    const sealed = encrypted(key, Buffer.from(JSON.stringify(fields)), this.#purpose)
    return `${VERSION}.${key.id}.${sealed.toString('base64url')}`
  }

  /** The fields in a sealed text; undefined if it was not sealed with one of the keys. */
  open(text: string): Record<string, unknown> | undefined {
    if (text.length > MAX_SEALED) return undefined
    const [version, id, encoded, ...more] = text.split('.')
    const key = this.#keys.find((known) => known.id === id)
    if (version !== VERSION || !key || encoded === undefined || more.length > 0) return undefined
    const bytes = Buffer.from(encoded, 'base64url')
    // Base64 has several spellings of the same bytes: only the canonical one is accepted.
    if (bytes.toString('base64url') !== encoded) return undefined
    const opened = decrypted(key, bytes, this.#purpose)
    return opened && (JSON.parse(opened.toString('utf8')) as Record<string, unknown>)
  }

  /** As `open`, for the JSON text of any value. */
  openJson(json: string): Record<string, unknown> | undefined {
    return json.startsWith('"') && json.length <= MAX_JSON ? this.open(JSON.parse(json) as string) : undefined
  }

  /** Seals bytes. They can be opened only with the same `about`. */
  sealBytes(bytes: Uint8Array, about: string): Buffer {
    const [key] = this.#keys as [SealKey]
    return Buffer.concat([Buffer.from(key.id, 'hex'), encrypted(key, bytes, this.#aboutOf(about))])
  }

  /** The bytes; undefined if they were not sealed with one of the keys and this `about`. */
  openBytes(sealed: Buffer, about: string): Buffer | undefined {
    const id = sealed.toString('hex', 0, ID_BYTES)
    const key = this.#keys.find((known) => known.id === id)
    return key && decrypted(key, sealed.subarray(ID_BYTES), this.#aboutOf(about))
  }

  get #keys(): readonly SealKey[] {
    if (this.#given.length > 0) return this.#given
    // Made when it is needed: a program behind the bridge starts before that.
    this.#own ??= [newKey()]
    return this.#own
  }

  #aboutOf(about: string): Uint8Array {
    return Buffer.concat([this.#purpose, Buffer.from(`/${about}`)])
  }

  /** Signs a text for the purpose (HMAC-SHA256). */
  sign(text: string): string {
    const [key] = this.#keys as [SealKey]
    return `${key.id}.${this.#mac(key, text).toString('base64url')}`
  }

  /** Whether a text was signed for the purpose with one of the keys. */
  isSigned(signature: string, text: string): boolean {
    if (signature.length > MAX_SEALED) return false
    const [id, encoded = ''] = signature.split('.')
    const key = this.#keys.find((known) => known.id === id)
    const given = Buffer.from(encoded, 'base64url')
    return key !== undefined && given.length === MAC_BYTES && timingSafeEqual(given, this.#mac(key, text))
  }

  /** A secret of the key with this id, or of the first key; undefined if there is no such key. */
  secret(id?: string): { id: string; secret: Buffer } | undefined {
    const key = id === undefined ? this.#keys[0] : this.#keys.find((known) => known.id === id)
    return key && { id: key.id, secret: this.#mac(key, 'secret') }
  }

  #mac({ secret }: SealKey, text: string): Buffer {
    return createHmac('sha256', secret)
      .update(this.#purpose)
      .update(distinct(`/signature/${text}`))
      .digest()
  }

  /** A keyed hash that stands for a secret text. */
  hash(text: string): string {
    return hashWith(this.#keys[0] as SealKey, text)
  }

  /** Whether a hash stands for this text, by any of the keys. */
  standsFor(hash: unknown, text: string): boolean {
    return this.#keys.some((key) => hashWith(key, text) === hash)
  }
}

/** Nonce, encrypted bytes and tag. `about` is authenticated, but not part of them. */
function encrypted({ secret }: SealKey, bytes: Uint8Array, about: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, secret, nonce).setAAD(about)
  return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** The encrypted bytes; undefined if they were changed, or encrypted with another key or about something else. */
function decrypted({ secret }: SealKey, sealed: Buffer, about: Uint8Array): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined
  try {
    const decipher = createDecipheriv(CIPHER, secret, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAAD(about).setAuthTag(sealed.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch {
    return undefined
  }
}

function hashWith({ secret }: SealKey, text: string): string {
  return createHmac('sha256', secret).update(distinct(text)).digest('base64url').slice(0, 22)
}

/** A random key, for as long as the process runs. */
export function newKey(): SealKey {
  return { id: randomBytes(ID_BYTES).toString('hex'), secret: randomBytes(32) }
}

/** A key derived from a secret text; equal for equal texts. */
export function keyOf(secret: string): SealKey {
  const bytes = (what: string) => createHmac('sha256', secret).update(what).digest()
  return {
    id: bytes('name')
      .toString('hex')
      .slice(0, 2 * ID_BYTES),
    secret: bytes('key'),
  }
}

/** An id that cannot be guessed. */
export function randomId(): string {
  return randomBytes(16).toString('base64url')
}
