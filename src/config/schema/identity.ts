/** Options about who signs clients in: identity providers whose tokens are accepted, and proxies that name the user. */
import * as z from 'zod'
import { headerName, scope, text, webAddress } from './values.js'

/** One text, or several. */
const texts = z.union([z.array(text).min(1, 'is empty'), text.transform((one) => [one])])

/** Signature algorithms with a public key. With a shared one, whoever can check a token could make one. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

const HOST_NAME = /^[a-z\d-]+(?:\.[a-z\d-]+)+$/i

/** Scopes by the name of a group. */
const mapOfGroups = z.record(text, z.array(scope)).default({})

/** An address, or the name of a host: some proxies call themselves so. */
const issuerName = z.string().refine((name) => HOST_NAME.test(name) || webAddress('https://').safeParse(name).success, {
  error: ({ input }) =>
    webAddress('https://').safeParse(input).error?.issues[0]?.message ?? 'has to be an https:// address',
})

/** One entry of `auth.issuers`. */
const issuer = z.strictObject({
  issuer: issuerName.describe(
    'The identity provider: the exact value of "iss" in its tokens. Its host and that of "jwksUri" may be private.',
  ),
  header: headerName
    .optional()
    .describe(
      'The header in which a proxy in front of the bridge sends what it has signed, such as "Cf-Access-Jwt-Assertion" or "X-Goog-IAP-JWT-Assertion". Then tokens of this issuer count there and nowhere else, and clients do not sign in by themselves. Requires "audience" or "claims".',
    ),
  audience: texts
    .optional()
    .describe(
      'Accepted values of "aud" in addition to the address of the endpoint: a string or a list. A token with such a value is accepted at every endpoint.',
    ),
  jwksUri: webAddress('https://')
    .optional()
    .describe(
      'Address of the public keys. Default: the one in the metadata of the issuer. With "{kid}", each key is at its own address, as PEM: AWS load balancers have that.',
    ),
  algorithms: z
    .array(z.enum(ALGORITHMS))
    .min(1, 'is empty')
    .default([...ALGORITHMS])
    .describe('Signature algorithms that are accepted.'),
  claims: z
    .record(text, texts)
    .default({})
    .describe(
      'Required claims with their accepted values, as in { "client_id": ["a", "b"] }. If it is set, a token needs no "aud".',
    ),
  scopes: text.optional().describe('The claim with the scopes. Default: "scope" and "scp".'),
  groups: text.optional().describe('The claim with the groups of a person, such as "groups" or "realm_access.roles".'),
  map: mapOfGroups.describe('Scopes that the members of a group get, as in { "mcp-admins": ["write"] }.'),
  scopeNames: z
    .record(scope, scope)
    .default({})
    .describe(
      'Names by which clients request scopes, where they differ from those in tokens, as in { "mcp": "api://<id>/mcp" } for Entra. Metadata and challenges have these names.',
    ),
  introspection: z
    .strictObject({
      clientId: text.describe('Client id of the bridge at the issuer.'),
      clientSecret: text.describe('Its secret.'),
    })
    .optional()
    .describe('Check tokens that are not JWTs by asking the issuer (RFC 7662). Only one issuer can have it.'),
  facade: z
    .strictObject({
      clientId: text.describe('Id of the client that is registered at the issuer, which checks its redirect URIs.'),
      clientSecret: text.optional().describe('Its secret, if it has one.'),
      scopes: z
        .array(scope)
        .min(1, 'is empty')
        .optional()
        .describe(
          'Scopes to request at the issuer for every client, such as "api://<id>/mcp" and "offline_access". Beside them, clients can request only scopes with a name in "scopeNames". Default: those that the client requests.',
        ),
    })
    .optional()
    .describe(
      'For issuers that do not register clients, such as Entra: the bridge acts as authorization server, gives all clients this client id, and forwards sign-ins to the issuer. Only one issuer can have it.',
    ),
})

export const issuers = z
  .array(issuer)
  .min(1, 'is empty: nobody could call')
  .optional()
  .describe('Identity providers whose access tokens are accepted. Clients sign in there. Requires "publicUrl".')

/** `auth.forwarded`. */
export const forwarded = z
  .strictObject({
    user: headerName.describe('Header with the name of the user.'),
    scopes: headerName.optional().describe('Header with the scopes of the user.'),
    groups: headerName.optional().describe('Header with the groups of the user, such as "X-Forwarded-Groups".'),
    map: mapOfGroups.describe(
      'Scopes that the members of a group get, as in { "mcp-admins": ["write"] }. Without "groups", the header of "scopes" has the groups: then their names are no scopes.',
    ),
    separator: z
      .string()
      .regex(/^[\x20-\x7e]{1,8}$/, 'has to be 1 to 8 visible ASCII characters, or a space')
      .default(',')
      .describe('What stands between two scopes, and between two groups, as in "|". " " is for any white space.'),
    secretHeader: headerName.describe('Header with the secret that identifies the proxy.'),
    secret: z
      .string()
      .regex(/^[\x21-\x7e]{32,}$/, 'has to be 32 or more visible ASCII characters, without spaces')
      .describe('The secret. Whoever knows it can call as any user.'),
  })
  .optional()
  .describe(
    'A proxy in front of the bridge signs people in and sends their names in a header. It has to remove these headers from requests of clients.',
  )

/** `auth.browser`. */
export const browser = z
  .strictObject({
    issuer: webAddress('https://')
      .optional()
      .describe('The identity provider: one of "issuers". Default: the only one.'),
    clientId: text.describe(
      'Id of the client that is registered for the bridge at the issuer. Its redirect URI is <publicUrl>/sign-in/browser/callback. Its ID tokens must have the same "sub" as access tokens.',
    ),
    clientSecret: text.optional().describe('Its secret, if it has one.'),
    scopes: z
      .array(scope)
      .default([])
      .describe(
        'Scopes to request in addition to "openid", such as "profile" or "email" for the name that the page shows.',
      ),
  })
  .optional()
  .describe(
    'Sign-in at the identity provider for people who open the page <publicUrl>/sign-in, where they sign in to servers with their own accounts.',
  )
