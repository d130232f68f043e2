/** Answers of token endpoints, made what RFC 6749 says that they are: many that work otherwise are not. */
import { objectIn } from '../get-object.js'

/**
 * The same answer, regular: 200 with `error` is 400; a list of scopes is one text; members that are null, and an `expires_in`
 * that is no time, are left out; what names no type is a bearer token; a challenge beside an error in JSON is left out, and
 * so is an ID token, which nobody asked for.
 */
export function regular(status: number, headers: Headers, bytes: Uint8Array): Response {
  const said = objectIn(bytes)
  if (!said) return new Response(status === 204 || status === 304 ? null : Buffer.from(bytes), { status, headers })
  const members = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== null))
  const { scope, expires_in: expiresIn } = members
  delete members['id_token']
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
