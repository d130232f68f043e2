/** Checks the signature of a JWT, and reads what it says before that. */
import { compactVerify, decodeJwt, decodeProtectedHeader, errors, type JWTVerifyGetKey } from 'jose'
import { Fault } from '../../../base/fault/fault.js'
import { quoted } from '../quoted.js'
import type { Claims, TokenRefusal, TokenSaid } from './claims.js'
import type { IssuerSettings } from './settings.js'

/** Most keys that are tried for a token that names none. */
const MAX_TRIED = 32

/** The issuer that a JWT names, and the type that it has. */
export interface Signer {
  settings: IssuerSettings
  typ: unknown
}

/** A refusal of a token that fits no known key, and names none that is unknown. Only if its issuer has replaced a key, it is right. */
export type WrongSignature = TokenRefusal & { wrong: true }

/** The claims of a JWT, if it is signed with a known key. What they say is checked by `ownerOf`. */
export async function signedBy(
  token: string,
  { settings, typ }: Signer,
  find: JWTVerifyGetKey,
): Promise<{ said: TokenSaid } | TokenRefusal | WrongSignature | { noKey: true }> {
  const { issuer, algorithms, header } = settings
  const refused: TokenRefusal = { why: `its signature is not one of ${quoted(issuer)}` }
  const verifyWith = async (key: JWTVerifyGetKey): Promise<{ said: TokenSaid }> => {
    const { payload, protectedHeader } = await compactVerify(token, key, { algorithms: [...algorithms] })
    const claims = JSON.parse(new TextDecoder().decode(payload)) as Claims
    const signed = header === undefined ? claims : { ...claims, ...ofHeader(protectedHeader) }
    return { said: { claims: signed, by: 'signature', typ } }
  }
  try {
    return await verifyWith(find)
  } catch (error) {
    if (error instanceof Fault) throw error
    if (error instanceof errors.JWKSNoMatchingKey) return { noKey: true }
    if (error instanceof errors.JWSSignatureVerificationFailed) return { ...refused, wrong: true }
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return refused
    // The token does not say which: one of them fits.
    let tried = 0
    for await (const key of error) {
      const one = await verifyWith(() => key).catch(() => undefined)
      if (one) return one
      if (++tried === MAX_TRIED)
        return { why: `its header has no kid, and none of the first ${tried} keys of ${quoted(issuer)} fits` }
    }
    return { ...refused, wrong: true }
  }
}

/** Claims that AWS load balancers write into the header of an assertion. The others are of the person, who may choose them. */
const IN_HEADER = ['signer', 'client', 'iss', 'exp'] as const

function ofHeader(header: Claims): Claims {
  return Object.fromEntries(IN_HEADER.flatMap((name) => (header[name] == null ? [] : [[name, header[name]]])))
}

/** The header and claims of a JWT, unverified; undefined if it is not a JWT. */
export function saidIn(
  token: string,
  { isAssertion = false } = {},
): Readonly<Record<'alg' | 'typ' | 'crit' | 'kid' | 'iss', unknown>> | undefined {
  try {
    const header = decodeProtectedHeader(token)
    const { alg, typ, crit, kid } = header
    const { iss } = { ...decodeJwt(token), ...(isAssertion && ofHeader(header as Claims)) } as Claims
    return { alg, typ: typ ?? undefined, crit, kid, iss }
  } catch {
    return undefined
  }
}
