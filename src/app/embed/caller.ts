/**
 * Makes the principal of a user whom an application names. Users may choose their names, so no name may be that of a
 * principal of the bridge itself, such as `local`, or of a caller with a token, who may have accounts in the same store.
 */
import { shortDigest } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'

/** Names that are a part of the principal as they are. */
const PLAIN = /^[\w.@+-]{1,128}$/

/** The principal; undefined if the application names nobody. Throws a Fault if the name is none. */
export function principalNamed(name: unknown): string | undefined {
  if (name === undefined || name === null || name === '') return undefined
  if (typeof name !== 'string')
    throw new Fault(
      'internal',
      `"principal" has to be a string, the name of the caller, and the application has given ${aOrAn(typeof name)}`,
    )
  if (!name.isWellFormed())
    throw new Fault('unauthorized', 'The name of the caller has half of a surrogate pair, so it is no text')
  return `u:${PLAIN.test(name) ? name : `#${shortDigest(name)}`}`
}

/** Whether a browser may ask with a request of this method whether a page may call. It sends no credentials then. */
export function isPreflight(method: string): boolean {
  return method === 'OPTIONS'
}

function aOrAn(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}
