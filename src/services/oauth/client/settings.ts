/** The settings for obtaining tokens for one server. */
import { sameIssuer } from '../issuer.js'
import type { ReachSettings } from '../reach.js'
import type { TokenRecord } from '../store/record.js'

/** How tokens are obtained. */
type GrantName = 'code' | 'device' | 'client_credentials' | 'token' | 'jwt-bearer' | 'token-exchange' | 'id-jag'

/** How the bridge says who it is to an authorization server. */
export interface ClientCredentials {
  clientId?: string | undefined
  clientSecret?: string | undefined
  /** The private key for client authentication: PEM (PKCS #8) or JWK. */
  key?: { file: string; alg: string; kid?: string | undefined } | undefined
  /** A file with a JWT that authenticates the client, such as a projected token of Kubernetes. Read each time. */
  clientAssertionFile?: string | undefined
}

/** What kind of token is exchanged (RFC 8693, 3). */
export type SubjectType = 'access_token' | 'id_token' | 'jwt'

/** How the tokens of callers are exchanged (RFC 8693). */
interface ExchangeSettings {
  /** The `audience` parameter: what the authorization server calls the server, where it does not go by `resource`. */
  audience?: string | undefined
  subjectTokenType?: SubjectType | undefined
}

/** The identity provider that asserts to the server's authorization server who a person is (SEP-990). */
export interface IdpSettings extends ClientCredentials {
  issuer: string
  /** A file with the token of the person; by default the caller's own token. */
  subjectTokenFile?: string | undefined
  subjectTokenType?: SubjectType | undefined
}

/** The header with the key of each person. */
export interface KeySettings {
  header: string
  /** What comes before the key. */
  prefix?: string | undefined
}

/** The settings. */
export interface ClientSettings extends ReachSettings, ClientCredentials {
  grant: GrantName
  /** People enter a key of their own: no tokens are obtained. */
  apiKey?: KeySettings | undefined
  /** The address of the client's metadata document (client ID metadata documents). */
  clientMetadataUrl?: string | undefined
  clientName?: string | undefined
  /** Replaces the resource that the server names; `false` to send none. */
  resource?: string | false | undefined
  /** `require`: the issuer must announce S256. It is sent in any case. */
  pkce?: 'require' | 'assume' | undefined
  /** The endpoints of an authorization server without metadata. */
  endpoints?: { token: string; authorization?: string | undefined; device?: string | undefined } | undefined
  /** The token that the server is shown. */
  bearer?: 'access_token' | 'id_token' | undefined
  /** The address to which the browser goes after a sign-in. */
  successUrl?: string | undefined
  scopes?: readonly string[] | undefined
  /** Further parameters of the authorization request. */
  params?: Readonly<Record<string, string>> | undefined
  callbackPort?: number | undefined
  /** The address on this machine to which the browser is redirected. */
  redirectUri?: string | undefined
  /** A file with an access token, written by another program. Read again when it changes. */
  tokenFile?: string | undefined
  /** A file with the assertion of the workload (RFC 7523), written by another program. Read each time. */
  assertionFile?: string | undefined
  exchange?: ExchangeSettings | undefined
  idp?: IdpSettings | undefined
  /** Milliseconds that a request waits for a person. */
  wait?: number | undefined
}

/** Whether a person signs in for tokens. */
export function asksPerson({ grant }: Pick<ClientSettings, 'grant'>): boolean {
  return grant === 'code' || grant === 'device'
}

/** Whether another token can be obtained from a record without a person. */
export function isRenewable({ token, client }: TokenRecord, settings: ClientSettings): boolean {
  const { clientId } = settings
  if (!asksPerson(settings)) return token !== undefined
  if (token?.refresh === undefined || !client || !sameIssuer(client.issuer, token.issuer)) return false
  return client.how !== 'configured' || client.id === clientId
}
