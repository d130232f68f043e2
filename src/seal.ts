/**
 * Seals what a client keeps for us (AES-256-GCM): it can be neither read nor changed, and says by itself whether it is
 * ours, whose it is and how long it holds.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'

export interface SealKey {
  /** Names the key in what it has sealed. */
  id: string
  /** 32 bytes. */
  secret: Uint8Array
}

const CIPHER = 'aes-256-gcm'
const VERSION = 'b1'
const ID_BYTES = 4
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MAX_LENGTH = 2_048

export class Sealer {
  readonly #keys: readonly SealKey[]
  readonly #purpose: Uint8Array

  /** The first key seals, all of them open. `purpose` keeps what is sealed for one thing from being used for another. */
  constructor(keys: readonly SealKey[], purpose: string) {
    this.#keys = keys
    this.#purpose = new TextEncoder().encode(`mcp-bridge/${purpose}/1`)
  }

  /** The fields as a text that means nothing to anybody else. */
  seal(fields: Readonly<Record<string, string | number>>): string {
    const [key] = this.#keys as [SealKey]
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, key.secret, nonce).setAAD(this.#purpose)
    const sealed = [nonce, cipher.update(JSON.stringify(fields), 'utf8'), cipher.final(), cipher.getAuthTag()]
    return `${VERSION}.${key.id}.${Buffer.concat(sealed).toString('base64url')}`
  }

  /** The fields of a text, or undefined where it is not exactly one that was sealed with one of the keys. */
  open(text: string): Record<string, unknown> | undefined {
    const [version, id, encoded, ...more] = text.split('.')
    const key = this.#keys.find((known) => known.id === id)
    if (text.length > MAX_LENGTH || version !== VERSION || !key || encoded === undefined || more.length > 0)
      return undefined
    const bytes = Buffer.from(encoded, 'base64url')
    // Base64 can be written in ways that decode to the same: only our own is taken.
    if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== encoded) return undefined
    try {
      const decipher = createDecipheriv(CIPHER, key.secret, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(this.#purpose).setAuthTag(bytes.subarray(-TAG_BYTES))
      const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      return JSON.parse(opened.toString('utf8')) as Record<string, unknown>
    } catch {
      return undefined
    }
  }

  /** The same for bytes. What they are about has to be known to whoever opens them: elsewhere they mean nothing. */
  sealBytes(bytes: Uint8Array, about: string): Buffer {
    const [key] = this.#keys as [SealKey]
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, key.secret, nonce).setAAD(this.#aboutOf(about))
    return Buffer.concat([Buffer.from(key.id, 'hex'), nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }

  /** The bytes, or undefined where they are not exactly what was sealed about this with one of the keys. */
  openBytes(sealed: Buffer, about: string): Buffer | undefined {
    const id = sealed.toString('hex', 0, ID_BYTES)
    const key = this.#keys.find((known) => known.id === id)
    if (!key || sealed.length < ID_BYTES + NONCE_BYTES + TAG_BYTES) return undefined
    try {
      const nonce = sealed.subarray(ID_BYTES, ID_BYTES + NONCE_BYTES)
      const decipher = createDecipheriv(CIPHER, key.secret, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(this.#aboutOf(about)).setAuthTag(sealed.subarray(-TAG_BYTES))
      return Buffer.concat([decipher.update(sealed.subarray(ID_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    } catch {
      return undefined
    }
  }

  #aboutOf(about: string): Uint8Array {
    return Buffer.concat([this.#purpose, Buffer.from(`/${about}`)])
  }

  /** Stands for a text that is not to be told. */
  hash(text: string): string {
    return hashWith(this.#keys[0] as SealKey, text)
  }

  /** Whether a hash stands for this text, by any of the keys. */
  standsFor(hash: unknown, text: string): boolean {
    return this.#keys.some((key) => hashWith(key, text) === hash)
  }
}

function hashWith({ secret }: SealKey, text: string): string {
  return createHmac('sha256', secret).update(text).digest('base64url').slice(0, 22)
}

/** A key of our own, for as long as the process lives. */
export function newKey(): SealKey {
  return { id: randomBytes(4).toString('hex'), secret: randomBytes(32) }
}

/** A key that is made of a secret text, the same wherever the text is the same. */
export function keyOf(secret: string): SealKey {
  const bytes = (what: string) => createHmac('sha256', secret).update(what).digest()
  return { id: bytes('name').toString('hex').slice(0, 8), secret: bytes('key') }
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

export function randomId(): string {
  return randomBytes(16).toString('base64url')
}
