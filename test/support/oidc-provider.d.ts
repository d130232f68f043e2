/** As much of oidc-provider as the tests use: it brings no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export interface InteractionDetails {
    prompt: { name: string; details: Record<string, unknown> }
    params: Record<string, unknown>
    session?: { accountId: string }
    grantId?: string
  }

  export interface OidcGrant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }

  export interface GrantRequest {
    oidc: { params: Record<string, string | undefined>; client: { clientId: string } }
    body: unknown
  }

  export interface OidcToken {
    resourceServer: object
    readonly expiration: number
    save(): Promise<string>
  }

  export const errors: { readonly InvalidGrant: new (why: string) => Error }

  export class Provider {
    /** Whether X-Forwarded-Proto says how it was reached. */
    proxy: boolean
    constructor(issuer: string, configuration: object)
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<InteractionDetails>
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: { mergeWithLastSubmission: boolean },
    ): Promise<void>
    /** Adds a grant, with the parameters that its requests have. */
    registerGrantType(
      name: string,
      handler: (context: GrantRequest) => Promise<void>,
      parameters: readonly string[],
    ): void
    readonly AccessToken: new (
      properties: object,
    ) => OidcToken
    readonly ResourceServer: new (
      resource: string,
      properties: object,
    ) => object
    on(event: string, listener: (...args: unknown[]) => void): void
    readonly Grant: {
      new (properties: { accountId: string; clientId: string }): OidcGrant
      find(id: string): Promise<OidcGrant | undefined>
    }
  }
}
