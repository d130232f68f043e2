/** Why connections fail, by the codes of Node.js, OpenSSL and undici: what happened, and what the operator can do. */

export interface Cause {
  /** One sentence without its full stop. */
  what: string
  /** What to try next, for the operator. */
  next?: string
  /** It comes before the first byte of the request is on the wire. */
  notSent?: true
}

const TRUST = 'Name the certificate of its authority with NODE_EXTRA_CA_CERTS=/path/to/ca.pem.'
const CHECK_HOST = 'Check the host name, and whether this machine can resolve it.'
const CHECK_NETWORK = 'Check the address, and whether this machine can reach it.'

const UNTRUSTED: Cause = {
  what: "The server's certificate is from an authority that is not known here",
  next: TRUST,
  notSent: true,
}
const SELF_SIGNED: Cause = { what: "The server's certificate is self-signed", next: TRUST, notSent: true }
const CLOSED: Cause = {
  what: 'The connection was closed before the answer was complete',
  next: 'If the server speaks TLS on this port, its address begins with https://; else its own log may say why.',
}
const UNRESOLVED: Cause = { what: 'The host name cannot be resolved', next: CHECK_HOST, notSent: true }
const NO_TLS: Cause = {
  what: 'The server does not speak TLS on this port',
  next: 'Give its address with http:// instead of https://, or the port on which it speaks TLS.',
  notSent: true,
}

const CAUSES: Readonly<Record<string, Cause>> = {
  ECONNREFUSED: {
    what: 'Connection refused',
    next: 'Check whether the server is running, and on which port.',
    notSent: true,
  },
  ENOTFOUND: UNRESOLVED,
  EAI_AGAIN: UNRESOLVED,
  EHOSTUNREACH: { what: 'The host cannot be reached', next: CHECK_NETWORK, notSent: true },
  ENETUNREACH: { what: 'The network of the host cannot be reached', next: CHECK_NETWORK, notSent: true },
  UND_ERR_CONNECT_TIMEOUT: {
    what: 'The connection was not made in time',
    next: `${CHECK_NETWORK} With https://, the server may not speak TLS on this port.`,
    notSent: true,
  },
  UND_ERR_DESTROYED: { what: 'The connection was given up', notSent: true },
  UND_ERR_CLOSED: { what: 'The connection was given up', notSent: true },
  UND_ERR_SOCKET: CLOSED,
  ECONNRESET: CLOSED,
  EPROTO: NO_TLS,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  DEPTH_ZERO_SELF_SIGNED_CERT: SELF_SIGNED,
  SELF_SIGNED_CERT_IN_CHAIN: SELF_SIGNED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  CERT_HAS_EXPIRED: {
    what: "The server's certificate has expired",
    next: 'The server needs a new certificate; check the clock of this machine as well.',
    notSent: true,
  },
  CERT_NOT_YET_VALID: {
    what: "The server's certificate is not valid yet",
    next: 'Check the clocks of the server and of this machine.',
    notSent: true,
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    what: "The server's certificate is for another host name",
    next: 'Give the address with a name that stands in the certificate.',
    notSent: true,
  },
  HTTPParserError: {
    what: 'The answer is not HTTP',
    next: 'Check the port; if the server speaks TLS there, its address begins with https://.',
  },
}

/** What an error of a connection means; undefined where it is none that is known. */
export function causeOf(error: unknown): Cause | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error ? String(error.code) : ''
  if (Object.hasOwn(CAUSES, code)) return CAUSES[code]
  if (Object.hasOwn(CAUSES, error.name)) return CAUSES[error.name]
  if (!/^ERR_(?:TLS|SSL)_/.test(code)) return undefined
  // OpenSSL's text has addresses of memory and files of its own in it.
  const reason = code
    .replace(/^ERR_(?:TLS|SSL)_/, '')
    .toLowerCase()
    .replaceAll('_', ' ')
  return { what: `TLS failed: ${reason}`, ...(code.startsWith('ERR_TLS_') && { notSent: true }) }
}
