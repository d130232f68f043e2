/** Serves the metadata of the authorization server at the root of the bridge, where clients of 2025-03-26 look. */
import type { FastifyInstance } from 'fastify'
import { publish } from './documents.js'

export interface IssuerMetadataOptions {
  /** The document as the issuer publishes it. Rejects with a Fault if there is none. */
  find(): Promise<object>
}

/** The well-known path of the metadata of an authorization server (RFC 8414, section 3.1). */
export const ISSUER_METADATA = '/.well-known/oauth-authorization-server'

export async function issuerMetadata(app: FastifyInstance, { find }: IssuerMetadataOptions): Promise<void> {
  publish(app, ISSUER_METADATA, async () => JSON.stringify(await find()))
}
