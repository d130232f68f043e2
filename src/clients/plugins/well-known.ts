/** Serves the manifest of the servers behind the bridge, and its signature, at their well-known addresses. */

import type { FastifyInstance } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { FOR_PAGES } from '../../base/texts/for-pages.js'
import { MANIFEST_PATH } from '../../base/texts/well-known.js'
import { allowPages, OF_DOCUMENT } from './documents.js'

/** Where the manifest comes from. */
export interface WellKnownOptions {
  /** The current document. */
  published(): Promise<{ manifest: Uint8Array; jws: string | undefined; cacheControl: string }>
}

/** Paths without authentication. */
export const PUBLIC: readonly string[] = [MANIFEST_PATH, `${MANIFEST_PATH}.jws`]

/** A Fastify plugin that serves both documents. */
export async function wellKnown(app: FastifyInstance, { published }: WellKnownOptions): Promise<void> {
  for (const path of PUBLIC) allowPages(app, path)
  app.get(MANIFEST_PATH, OF_DOCUMENT, async (_request, reply) => {
    const { manifest, cacheControl } = await published()
    // Exactly the signed bytes.
    return reply
      .type('application/json')
      .headers({ ...FOR_PAGES, 'cache-control': cacheControl })
      .send(Buffer.from(manifest))
  })
  app.get(`${MANIFEST_PATH}.jws`, OF_DOCUMENT, async (_request, reply) => {
    const { jws, cacheControl } = await published()
    if (jws === undefined) throw new Fault('noSuchPath', 'The manifest is not signed')
    return reply
      .type('application/jose')
      .headers({ ...FOR_PAGES, 'cache-control': cacheControl })
      .send(jws)
  })
}
