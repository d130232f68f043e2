/**
 * Why connections fail, by the error codes of Node.js, OpenSSL and undici: what happened, and what to do next, in plain text.
 */

export interface Cause {
  /** One sentence without its full stop. */
  what: string
  /** What to try next, for the operator. */
  next?: string
  /** It happens only before any byte of the request has been sent. */
  notSent?: true
}

const TRUST =
  'Set "ca" in its entry, or --ca, to a PEM file with the certificate of its authority; for all servers, NODE_EXTRA_CA_CERTS=/path/to/ca.pem. If a proxy decrypts TLS, that is the authority of the proxy.'
const CLIENT_CERTIFICATE =
  'Set "cert" and "key" in its entry, or --client-cert and --client-key, to a certificate that the server accepts.'
const CHECK_HOST = 'Check the host name, and whether this machine can resolve it.'
const CHECK_NETWORK = 'Check the address, and whether this machine can reach it.'
const CHECK_PROXY =
  'Check the address of the proxy, and whether this machine can reach it. If no proxy is needed, add the host of the server to NO_PROXY.'

const UNTRUSTED: Cause = {
  what: "The server's certificate was issued by an unknown authority",
  next: TRUST,
  notSent: true,
}
const SELF_SIGNED: Cause = { what: "The server's certificate is self-signed", next: TRUST, notSent: true }
const CLOSED: Cause = {
  what: 'The connection was closed before the answer was complete',
  next: 'Give the address with https:// if the server uses TLS on this port. If it wants a client certificate, set "cert" and "key" in its entry. Otherwise check the log of the server.',
}
const TOO_MANY_FILES: Cause = {
  what: 'too many open files',
  next: 'Raise the limit of open files of the bridge (ulimit -n, or LimitNOFILE of systemd): each connection and each program takes some.',
  notSent: true,
}
const UNRESOLVED: Cause = { what: 'The host name could not be resolved', next: CHECK_HOST, notSent: true }
const NO_TLS: Cause = {
  what: 'The server does not use TLS on this port',
  next: 'Give its address with http:// instead of https://, or with the port on which it uses TLS.',
  notSent: true,
}

