/** The settings of an identity provider whose tokens clients send. */
import type { FacadeSettings } from './facade.js'

export interface IssuerSettings {
  /** The exact text of `iss`. */
  issuer: string
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
  facade?: FacadeSettings | undefined
  introspection?: { clientId: string; clientSecret: string } | undefined
}
