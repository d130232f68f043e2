/** Options about OAuth: how the bridge signs in to servers that require it. */
import * as z from 'zod'
import { entryName, reachable, scope, text, webAddress } from './values.js'

/** A port of this machine. */
const port = z.number().int().min(1).max(65_535)

/** How a client authenticates. */
const credentials = {
  clientSecret: text
    .optional()
    .describe(`OAuth client secret. Refer to it as \${VARIABLE} or \${file:path} instead of writing it here.`),
  key: z
    .strictObject({
      file: text.describe('File with the private key, as PEM or JWK.'),
      alg: text.describe('Signature algorithm, such as ES256.'),
      kid: text.optional().describe('Id of the key, as the authorization server knows it.'),
    })
    .optional()
    .describe('Private key for client authentication by private_key_jwt. The bridge reads it for each token request.'),
  clientAssertionFile: text
    .optional()
    .describe(
      'File with a JWT for client authentication, such as a projected token of Kubernetes. The bridge reads it for each token request.',
    ),
}

const subjectTokenType = z
  .enum(['access_token', 'id_token', 'jwt'])
  .optional()
  .describe('Type of the token that is exchanged. Default: "access_token", or "id_token" for "subjectTokenFile".')

const exchange = z
  .strictObject({
    audience: text
      .optional()
      .describe('The audience parameter, for authorization servers that do not use the resource parameter.'),
    subjectTokenType,
  })
  .optional()
  .describe('For the grant "token-exchange".')

const idp = z
  .strictObject({
    issuer: webAddress('https://').describe('The identity provider. Its host may be private.'),
    clientId: text.describe('Client id of the bridge there.'),
    ...credentials,
    subjectTokenFile: text
      .optional()
      .describe(
        'File with the ID token of one person, written by another program and read for each token request. Default: the token of the caller.',
      ),
    subjectTokenType,
  })
  .optional()
  .describe('For the grant "id-jag": the identity provider that asserts the identity of the caller.')

/** `oauth` in the entry of a server. Everything has a default: servers that require a sign-in say what they need. */
export const oauthOfServer = z
  .strictObject({
    grant: z
      .enum(['code', 'device', 'client_credentials', 'token', 'jwt-bearer', 'token-exchange', 'id-jag'])
      .default('code')
      .describe(
        'How the bridge obtains tokens: a person signs in with a browser of this machine (code) or of any device (device), with the credentials of the client (client_credentials), from a file (token), with an assertion in a file (jwt-bearer), in exchange for the token of the caller (token-exchange), or with an assertion of the identity provider about the caller (id-jag).',
      ),
    account: z
      .enum(['principal', 'service'])
      .optional()
      .describe(
        'Whose tokens the bridge sends: those of the calling principal, or those of one account for everybody. Default: "principal" for the grants "code", "device", "token-exchange" and "id-jag", "service" for the others.',
      ),
    clientId: text.optional().describe('OAuth client id. Default: the bridge registers a client.'),
    ...credentials,
    clientMetadataUrl: webAddress('https://')
      .optional()
      .describe('Address of a client metadata document, for authorization servers that support these.'),
    clientName: text.max(200).optional().describe('Client name for dynamic registration.'),
    issuer: webAddress('https://')
      .optional()
      .describe('Issuer of the authorization server. Default: the one in the metadata of the server.'),
    authServerMetadataUrl: webAddress('https://')
      .optional()
      .describe('Address of the authorization server metadata, if it is not at a well-known address.'),
    endpoints: z
      .strictObject({
        token: webAddress('http:// or https://').describe('The token endpoint.'),
        authorization: webAddress('http:// or https://')
          .optional()
          .describe('The authorization endpoint. Required for the grant "code".'),
        device: webAddress('http:// or https://')
          .optional()
          .describe('The device authorization endpoint. Required for the grant "device".'),
      })
      .optional()
      .describe(
        'Endpoints of an authorization server that publishes no metadata. The bridge then asks for no metadata, also not for those of the server, and requires "clientId". An http:// address is for servers on this machine.',
      ),
    bearer: z
      .enum(['access_token', 'id_token'])
      .default('access_token')
      .describe(
        'Which token the bridge shows the server: the access token, or the ID token, for servers that verify who calls by that. It then also requests the scope "openid".',
      ),
    successUrl: webAddress('http:// or https://')
      .optional()
      .describe(
        'Address to which the browser goes after a sign-in on this machine. Nothing is added to it. Default: a page of the bridge.',
      ),
    resource: z
      .union([text, z.literal(false)])
      .optional()
      .describe(
        'Value of the resource parameter; false leaves it out. Default: the resource in the metadata of the server.',
      ),
    pkce: z
      .enum(['require', 'assume'])
      .default('require')
      .describe(
        'PKCE: "require" refuses an authorization server that does not announce S256, "assume" uses S256 without the announcement.',
      ),
    scopes: z
      .union([z.array(scope), z.string().transform((words) => words.split(/\s+/).filter((one) => one !== ''))])
      .optional()
      .describe('Scopes to request: a list, or a string with spaces. Default: the scopes that the server requires.'),
    params: z
      .record(text, z.string())
      .optional()
      .describe('Further parameters of the authorization request, such as "audience" or "prompt".'),
    callbackPort: port
      .optional()
      .describe('Local port of the redirect URI of a sign-in. Default: a port that is always the same for a server.'),
    redirectUri: z
      .string()
      .regex(
        /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]):\d+\/[^?#]*$/,
        'has to be like http://localhost:8765/callback',
      )
      .optional()
      .describe('Redirect URI of a sign-in, if the client is registered with exactly this one.'),
    tokenFile: text
      .optional()
      .describe('File with an access token, for the grant "token". The bridge reads it again when it changes.'),
    assertionFile: text
      .optional()
      .describe(
        'File with the assertion of the workload, for the grant "jwt-bearer", such as a projected token of Kubernetes. The bridge reads it for each token request.',
      ),
    exchange,
    idp,
    wait: z
      .number()
      .int()
      .min(0)
      .max(300_000)
      .default(40_000)
      .describe('Milliseconds that a request waits for a person to sign in.'),
  })
  .describe('OAuth client of the bridge for this server.')

export type OAuthSettings = z.infer<typeof oauthOfServer>

/** `oauth` of the bridge. */
export const oauth = z
  .strictObject({
    store: text
      .optional()
      .describe(
        'Folder with the tokens of servers. Default: mcp-bridge/tokens in the configuration folder of the user.',
      ),
    browser: text
      .optional()
      .describe(
        'Command that opens the sign-in page in a browser, or "none" to only show its address. Default: the browser of the system.',
      ),
    account: entryName
      .optional()
      .describe('Name of the account to use, if you have several accounts at one server. Default: local.'),
    allow: reachable.describe('Private hosts, addresses and networks that authorization servers may have.'),
  })
  .prefault({})
  .describe('How the bridge signs in to servers.')
