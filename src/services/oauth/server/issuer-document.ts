/**
 * The metadata of an issuer as it publishes them, for clients of 2025-03-26: they know no metadata of resources, and look for
 * the authorization server at the server itself.
 */
import { Fault } from '../../../base/fault/fault.js'
import { getObject } from '../get-object.js'
import { sameIssuer } from '../issuer.js'
import { quoted } from '../quoted.js'
import type { Reach } from '../reach.js'
import { issuerMetadataPlaces } from '../well-known.js'

/** Milliseconds for which a document is cached, and a failure. */
const KEPT = 600_000
const KEPT_FAILURE = 5_000

export interface IssuerDocumentOptions {
  issuer: string
  reach: Reach
  /** In milliseconds. */
  now: () => number
}

export class IssuerDocument {
  readonly #options: IssuerDocumentOptions
  #last: { until: number; document: Promise<object> } | undefined

  constructor(options: IssuerDocumentOptions) {
    this.#options = options
  }

  /** The document. Rejects with a Fault if the issuer does not give it. */
  find(): Promise<object> {
    const { now } = this.#options
    if (this.#last && this.#last.until > now()) return this.#last.document
    const document = this.#fetch()
    const last = { until: now() + KEPT, document }
    this.#last = last
    document.catch(() => {
      last.until = now() + KEPT_FAILURE
    })
    return document
  }

  async #fetch(): Promise<object> {
    const { issuer, reach } = this.#options
    let cause: unknown
    for (const place of issuerMetadataPlaces(issuer)) {
      const got = await getObject(place, reach).catch((error: unknown) => {
        cause = error
      })
      if (got?.kind === 'object' && 'issuer' in got.value && sameIssuer(String(got.value.issuer), issuer))
        return got.value
    }
    throw new Fault('authUnavailable', `The metadata of ${quoted(issuer)} are unavailable`, { cause, retryAfter: 5 })
  }
}
