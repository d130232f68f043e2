/**
 * Pins of origins: the public key that a server must have, and one more for a change of keys. The chain, the names and
 * the dates of the certificate are verified too. Each connection is checked on its own socket.
 */

import { X509Certificate } from 'node:crypto'
import {
  type ConnectionOptions,
  checkServerIdentity,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type TLSSocket,
} from 'node:tls'
import type { buildConnector } from 'undici'
import { sha256 } from '../../../base/crypto/digest.js'
import type { Pem } from '../../../base/net/pem-files.js'
import type { ProxyOf } from '../../../base/net/proxy.js'
import { serverConnector } from '../../../base/net/server-connect.js'
import { withoutBrackets } from '../../../base/texts/parse-url.js'

/** A connection does not satisfy the pins of its origin. */
export class PinError extends Error {
  override name = 'PinError'
  readonly code = 'ERR_PIN_MISMATCH'
}

/** The contents of a certificate, for people who decide whether to pin its key. */
export interface CertificateSummary {
  pin: string
  subject: string
  issuer: string
  names: string
  /** In the format of the certificate. */
  validTo: string
}

/** How to connect. */
export interface PinnedOptions extends Pick<ConnectionOptions, 'ca' | 'lookup'> {
  /** The proxies; by default none. */
  proxyOf?: ProxyOf
  /** Certificates and key, in place of those of Node.js. */
  pem?: (() => Pem) | undefined
  /** Milliseconds until the connection must be established. */
  timeout?: number
}

/** Most pins of an origin. */
export const MAX_PINS = 4
const PIN = /^[A-Za-z0-9+/]{43}=$/

/** SHA-256 of the public key in a certificate (its SubjectPublicKeyInfo) in base64, as in RFC 7469. */
export function pinOf(certificate: Uint8Array): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })
  return sha256(key).toString('base64')
}

/** Whether a text has the form of a pin. */
export function isPin(text: string): boolean {
  return PIN.test(text) && Buffer.from(text, 'base64').toString('base64') === text
}

/**
 * The origin of an address: scheme, host and port. Throws a TypeError if it is not https, because then there is no key
 * to pin.
 */
export function originToPin(url: string): string {
  const { protocol, origin } = new URL(url)
  if (protocol !== 'https:') throw new TypeError(`${origin} is not reached over TLS, so it has no key to pin`)
  return origin
}

/** For `checkServerIdentity` of node:tls: the certificate must be for the host, and its key one of the pins. */
function checkPinned(pins: readonly string[]) {
  return (host: string, certificate: PeerCertificate): Error | undefined =>
    checkServerIdentity(host, certificate) ?? mismatch(host, certificate, pins)
}

/**
 * Checks a connection before anything is sent. Throws a PinError unless it is fully verified, to this host, with a
 * pinned key. A resumed session shows no certificate and is refused.
 */
export function assertPinned(socket: TLSSocket, host: string, pins: readonly string[]): void {
  if (!socket.encrypted || !socket.authorized || socket.isSessionReused())
    throw new PinError(`The connection to ${host} was not verified, which its pinned origin requires`)
  const problem = checkPinned(pins)(host, socket.getPeerCertificate(true))
  if (problem) throw problem
}

/**
 * A connector for an undici dispatcher that connects to one origin only. Each set of pins needs a dispatcher of its
 * own, so that connections made under other pins are not reused. Sessions are not resumed: Node does not verify the
 * server then.
 */
export function pinnedConnector(
  origin: string,
  pins: readonly string[],
  { proxyOf, pem, timeout, ...options }: PinnedOptions = {},
): buildConnector.connector {
  const { hostname, port: given } = new URL(originToPin(origin))
  const [host, port] = [withoutBrackets(hostname), given === '' ? 443 : Number(given)]
  const check = checkPinned(pins)
  const connector = serverConnector({
    proxy: proxyOf?.(new URL(origin)),
    pem,
    timeout,
    tls: {
      ...options,
      allowH2: false,
      maxCachedSessions: 0,
      rejectUnauthorized: true,
      // Checks the pinned origin's host, not the requested name.
      checkServerIdentity: (_name: string, certificate: PeerCertificate) => check(host, certificate),
    },
  })
  return (target, done) => {
    const isOther =
      target.protocol !== 'https:' ||
      withoutBrackets(target.hostname) !== host ||
      Number(target.port || 443) !== port ||
      target.httpSocket !== undefined
    if (isOther) return done(new PinError(`${target.protocol}//${target.hostname} is not the origin ${origin}`), null)
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

/** The certificate of an origin, over a connection that the connector accepts. */
export function lookAt(origin: string, connector: buildConnector.connector): Promise<CertificateSummary> {
  const { protocol, hostname, port } = new URL(originToPin(origin))
  return new Promise((resolve, reject) => {
    connector({ protocol, hostname, port }, (...[error, socket]) => {
      if (error) return reject(error)
      resolve(describe((socket as TLSSocket).getPeerCertificate(true)))
      socket?.destroy()
    })
  })
}

function describe({
  raw,
  subject,
  issuer,
  subjectaltname = '',
  valid_to,
}: DetailedPeerCertificate): CertificateSummary {
  const [of, by] = [subject, issuer].map(({ CN, O }) => String(CN ?? O ?? ''))
  return { pin: pinOf(raw), subject: of ?? '', issuer: by ?? '', names: subjectaltname, validTo: valid_to }
}

function mismatch(host: string, { raw }: PeerCertificate, pins: readonly string[]): PinError | undefined {
  const pin = (raw as Buffer | undefined) && pinOf(raw)
  if (pin !== undefined && pins.includes(pin)) return undefined
  return new PinError(`${host} shows a key that is not pinned (${pin ?? 'none'}): it may be another server`)
}
