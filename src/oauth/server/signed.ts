/** Checks the signature of a JWT, and reads what it says before that. */
import { compactVerify, decodeJwt, decodeProtectedHeader, errors, type JWTVerifyGetKey } from 'jose'
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

/** The claims of a JWT, if it is signed with a known key. What they say is checked by `ownerOf`. */
export async function signedBy(
  token: string,
  { settings, typ }: Signer,
  find: JWTVerifyGetKey,
): Promise<{ said: TokenSaid } | TokenRefusal | { noKey: true }> {
  const { issuer, algorithms } = settings
  const refused: TokenRefusal = { why: `its signature is not one of ${quoted(issuer)}` }
  const verifyWith = async (key: JWTVerifyGetKey): Promise<{ said: TokenSaid }> => {
    const { payload } = await compactVerify(token, key, { algorithms: [...algorithms] })
    const claims = JSON.parse(new TextDecoder().decode(payload)) as Claims
    return { said: { claims, by: 'signature', typ } }
  }
  try {
    return await verifyWith(find)
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return { noKey: true }
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return refused
    // The token does not say which: one of them fits.
    let tried = 0
    for await (const key of error) {
      const one = await verifyWith(() => key).catch(() => undefined)
      if (one) return one
      if (++tried === MAX_TRIED)
        return { why: `its header has no kid, and none of the first ${tried} keys of ${quoted(issuer)} fits` }
    }
    return refused
  }
}

/** The header and claims of a JWT, unverified; undefined if it is not a JWT. */
export function saidIn(token: string): Readonly<Record<'alg' | 'typ' | 'crit' | 'kid' | 'iss', unknown>> | undefined {
  try {
    const { alg, typ, crit, kid } = decodeProtectedHeader(token)
    return { alg, typ: typ ?? undefined, crit, kid, iss: decodeJwt(token).iss }
  } catch {
    return undefined
  }
}