/** By the code or name of the error. */
export const CAUSES: Readonly<Record<string, Cause>> = {
  ECONNREFUSED: {
    what: 'Connection refused',
    next: 'Check whether the server is running, and on which port. For a server on this machine, try localhost instead of 127.0.0.1; in a container, both are the container itself.',
    notSent: true,
  },
  ENOTFOUND: UNRESOLVED,
  EAI_AGAIN: UNRESOLVED,
  EHOSTUNREACH: { what: 'The host is unreachable', next: CHECK_NETWORK, notSent: true },
  EHOSTDOWN: { what: 'The host is down', next: CHECK_NETWORK, notSent: true },
  ENETDOWN: { what: 'The network of this machine is down', next: CHECK_NETWORK, notSent: true },
  EADDRNOTAVAIL: {
    what: 'This machine has no address or port left for the connection',
    next: 'Check the address. With very many connections, raise the range of local ports.',
    notSent: true,
  },
  EMFILE: TOO_MANY_FILES,
  ENFILE: TOO_MANY_FILES,
  // Without `notSent`, because TCP keep-alive also ends open connections with it.
  ETIMEDOUT: { what: 'The connection timed out', next: CHECK_NETWORK },
  ENETUNREACH: { what: 'The network of the host is unreachable', next: CHECK_NETWORK, notSent: true },
  UND_ERR_CONNECT_TIMEOUT: {
    what: 'The connection could not be opened in time',
    next: `${CHECK_NETWORK} If the address begins with https://, check whether the server uses TLS on this port.`,
    notSent: true,
  },
  ERR_PROXY_INVALID: {
    what: 'The environment names no usable proxy',
    next: 'Set HTTPS_PROXY and HTTP_PROXY to addresses like http://proxy.example:3128.',
    notSent: true,
  },
  ERR_PROXY_UNREACHABLE: { what: 'The proxy cannot be reached', next: CHECK_PROXY, notSent: true },
  ERR_PROXY_TIMEOUT: { what: 'The proxy did not answer in time', next: CHECK_PROXY, notSent: true },
  ERR_PROXY_CREDENTIALS: {
    what: 'The proxy requires a user and a password, or refuses the given ones',
    next: 'Put them into the variable, as in http://user:password@proxy.example:3128, with special characters percent-encoded.',
    notSent: true,
  },
  ERR_PROXY_REFUSED: {
    what: 'The proxy refused to connect to the server',
    next: 'Ask its operator to allow the host and port of the server, or add the host to NO_PROXY if no proxy is needed.',
    notSent: true,
  },
  ERR_PROXY_UNAVAILABLE: {
    what: 'The proxy could not connect to the server',
    next: 'Check the host name and port of the server. If no proxy is needed for it, add the host to NO_PROXY.',
    notSent: true,
  },
  ERR_UNIX_ENOENT: {
    what: 'The socket of the server does not exist',
    next: 'Check the path, and whether the server is running.',
    notSent: true,
  },
  ERR_UNIX_ECONNREFUSED: {
    what: 'No process listens on the socket of the server',
    next: 'Start the server. It left the socket behind when it was killed.',
    notSent: true,
  },
  ERR_UNIX_EACCES: {
    what: 'The user of the bridge may not connect to the socket of the server',
    next: 'Give this user the right to write the socket, and to enter the folders above it.',
    notSent: true,
  },
  ERR_START_EMFILE: TOO_MANY_FILES,
  ERR_START_ENFILE: TOO_MANY_FILES,
  UND_ERR_DESTROYED: { what: 'The bridge has closed its connections to the server', notSent: true },
  UND_ERR_CLOSED: { what: 'The bridge has closed its connections to the server', notSent: true },
  UND_ERR_SOCKET: CLOSED,
  ECONNRESET: CLOSED,
  ECONNABORTED: CLOSED,
  EPIPE: CLOSED,
  EPROTO: NO_TLS,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  DEPTH_ZERO_SELF_SIGNED_CERT: SELF_SIGNED,
  SELF_SIGNED_CERT_IN_CHAIN: SELF_SIGNED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ALERT_CERTIFICATE_REQUIRED: {
    what: 'The server requires a client certificate',
    next: CLIENT_CERTIFICATE,
    notSent: true,
  },
  ALERT_UNKNOWN_CA: {
    what: 'The server does not trust the authority of the client certificate',
    next: CLIENT_CERTIFICATE,
    notSent: true,
  },
  ALERT_BAD_CERTIFICATE: { what: 'The server refuses the client certificate', next: CLIENT_CERTIFICATE, notSent: true },
  ALERT_CERTIFICATE_UNKNOWN: {
    what: 'The server refuses the client certificate',
    next: CLIENT_CERTIFICATE,
    notSent: true,
  },
  ALERT_CERTIFICATE_REVOKED: { what: 'The client certificate is revoked', next: CLIENT_CERTIFICATE, notSent: true },
  ALERT_CERTIFICATE_EXPIRED: { what: 'The client certificate has expired', next: CLIENT_CERTIFICATE, notSent: true },
  ALERT_HANDSHAKE_FAILURE: {
    what: 'The server refuses the TLS handshake',
    next: 'It may require a client certificate ("cert" and "key" in its entry), or a version of TLS that Node.js does not support.',
    notSent: true,
  },
  CERT_HAS_EXPIRED: {
    what: "The server's certificate has expired",
    next: 'Renew the certificate of the server. If it is valid, check the clock of this machine.',
    notSent: true,
  },
  CERT_NOT_YET_VALID: {
    what: "The server's certificate is not valid yet",
    next: 'Check the clocks of the server and of this machine.',
    notSent: true,
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    what: "The server's certificate is for another host name",
    next: 'Give the address with a host name that the certificate contains.',
    notSent: true,
  },
  HTTPParserError: {
    what: 'The answer is not HTTP',
    next: 'Check the port. If the server uses TLS there, its address has to begin with https://.',
  },
}
