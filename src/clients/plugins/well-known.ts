/** Serves the manifest of the servers behind the bridge, and its signature, at their well-known addresses. */

import type { FastifyInstance } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { MANIFEST_PATH } from '../../base/texts/well-known.js'
import { publish } from './documents.js'

/** Where the manifest comes from. */
export interface WellKnownOptions {
  /** The current document. */
  published(): Promise<{ manifest: Uint8Array; jws: string | undefined; cacheControl: string }>
}

/** Paths without authentication. */
export const PUBLIC: readonly string[] = [MANIFEST_PATH, `${MANIFEST_PATH}.jws`]

/** A Fastify plugin that serves both documents. */
export async function wellKnown(app: FastifyInstance, { published }: WellKnownOptions): Promise<void> {
  publish(app, MANIFEST_PATH, async () => {
    const { manifest: body, cacheControl } = await published()
    return { body, cacheControl }
  })
  publish(app, `${MANIFEST_PATH}.jws`, async () => {
    const { jws: body, cacheControl } = await published()
    if (body === undefined) throw new Fault('noSuchPath', 'The manifest is not signed')
    return { body, type: 'application/jose', cacheControl }
  })
}
