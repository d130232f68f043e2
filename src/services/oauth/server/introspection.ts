/** Asks an issuer about tokens that only the issuer can read (RFC 7662). */
import { type AuthorizationServer, introspectionRequest, processIntrospectionResponse } from 'oauth4webapi'
import { Fault } from '../../../base/fault/fault.js'
import { clientAuthOf, configuredMethod } from '../client/client-auth.js'
import { guarded } from '../guarded-fetch.js'
import type { Issuers } from '../issuers.js'
import { quoted } from '../quoted.js'
import type { Reach } from '../reach.js'
import { type Claims, expected, given, type TokenRefusal } from './claims.js'
import { FairSlots, type SlotClient } from './fair-slots.js'
import type { IssuerSettings } from './settings.js'

/** Most questions at once. */
const MAX_INTROSPECTIONS = 32
/** The `token_type` of tokens that count without a proof: RFC 6750, and what Ory Hydra 1 says. */
const PLAIN_TYPES: readonly string[] = ['bearer', 'access_token']

/** Claims that are times: seconds since 1970. */
const TIMES = ['exp', 'nbf', 'iat']
const SECONDS = /^\d{1,12}$/

export interface IntrospectionOptions {
  settings: IssuerSettings
  issuers: Issuers
  reach: Reach
}

export class Introspection {
  readonly #options: IntrospectionOptions
  readonly #slots = new FairSlots({ max: MAX_INTROSPECTIONS })

  constructor(options: IntrospectionOptions) {
    this.#options = options
  }

  /** The claims of an active token, for a client. Rejects with a Fault if the issuer does not say whether it is active. */
  async claimsOf(token: string, client: SlotClient): Promise<{ claims: Claims } | TokenRefusal> {
    const ask = () =>
      this.#ask(token).catch((error: unknown) => {
        throw unavailable('The token cannot be checked now: its issuer is unavailable', error)
      })
    return this.#slots.use(client, ask, () => unavailable(`Over ${MAX_INTROSPECTIONS} tokens are being checked`))
  }

  async #ask(token: string): Promise<{ claims: Claims } | TokenRefusal> {
    const { settings, issuers, reach } = this.#options
    const { issuer, introspection } = settings
    const { clientId = '', clientSecret } = introspection ?? {}
    const metadata = await issuers.find({ issuer, reach })
    if (metadata.introspection_endpoint === undefined)
      throw new Error(`The metadata of ${quoted(issuer)} have no introspection_endpoint`)
    const server = Object.fromEntries(
      Object.entries(metadata).filter(([, value]) => value !== undefined),
    ) as unknown as AuthorizationServer
    const own = { grant: 'client_credentials', clientSecret } as const
    const methods =
      metadata.introspection_endpoint_auth_methods_supported ?? metadata.token_endpoint_auth_methods_supported
    const method = configuredMethod(own, methods)
    const auth = await clientAuthOf({ issuer, how: 'configured', id: clientId, method, since: 0 }, own)
    const known = { client_id: clientId }
    const response = await introspectionRequest(server, known, auth, token, guarded(reach))
    const { active, ...said } = await processIntrospectionResponse(server, known, response)
    if (active !== true) return { why: `${quoted(issuer)} says that it is not active` }
    const claims = withTimes(given(said))
    const { iss, token_type: type } = claims
    const names = [issuer, metadata.access_token_issuer].filter((one) => one !== undefined)
    if (iss !== undefined && !names.includes(iss as string)) return { why: expected('iss', iss, names) }
    // Other tokens are valid only with a proof of their key.
    if (type !== undefined && !PLAIN_TYPES.includes(String(type).toLowerCase()))
      return { why: expected('token_type', type, ['Bearer']) }
    return { claims }
  }
}

/** Times as numbers, as RFC 7662, 2.2 has them. Some issuers write them as texts. */
function withTimes(claims: Claims): Claims {
  const written = TIMES.filter((name) => typeof claims[name] === 'string' && SECONDS.test(claims[name]))
  return { ...claims, ...Object.fromEntries(written.map((name) => [name, Number(claims[name])])) }
}

function unavailable(message: string, cause?: unknown): Fault {
  return new Fault('authUnavailable', message, { cause, retryAfter: 5 })
}
