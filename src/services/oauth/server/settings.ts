/** The settings of an identity provider whose tokens clients send. */

export interface IssuerSettings {
  /** The exact text of `iss`. */
  issuer: string
  /** The header in which a proxy sends its assertions, in lower case; undefined for tokens in Authorization. */
  header?: string | undefined
  /** Accepted at every endpoint, besides the address of the endpoint. */
  audience?: readonly string[] | undefined
  jwksUri?: string | undefined
  algorithms: readonly string[]
  /** Accepted values of claims: each claim must have one of them. */
  claims: Readonly<Record<string, readonly string[]>>
  /** The claim with the scopes; `scope` and `scp` by default. */
  scopes?: string | undefined
  /** The claim with the groups, and the scopes that members of a group have. */
  groups?: string | undefined
  map: Readonly<Record<string, readonly string[]>>
  /** The names by which clients request scopes, where they differ from those in tokens. */
  scopeNames?: Readonly<Record<string, string>> | undefined
  facade?: FacadeSettings | undefined
  introspection?: { clientId: string; clientSecret: string } | undefined
}

/** The client of the bridge at an identity provider where clients cannot register. */
export interface FacadeSettings {
  clientId: string
  clientSecret?: string | undefined
  /** What is requested at the provider, whatever clients ask for, beside scopes with a second name. Without it, what they ask for. */
  scopes?: readonly string[] | undefined
}
