/** How tokens for one server are obtained: what the configuration says of it. */
import type { ReachSettings } from '../reach.js'
import type { TokenRecord } from '../store/record.js'

export interface ClientSettings extends ReachSettings {
  grant: 'code' | 'client_credentials' | 'token'
  clientId?: string | undefined
  clientSecret?: string | undefined
  /** Signs what the client authenticates itself with: a private key, PEM (PKCS #8) or JWK. */
  key?: { file: string; alg: string; kid?: string | undefined } | undefined
  /** A file with a JWT that says who the client is: a projected token of Kubernetes, say. Read each time. */
  clientAssertionFile?: string | undefined
  /** Where the client's own metadata document is (client ID metadata documents). */
  clientMetadataUrl?: string | undefined
  clientName?: string | undefined
  /** Sent in the place of the resource that the server names; nothing is sent for false. */
  resource?: string | false | undefined
  /** Whether an authorization server has to say that it knows S256. It is sent in any case. */
  pkce?: 'require' | 'assume' | undefined
  scopes?: readonly string[] | undefined
  /** Further parameters of the authorization request. */
  params?: Readonly<Record<string, string>> | undefined
  callbackPort?: number | undefined
  /** Where the browser comes back to, on this machine. */
  redirectUri?: string | undefined
  /** A file with an access token, written by somebody else. Read again when it changes. */
  tokenFile?: string | undefined
  /** Milliseconds that a request waits for a person. */
  wait?: number | undefined
}

/** Whether there is anything in a record to get another token by, without a person. */
export function isRenewable({ token, client }: TokenRecord, { grant, clientId }: ClientSettings): boolean {
  if (grant === 'client_credentials') return token !== undefined
  if (token?.refresh === undefined || client?.issuer !== token.issuer) return false
  return client.how !== 'configured' || client.id === clientId
}
