/** Normalizes answers of token endpoints that deviate from RFC 6749. */
import { objectIn } from '../get-object.js'

/**
 * The answer in the form of RFC 6749: 200 with `error` becomes 400; a list of scopes becomes one string; null members,
 * and an `expires_in` that is not a time, are left out; a missing type becomes bearer; a challenge beside a JSON error,
 * and an ID token unless it is wanted, are left out.
 */
export function regular(status: number, headers: Headers, bytes: Uint8Array, wantsIdToken = false): Response {
  const said = objectIn(bytes)
  if (!said) return new Response(status === 204 || status === 304 ? null : Buffer.from(bytes), { status, headers })
  const members = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== null))
  const { scope, expires_in: expiresIn } = members
  if (!wantsIdToken) delete members['id_token']
  if (Array.isArray(scope)) members['scope'] = scope.filter((one) => typeof one === 'string').join(' ')
  else if (scope !== undefined && typeof scope !== 'string') delete members['scope']
  if (expiresIn !== undefined && !(Number.parseFloat(String(expiresIn)) >= 0)) delete members['expires_in']
  if (members['refresh_token'] === '') delete members['refresh_token']
  const isError = typeof members['error'] === 'string' && members['error'] !== ''
  if (isError) {
    headers.delete('www-authenticate')
  } else {
    delete members['error']
    members['token_type'] ??= 'Bearer'
  }
  headers.set('content-type', 'application/json')
  headers.delete('content-length')
  const regularStatus = isError ? Math.max(status, 400) : status === 201 ? 200 : status
  return new Response(JSON.stringify(members), { status: regularStatus, headers })
}
