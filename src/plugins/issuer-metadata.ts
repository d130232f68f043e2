/** Serves the metadata of the authorization server where clients of 2025-03-26 look for them: at the root of the bridge. */
import type { FastifyInstance } from 'fastify'

export interface IssuerMetadataOptions {
  /** The document as its issuer publishes it. Rejects with a Fault if it does not. */
  find(): Promise<object>
}

/** The well-known path of the metadata of an authorization server (RFC 8414, section 3.1). */
export const ISSUER_METADATA = '/.well-known/oauth-authorization-server'

/** A Fastify plugin. */
export async function issuerMetadata(app: FastifyInstance, { find }: IssuerMetadataOptions): Promise<void> {
  app.get(ISSUER_METADATA, async (_request, reply) =>
    reply
      .type('application/json')
      .header('cache-control', 'max-age=300')
      .header('access-control-allow-origin', '*')
      .send(JSON.stringify(await find())),
  )
}
