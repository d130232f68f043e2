/** Serves the manifest of the servers behind the bridge, and its signature, at their well-known addresses. */
import type { FastifyInstance } from 'fastify'
import { Fault } from '../fault/fault.js'

/** Where the manifest comes from. */
export interface WellKnownOptions {
  /** The current document. */
  published(): Promise<{ manifest: Uint8Array; jws: string | undefined; cacheControl: string }>
}

/** The path of the manifest. */
const MANIFEST = '/.well-known/mcp.json'
/** Paths without authentication. */
export const PUBLIC: readonly string[] = [MANIFEST, `${MANIFEST}.jws`]

/** A Fastify plugin that serves both documents. */
export async function wellKnown(app: FastifyInstance, { published }: WellKnownOptions): Promise<void> {
  app.get(MANIFEST, async (_request, reply) => {
    const { manifest, cacheControl } = await published()
    // Exactly the signed bytes.
    return reply.type('application/json').header('cache-control', cacheControl).send(Buffer.from(manifest))
  })
  app.get(`${MANIFEST}.jws`, async (_request, reply) => {
    const { jws, cacheControl } = await published()
    if (jws === undefined) throw new Fault('noSuchPath', 'The manifest is not signed')
    return reply.type('application/jose').header('cache-control', cacheControl).send(jws)
  })
}
