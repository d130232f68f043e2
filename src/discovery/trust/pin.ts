/**
 * Pins of origins: the public key that a server has to have, and one more for when it changes. Everything else is checked
 * as well: the chain, the names and the dates of the certificate. It is done on the very socket that is used, for each one.
 */
import { createHash, X509Certificate } from 'node:crypto'
import {
  type ConnectionOptions,
  checkServerIdentity,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type TLSSocket,
} from 'node:tls'
import { buildConnector } from 'undici'

/** A connection is not the one to its origin that the pins say. */
export class PinError extends Error {
  override name = 'PinError'
  readonly code = 'ERR_PIN_MISMATCH'
}

/** What a certificate says, for people who are to decide whether to pin its key. */
export interface Certificate {
  pin: string
  subject: string
  issuer: string
  names: string
  /** As the certificate says it. */
  validTo: string
}

export interface PinnedOptions extends Pick<ConnectionOptions, 'ca' | 'lookup'> {
  /** Milliseconds until a connection has to be there. */
  timeout?: number
}

export const MAX_PINS = 4
const PIN = /^[A-Za-z0-9+/]{43}=$/

/** SHA-256 of the public key in a certificate (its SubjectPublicKeyInfo), in base64: as in RFC 7469, and as openssl makes it. */
export function pinOf(certificate: Uint8Array): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(key).digest('base64')
}

export function isPin(text: string): boolean {
  return PIN.test(text) && Buffer.from(text, 'base64').toString('base64') === text
}

/** Pins are of a scheme, a host and a port. Throws a TypeError where an address has no TLS, and so nothing to pin. */
export function originToPin(url: string): string {
  const { protocol, origin } = new URL(url)
  if (protocol !== 'https:') throw new TypeError(`${origin} is not reached over TLS, so that there is no key to pin`)
  return origin
}

/** For `checkServerIdentity` of node:tls: the certificate has to be for the host, and its key one of these. */
export function checkPinned(pins: readonly string[]) {
  return (host: string, certificate: PeerCertificate): Error | undefined =>
    checkServerIdentity(host, certificate) ?? mismatch(host, certificate, pins)
}

/**
 * Looks at a connection before anything is sent through it. Throws a PinError unless it is to the host, verified in full,
 * and with a key of these. A session that is resumed shows no certificate, and is not taken.
 */
export function assertPinned(socket: TLSSocket, host: string, pins: readonly string[]): void {
  if (!socket.encrypted || !socket.authorized || socket.isSessionReused())
    throw new PinError(`The connection to ${host} has not been verified, as one to a pinned origin has to be`)
  const problem = checkPinned(pins)(host, socket.getPeerCertificate(true))
  if (problem) throw problem
}

/**
 * Connects a dispatcher of undici to one origin, and to no other. Each set of pins wants a dispatcher of its own, so that no
 * connection is used again that was made under another one. Sessions are not resumed: Node does not check who it is then.
 */
export function pinnedConnector(
  origin: string,
  pins: readonly string[],
  options: PinnedOptions = {},
): buildConnector.connector {
  const { hostname, port: given } = new URL(originToPin(origin))
  const [host, port] = [hostname.replace(/^\[|\]$/g, ''), given === '' ? 443 : Number(given)]
  const check = checkPinned(pins)
  const connector = buildConnector({
    ...options,
    allowH2: false,
    maxCachedSessions: 0,
    rejectUnauthorized: true,
    // Whatever name was asked for on the way: it is the origin that is pinned.
    checkServerIdentity: (_name: string, certificate: PeerCertificate) => check(host, certificate),
  })
  return (target, done) => {
    const elsewhere =
      target.protocol !== 'https:' ||
      target.hostname.replace(/^\[|\]$/g, '') !== host ||
      Number(target.port || 443) !== port ||
      target.httpSocket !== undefined
    if (elsewhere) return done(new PinError(`${target.protocol}//${target.hostname} is not the origin ${origin}`), null)
    connector(target, (...[error, socket]) => {
      if (error) return done(error, null)
      try {
        assertPinned(socket as TLSSocket, host, pins)
      } catch (problem) {
        socket?.destroy()
        return done(problem as Error, null)
      }
      done(null, socket as TLSSocket)
    })
  }
}

/** What the certificate of an origin says, as far as whoever connects is content with it. */
export function lookAt(origin: string, connector: buildConnector.connector): Promise<Certificate> {
  const { protocol, hostname, port } = new URL(originToPin(origin))
  return new Promise((resolve, reject) => {
    connector({ protocol, hostname, port }, (...[error, socket]) => {
      if (error) return reject(error)
      resolve(describe((socket as TLSSocket).getPeerCertificate(true)))
      socket?.destroy()
    })
  })
}

function describe({ raw, subject, issuer, subjectaltname = '', valid_to }: DetailedPeerCertificate): Certificate {
  const [of, by] = [subject, issuer].map(({ CN, O }) => String(CN ?? O ?? ''))
  return { pin: pinOf(raw), subject: of ?? '', issuer: by ?? '', names: subjectaltname, validTo: valid_to }
}

function mismatch(host: string, { raw }: PeerCertificate, pins: readonly string[]): PinError | undefined {
  const pin = (raw as Buffer | undefined) && pinOf(raw)
  if (pin !== undefined && pins.includes(pin)) return undefined
  return new PinError(`${host} shows a key that is not pinned (${pin ?? 'none'}): it may be somebody else`)
}
