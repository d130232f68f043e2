/** Lets the servers behind the bridge be found: the manifest of them, and its signature, where clients look for it. */
import type { FastifyInstance } from 'fastify'
import { Fault } from '../protocol/fault.js'

export interface WellKnownOptions {
  /** The document as it is now. */
  published(): Promise<{ manifest: Uint8Array; jws: string | undefined; cacheControl: string }>
}

export const MANIFEST = '/.well-known/mcp.json'
/** Paths that anybody may ask for. */
export const PUBLIC: readonly string[] = [MANIFEST, `${MANIFEST}.jws`]

export async function wellKnown(app: FastifyInstance, { published }: WellKnownOptions): Promise<void> {
  app.get(MANIFEST, async (_request, reply) => {
    const { manifest, cacheControl } = await published()
    // To the byte: the signature is over these.
    return reply.type('application/json').header('cache-control', cacheControl).send(Buffer.from(manifest))
  })
  app.get(`${MANIFEST}.jws`, async (_request, reply) => {
    const { jws, cacheControl } = await published()
    if (jws === undefined) throw new Fault('noSuchPath', 'The manifest is not signed')
    return reply.type('application/jose').header('cache-control', cacheControl).send(jws)
  })
}
