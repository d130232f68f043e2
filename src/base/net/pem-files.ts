/** Certificates and keys in PEM files, which are read again when they change. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import { codeOf } from './failure.js'
import { readNamed } from './readable.js'

/** Paths of PEM files. */
export interface PemPaths {
  /** Certificates of authorities. */
  ca?: string | undefined
  /** A certificate and those that lead to its authority, and its private key. */
  cert?: string | undefined
  key?: string | undefined
}

/** The content of PEM files, as `node:tls` takes it. */
export interface Pem {
  ca?: string
  cert?: string
  key?: string
}

/** A file that cannot be used. The message continues a sentence that begins with the name of the option. */
export class PemError extends Error {
  override name = 'PemError'
  readonly option: keyof PemPaths

  constructor(option: keyof PemPaths, message: string) {
    super(message)
    this.option = option
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs
/** A byte order mark, as some Windows editors write it. */
const MARK = /^\xEF\xBB\xBF/
const BEGIN = '-----BEGIN'
/** How ASN.1 of this length begins in binary. */
const DER = /^\x30[\x82\x83]/

/**
 * Reads and checks the files, also when the certificate expires, or one of those that lead to its authority; undefined without one.
 * Throws a PemError.
 */
function readDated({ ca, cert, key }: PemPaths): { pem: Pem; expiresAt?: number } {
  const read: Pem = {}
  if (ca !== undefined) read.ca = certificates('ca', ca).text
  if (cert === undefined || key === undefined) return { pem: read }
  const { text, first, expiresAt } = certificates('cert', cert)
  const secret = contentOf('key', key)
  if (!first.checkPrivateKey(privateKey(secret, key)))
    throw new PemError('key', `${key} is not the private key of the certificate in ${cert}`)
  return { pem: { ...read, cert: text, key: secret }, expiresAt }
}

/** PEM files in use. If changed files are unusable, the previous content stays in use. */
export class PemFiles {
  readonly #paths: PemPaths
  readonly #onProblem: (error: PemError) => void
  #stamp: string
  #read: { pem: Pem; expiresAt?: number }

  /** Throws a PemError. `onProblem` is called when files have become unusable. */
  constructor(paths: PemPaths, onProblem: (error: PemError) => void = () => {}) {
    this.#paths = paths
    this.#onProblem = onProblem
    this.#stamp = this.#look()
    this.#read = readDated(paths)
  }

  /** The content of the files now: the same object as long as they do not change. */
  get current(): Pem {
    return this.#now().pem
  }

  /** When the certificate in use expires, in milliseconds of the time of day; undefined without one. */
  get expiresAt(): number | undefined {
    return this.#now().expiresAt
  }

  #now(): { pem: Pem; expiresAt?: number } {
    const stamp = this.#look()
    if (stamp === this.#stamp) return this.#read
    this.#stamp = stamp
    try {
      this.#read = readDated(this.#paths)
    } catch (error) {
      if (!(error instanceof PemError)) throw error
      this.#onProblem(error)
    }
    return this.#read
  }

  /** Changes with any of the files, including the target of a symbolic link. */
  #look(): string {
    const { ca, cert, key } = this.#paths
    return [ca, cert, key].map((path) => (path === undefined ? '' : stampOf(path))).join(';')
  }
}

function stampOf(path: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path)
    return [dev, ino, size, mtimeMs, ctimeMs].join(' ')
  } catch {
    return 'absent'
  }
}

function contentOf(option: keyof PemPaths, path: string): string {
  // The content may be secret, so it is not repeated.
  if (path.includes(BEGIN)) throw new PemError(option, 'has to be the path of a PEM file, not its content')
  let text: string
  try {
    text = readNamed(path).toString('latin1').replace(MARK, '')
  } catch (error) {
    const code = codeOf(error) || String(error)
    throw new PemError(option, code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read (${code})`)
  }
  if (text.includes(BEGIN)) return text
  const how = option === 'key' ? 'pkey' : 'x509'
  throw new PemError(
    option,
    DER.test(text)
      ? `${path} is binary (DER): convert it with openssl ${how} -inform der -in ${path} -out ${option}.pem`
      : `${path} is not a PEM file`,
  )
}

function certificates(
  option: 'ca' | 'cert',
  path: string,
): { text: string; first: X509Certificate; expiresAt: number } {
  const text = contentOf(option, path)
  const [first, ...more] = text.match(CERTIFICATE) ?? []
  if (first === undefined) throw new PemError(option, `${path} has no certificate, but something else in PEM`)
  try {
    const own = new X509Certificate(first)
    const all = [own, ...more.map((one) => new X509Certificate(one))]
    return { text, first: own, expiresAt: Math.min(...all.map(({ validTo }) => Date.parse(validTo))) }
  } catch {
    throw new PemError(option, `${path} has a damaged certificate`)
  }
}

function privateKey(text: string, path: string) {
  if (/-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(text))
    throw new PemError('key', `${path} has a passphrase: remove it with openssl pkey -in ${path} -out key.pem`)
  try {
    return createPrivateKey(text)
  } catch {
    throw new PemError('key', `${path} has no private key`)
  }
}
