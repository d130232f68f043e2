/** A certificate authority of the test's own, and servers that show its certificates. */
import './reflect.js'
import { createHash, webcrypto } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, isIP } from 'node:net'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'
import type { Test } from 'tap'
import { listenUntilEnd } from './listen-until-end.js'

export type Keys = webcrypto.CryptoKeyPair

/** What a TLS server shows, as `node:tls` and `node:https` take it. */
export interface ServerOptions {
  key: string
  cert: string
  /** SHA-256 of the public key as it stands in the certificate, in base64: what is pinned. */
  pin: string
}

export interface CertificateOptions {
  notBefore?: Date
  notAfter?: Date
  /** Of an earlier certificate, whose pin this one has, too. */
  keys?: Keys
  /** Signed with its own key, and by nobody else. */
  selfSigned?: boolean
  /** For the other side: what a client shows. */
  client?: boolean
}

export interface Ca {
  /** The certificate of the authority: what a client has to know to trust the others. */
  readonly cert: string
  /** A certificate for these names and addresses. */
  serverOptions(names: readonly string[], options?: CertificateOptions): Promise<ServerOptions>
}

const SIGNED_WITH = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const DAY = 86_400_000

let serial = 0
const nextSerial = () => (++serial).toString(16).padStart(16, '0')

export function makeKeys(): Promise<Keys> {
  return webcrypto.subtle.generateKey(SIGNED_WITH, true, ['sign', 'verify']) as Promise<Keys>
}

export async function makeCa(name = 'Authority of a test'): Promise<Ca> {
  const own = await makeKeys()
  const validity = { notBefore: new Date(Date.now() - DAY), notAfter: new Date(Date.now() + DAY) }
  const root = await X509CertificateGenerator.createSelfSigned({
    serialNumber: nextSerial(),
    name: `CN=${name}`,
    ...validity,
    signingAlgorithm: SIGNED_WITH,
    keys: own,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(own.publicKey),
    ],
  })

  const serverOptions = async (names: readonly string[], options: CertificateOptions = {}): Promise<ServerOptions> => {
    const { keys = await makeKeys(), selfSigned = false, client = false, ...dates } = options
    const certificate = await X509CertificateGenerator.create({
      serialNumber: nextSerial(),
      subject: `CN=${names[0] ?? 'nobody'}`,
      issuer: selfSigned ? `CN=${names[0] ?? 'nobody'}` : root.subject,
      ...validity,
      ...dates,
      publicKey: keys.publicKey,
      signingKey: selfSigned ? keys.privateKey : own.privateKey,
      signingAlgorithm: SIGNED_WITH,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([client ? ExtendedKeyUsage.clientAuth : ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension(
          names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
        ),
        ...(selfSigned ? [] : [await AuthorityKeyIdentifierExtension.create(own.publicKey)]),
      ],
    })
    const [pkcs8, spki] = await Promise.all([
      webcrypto.subtle.exportKey('pkcs8', keys.privateKey),
      webcrypto.subtle.exportKey('spki', keys.publicKey),
    ])
    return {
      key: pem('PRIVATE KEY', pkcs8),
      cert: certificate.toString('pem'),
      pin: createHash('sha256').update(Buffer.from(spki)).digest('base64'),
    }
  }

  return { cert: root.toString('pem'), serverOptions }
}

export interface TlsServer {
  readonly port: number
  /** Connections that have been accepted, whatever became of them. */
  readonly accepted: number
  /** Paths that have been asked for. */
  readonly asked: readonly string[]
}

/** An HTTPS server on the loopback, until the test ends. */
export async function serveTls(
  t: Test,
  { key, cert }: Pick<ServerOptions, 'key' | 'cert'>,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  {
    clientCa,
    optional = false,
  }: {
    /** Whose certificates clients have to show. */
    clientCa?: string
    /** Clients without one are served too. */
    optional?: boolean
  } = {},
): Promise<TlsServer> {
  let accepted = 0
  const asked: string[] = []
  const server = createServer(
    { key, cert, ...(clientCa && { ca: clientCa, requestCert: true, rejectUnauthorized: !optional }) },
    (request, response) => {
      asked.push(request.url ?? '')
      answer(request, response)
    },
  )
  server.on('connection', () => accepted++)
  // A client that does not like the certificate hangs up in the middle of the handshake.
  server.on('tlsClientError', () => {})
  await listenUntilEnd(t, server)
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted
    },
    asked,
  }
}

function pem(label: string, der: ArrayBuffer): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
