/**
 * Schemas of documents from others, as far as the bridge uses them: metadata of resources and issuers, registrations.
 */
import * as z from 'zod'
import { parseUrl } from '../../base/texts/parse-url.js'

const isText = (one: unknown): one is string => typeof one === 'string' && one.length <= 2_048
/** Informative only, so anything that is not a list of strings counts as absent. */
const texts = z
  .array(z.unknown())
  .transform((list) => list.filter(isText).slice(0, 200))
  .optional()
  .catch(undefined)
const address = z.string().min(1).max(2_048)
/** Some issuers send null or an empty text for what they do not have. */
const optionalAddress = z.union([address, z.union([z.null(), z.literal('')]).transform(() => undefined)]).optional()
const flag = z
  .union([z.boolean(), z.literal('true').transform(() => true)])
  .optional()
  .catch(undefined)

/** RFC 9728, 2. */
export const resourceMetadata = z.object({
  resource: address,
  authorization_servers: texts,
  scopes_supported: texts,
  dpop_bound_access_tokens_required: flag,
})
export type ResourceMetadata = z.infer<typeof resourceMetadata>

/** RFC 8414, 2; OpenID Connect Discovery, 3; RFC 9207, 3; client ID metadata documents, 5. */
export const issuerMetadata = z.object({
  issuer: address,
  authorization_endpoint: optionalAddress,
  token_endpoint: optionalAddress,
  registration_endpoint: optionalAddress,
  revocation_endpoint: optionalAddress,
  device_authorization_endpoint: optionalAddress,
  introspection_endpoint: optionalAddress,
  jwks_uri: optionalAddress,
  /** AD FS: the `iss` of its access tokens. */
  access_token_issuer: address.optional().catch(undefined),
  code_challenge_methods_supported: texts,
  token_endpoint_auth_methods_supported: texts,
  introspection_endpoint_auth_methods_supported: texts,
  grant_types_supported: texts,
  id_token_signing_alg_values_supported: texts,
  scopes_supported: texts,
  authorization_response_iss_parameter_supported: flag,
  client_id_metadata_document_supported: flag,
})
export type IssuerMetadata = z.infer<typeof issuerMetadata>

/** Members that name endpoints of an authorization server. */
export const ENDPOINTS = [
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'revocation_endpoint',
  'device_authorization_endpoint',
] as const satisfies readonly (keyof IssuerMetadata)[]

/** Members of OAuth documents whose values are addresses, also of those that the bridge does not use. */
const ADDRESS = /_(?:endpoint|uri|documentation)$/
const ON_THE_WEB: ReadonlySet<string> = new Set(['https:', 'http:'])

/** A member with an address that is not on the web (`javascript:`, `file:` and others); undefined if there is none. */
export function memberOffTheWeb(document: object): string | undefined {
  const isOff = (value: unknown) => {
    const url = typeof value === 'string' ? parseUrl(value) : undefined
    return url !== undefined && !ON_THE_WEB.has(url.protocol)
  }
  return Object.entries(document).find(([name, value]) => ADDRESS.test(name) && isOff(value))?.[0]
}

const visible = z.string().regex(/^[\x20-\x7e]{1,4096}$/, 'has to be visible ASCII')

/** RFC 7591, 3.2.1. */
export const registration = z.object({
  client_id: visible,
  client_secret: visible.nullish(),
  token_endpoint_auth_method: z.string().max(64).nullish(),
})
