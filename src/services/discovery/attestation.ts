/** Finds the manifest that covers a candidate, and verifies its signature. */

import { MANIFEST_PATH } from '../../base/texts/well-known.js'
import { canonical } from '../../config/endpoint.js'
import type { Candidate } from './candidate.js'
import type { FetchDocument } from './documents.js'
import type { ManifestServer } from './manifest.js'
import type { TakeStep } from './progress.js'
import { namesEndpoint } from './trust/judge.js'
import type { Verification } from './trust/jws.js'

/** How manifests are fetched and verified. */
export interface ManifestParts {
  fetch: FetchDocument
  /** Fetch a document again the next time. */
  forget(url: string): void
  verify(fetched: { url: string; bytes: Uint8Array; jws: Uint8Array | undefined }): Promise<Verification>
}

/** A manifest that covers a candidate. */
export interface Attestation {
  url: string
  verification: Verification
  server: ManifestServer | undefined
}

const NONE = 'No manifest'

/** Fetches a manifest and its signature again the next time. */
export function forgetManifest(url: string, { forget }: Pick<ManifestParts, 'forget'>): void {
  forget(url)
  forget(signatureOf(url))
}

/** The manifest that covers a candidate: one that named it, or that of its own host. */
export async function attestationOf(
  candidate: Candidate,
  parts: ManifestParts,
  step: TakeStep,
): Promise<Attestation | undefined> {
  const named = [candidate, ...candidate.alsoFrom].flatMap(({ manifest }) => manifest?.url ?? [])
  const own = candidate.endpoint.kind === 'http' ? [new URL(MANIFEST_PATH, candidate.endpoint.url).href] : []
  const documents = await step(
    'manifest',
    async () => {
      const urls = [...new Set([...named, ...own])]
      const fetched = await Promise.allSettled(urls.map((url) => parts.fetch(url)))
      const found = fetched.flatMap((one, at) =>
        one.status === 'fulfilled' && one.value ? [{ url: urls[at] as string, bytes: one.value.bytes }] : [],
      )
      const failed = fetched.find((one) => one.status === 'rejected')
      if (found.length === 0 && failed) throw failed.reason
      return found
    },
    (found) => (found.length === 0 ? [true, NONE] : [true, found.map(({ url }) => url).join(', ')]),
  )
  if (!documents.value || documents.value.length === 0) return undefined
  const verified = await step(
    'signature',
    () => Promise.all(documents.value.map((one) => verify(one, candidate, parts))),
    (all) => {
      const best = chosen(all, named)
      if (!best) return [true, 'No manifest covers this server']
      const { verification: it } = best
      return it.trusted ? [true, `by ${it.publisher}, key ${it.keyId}`] : [false, it.message]
    },
  )
  return verified.value && chosen(verified.value, named)
}

async function verify(
  { url, bytes }: { url: string; bytes: Uint8Array },
  { endpoint }: Candidate,
  parts: ManifestParts,
): Promise<Attestation> {
  const jws = await parts.fetch(signatureOf(url), { accept: 'application/jose' })
  const verification = await parts.verify({ url, bytes, jws: jws?.bytes })
  // One of the two may be outdated, so both are fetched again the next time.
  if (!verification.trusted && verification.reason === 'signature') forgetManifest(url, parts)
  const server = verification.manifest?.servers.find((one) => namesEndpoint(one, canonical(endpoint)))
  return { url, verification, server }
}

/** The trusted manifest that covers the candidate; otherwise any that covers it; otherwise the one that named it. */
function chosen(all: readonly Attestation[], named: readonly string[]): Attestation | undefined {
  return (
    all.find(({ verification, server }) => verification.trusted && server) ??
    all.find(({ server }) => server) ??
    all.find(({ url }) => named.includes(url))
  )
}

function signatureOf(url: string): string {
  return `${url}.jws`
}
