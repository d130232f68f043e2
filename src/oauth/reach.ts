/** Which hosts may be reached to sign in to a server: public ones, the server's own, and those of the operator. */
import { parseAddress } from '../net/address.js'
import { bare } from '../net/connect.js'
import type { FetchOptions } from '../net/fetch.js'
import { isLoopback } from '../net/guard.js'

export interface ReachSettings {
  /** Hosts and networks of issuers that are not public. */
  allow?: readonly string[] | undefined
  issuer?: string | undefined
  authServerMetadataUrl?: string | undefined
}

/** How a test or an operator makes the network another one. */
export type Network = Pick<FetchOptions, 'resolve' | 'dial' | 'ca'>

/** Of a document of metadata. */
const DOCUMENT_BYTES = 64 * 1024
const TIME_LIMIT = 8_000

export type Reach = Pick<FetchOptions, 'allowed' | 'allowLoopback' | 'maxBytes' | 'timeLimit'> & Network

/**
 * What may be reached for the server at `url`. Its own host is one that the operator has named; this machine and plain HTTP
 * are for servers that are there themselves.
 */
export function reachOf(url: string, settings: ReachSettings, network: Network = {}): Reach {
  const { allow = [], issuer, authServerMetadataUrl } = settings
  const hosts = [url, issuer, authServerMetadataUrl].flatMap((one) => (one === undefined ? [] : [hostOf(one)]))
  const [own = ''] = hosts
  return {
    ...network,
    allowed: [...allow, ...hosts],
    allowLoopback: isLoopback(own),
    maxBytes: DOCUMENT_BYTES,
    timeLimit: TIME_LIMIT,
  }
}

function hostOf(address: string): string {
  return bare(parseAddress(address).hostname)
}
