/** The settings for obtaining tokens for one server. */
import { sameIssuer } from '../issuer.js'
import type { ReachSettings } from '../reach.js'
import type { TokenRecord } from '../store/record.js'

/** The settings. */
export interface ClientSettings extends ReachSettings {
  grant: 'code' | 'client_credentials' | 'token'
  clientId?: string | undefined
  clientSecret?: string | undefined
  /** The private key for client authentication: PEM (PKCS #8) or JWK. */
  key?: { file: string; alg: string; kid?: string | undefined } | undefined
  /** A file with a JWT that authenticates the client, such as a projected token of Kubernetes. Read each time. */
  clientAssertionFile?: string | undefined
  /** The address of the client's metadata document (client ID metadata documents). */
  clientMetadataUrl?: string | undefined
  clientName?: string | undefined
  /** Replaces the resource that the server names; `false` to send none. */
  resource?: string | false | undefined
  /** `require`: the issuer must announce S256. It is sent in any case. */
  pkce?: 'require' | 'assume' | undefined
  scopes?: readonly string[] | undefined
  /** Further parameters of the authorization request. */
  params?: Readonly<Record<string, string>> | undefined
  callbackPort?: number | undefined
  /** The address on this machine to which the browser is redirected. */
  redirectUri?: string | undefined
  /** A file with an access token, written by another program. Read again when it changes. */
  tokenFile?: string | undefined
  /** Milliseconds that a request waits for a person. */
  wait?: number | undefined
}

/** Whether another token can be obtained from a record without a person. */
export function isRenewable({ token, client }: TokenRecord, { grant, clientId }: ClientSettings): boolean {
  if (grant === 'client_credentials') return token !== undefined
  if (token?.refresh === undefined || !client || !sameIssuer(client.issuer, token.issuer)) return false
  return client.how !== 'configured' || client.id === clientId
}
