/** Explains failed connections with the table of causes. */
import { CAUSES, type Cause } from '../../base/fault/causes.js'

/** Describes the failure of a connection, for people. Never empty. */
export function whatOf(error: Error): string {
  return causeOf(error)?.what ?? (error.message || ('code' in error && String(error.code)) || error.name)
}

/** Explains an error of a connection; undefined if it is unknown. */
export function causeOf(error: unknown): Cause | undefined {
  if (!(error instanceof Error)) return undefined
  // A connection to a host with several addresses fails once for each address.
  if (error instanceof AggregateError) return firstKnown(error.errors)
  const code = 'code' in error ? String(error.code) : ''
  const known = Object.hasOwn(CAUSES, code) ? CAUSES[code] : undefined
  // Only the message of the error names the proxy. It goes into `next`, which is for the operator, not for clients.
  if (known && code.startsWith('ERR_PROXY_')) return { ...known, next: `${error.message}. ${known.next}` }
  if (known) return known
  // An alert that the server sent in the handshake. Versions of OpenSSL differ in the text before it.
  const [, alert = ''] = /^ERR_SSL_.*?(ALERT_\w+)$/.exec(code) ?? []
  if (Object.hasOwn(CAUSES, alert)) return CAUSES[alert]
  if (Object.hasOwn(CAUSES, error.name)) return CAUSES[error.name]
  if (!/^ERR_(?:TLS|SSL)_/.test(code)) return undefined
  // The message of OpenSSL contains memory addresses and names of its source files, so only its code is used.
  const reason = code
    .replace(/^ERR_(?:TLS|SSL)_/, '')
    .toLowerCase()
    .replaceAll('_', ' ')
  return { what: `TLS failed: ${reason}`, ...(code.startsWith('ERR_TLS_') && { notSent: true }) }
}

function firstKnown(errors: readonly unknown[]): Cause | undefined {
  for (const error of errors) {
    const cause = causeOf(error)
    if (cause) return cause
  }
  return undefined
}
