/**
 * The hosts that may be contacted to sign in to a server: public ones, the server's own, and those that the operator
 * allows.
 */

import { parseAddress } from '../../base/net/address.js'
import type { FetchOptions } from '../../base/net/fetch.js'
import { Guard, type GuardOptions, isLoopback } from '../../base/net/guard.js'
import { parseUrl, withoutBrackets } from '../../base/texts/parse-url.js'

/** Settings that allow further hosts. */
export interface ReachSettings {
  /** Hosts and networks of issuers that are not public. */
  allow?: readonly string[] | undefined
  issuer?: string | undefined
  authServerMetadataUrl?: string | undefined
  endpoints?: Readonly<Record<string, string | undefined>> | undefined
}

/** Replaces parts of the network, for tests or by the operator. */
export type Network = Pick<FetchOptions, 'resolve' | 'proxyOf' | 'dial' | 'ca' | 'tlsFor' | 'timeLimit'>

/** Bounds of one metadata document: bytes, and milliseconds. */
const METADATA_BYTES = 64 * 1024
const TIME_LIMIT = 8_000

/** What may be contacted, and within which bounds. */
export type Reach = Pick<
  FetchOptions,
  'allowed' | 'allowLoopback' | 'plain' | 'decompress' | 'maxBytes' | 'timeLimit'
> &
  Network

/**
 * The hosts that may be contacted for the server at `url`. The operator has named its host, so that is allowed. This
 * machine and plain HTTP are allowed only if the server itself is on this machine.
 */
export function reachOf(url: string, settings: ReachSettings, network: Network = {}): Reach {
  const { allow = [], issuer, authServerMetadataUrl, endpoints = {} } = settings
  const hosts = [url, issuer, authServerMetadataUrl, ...Object.values(endpoints)].flatMap((one) =>
    one === undefined ? [] : [hostOf(one)],
  )
  return foundReach(url, { allowed: [...allow, ...hosts], allowLoopback: true }, network)
}

/**
 * The hosts that may be contacted for an identity provider that checks callers. Without TLS, those that the operator has given an
 * http:// address and has allowed.
 */
export function issuerReach(
  { issuer, jwksUri }: { issuer: string; jwksUri?: string | undefined },
  allow: readonly string[] = [],
  network: Network = {},
): Reach {
  const guard = new Guard({ allowed: allow })
  const plain = [issuer, jwksUri].flatMap((one) => (one?.startsWith('http:') ? [hostOf(one)] : []))
  // The name of a proxy may be no address.
  const reach = reachOf(
    parseUrl(issuer) ? issuer : (jwksUri ?? issuer),
    { allow, authServerMetadataUrl: jwksUri },
    network,
  )
  return { ...reach, plain: plain.filter((host) => guard.lists(host)), decompress: true }
}

/**
 * The hosts that may be contacted for a server at `url` that discovery has found. Nobody has chosen its host, so that is
 * allowed only if `guard` allows it.
 */
export function foundReach(
  url: string,
  { allowed, allowLoopback }: Pick<GuardOptions, 'allowed' | 'allowLoopback'>,
  network: Network = {},
): Reach {
  const isHere = isLoopback(hostOf(url))
  return {
    timeLimit: TIME_LIMIT,
    ...network,
    allowed,
    allowLoopback: allowLoopback && isHere,
    maxBytes: METADATA_BYTES,
  }
}

function hostOf(address: string): string {
  return withoutBrackets(parseAddress(address).hostname)
}
