/** How clients reach the bridge: by which protocol, host and path prefix. Trusted proxies in front of it say so in headers. */

import { BlockList, isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { PROTECTED_RESOURCE } from '../../base/texts/well-known.js'
import { prefixOf } from './protected-resource.js'

/** How a client has reached the bridge with a request. */
export interface Reached {
  /** The host that the client has named, with its port; undefined if it has named none. */
  host(request: FastifyRequest): string | undefined
  /** The protocol and the host. */
  origin(request: FastifyRequest): string
  /** The path that proxies have removed, such as `/tools`; or empty. */
  prefix(request: FastifyRequest): string
}

/** The addresses of endpoints, as clients know them. */
export interface PublicAddresses {
  /** The path that clients put before the paths of the bridge, and a proxy removes. */
  prefix(request: FastifyRequest): string
  /** The address of an endpoint, by its path at the bridge. */
  endpoint(request: FastifyRequest, path: string): string
  /** The address of its metadata (RFC 9728). */
  metadata(request: FastifyRequest, path: string): string
  /** The paths at which the bridge serves that metadata. */
  metadataPaths(path: string): readonly string[]
}

/** A path without an empty segment, which could name another host, and without a slash at its end. */
const PREFIX = /^(?:\/[\w.~!$&'()*+;=:@%-]+)+$/
const MAX_REMOVED = 256

/**
 * Reads how clients reach the bridge. Only the headers of these proxies count, by address and network. A request that another
 * replica has forwarded has the headers of the proxy in front of that one.
 */
export function reachedThrough(proxies: readonly string[], isForwarded: (request: FastifyRequest) => boolean): Reached {
  const isProxy = networks(proxies)
  const said = (request: FastifyRequest, header: string): string[] => {
    const value = proxies.length > 0 && request.headers[`x-forwarded-${header}`]
    if (!value || !(isProxy(request.raw.socket.remoteAddress) || isForwarded(request))) return []
    return [value]
      .flat()
      .join(',')
      .split(',')
      .flatMap((one) => one.trim() || [])
  }
  // Of several proxies in a row, the last one is known.
  const host = (request: FastifyRequest) => said(request, 'host').at(-1) ?? request.headers.host
  const protocol = (request: FastifyRequest) => {
    const proxy = said(request, 'proto').at(-1)?.toLowerCase()
    if (proxy === 'https' || proxy === 'http') return proxy
    return (request.raw.socket as { encrypted?: boolean }).encrypted ? 'https' : 'http'
  }
  return {
    host,
    origin: (request) => `${protocol(request)}://${host(request)?.toLowerCase() ?? ''}`,
    prefix: (request) => {
      // Each of them has removed a part.
      const prefix = said(request, 'prefix')
        .map((one) => one.replace(/\/$/, ''))
        .join('')
      return prefix.length <= MAX_REMOVED && PREFIX.test(prefix) ? prefix : ''
    },
  }
}

/** The addresses of endpoints with these paths: below `publicUrl`, or else as each request has reached the bridge. */
export function publicAddresses(
  publicUrl: string | undefined,
  paths: readonly string[],
  reached: Reached,
): PublicAddresses {
  if (publicUrl === undefined)
    return {
      prefix: reached.prefix,
      endpoint: (request, path) => reached.origin(request) + reached.prefix(request) + path,
      // Beside the prefix, a proxy could not tell whose it is.
      metadata: (request, path) => reached.origin(request) + reached.prefix(request) + PROTECTED_RESOURCE + path,
      metadataPaths: (path) => [PROTECTED_RESOURCE + path],
    }
  const { origin, pathname } = new URL(publicUrl)
  const prefix = prefixOf(pathname, paths)
  const known = new Set(paths.map((path) => PROTECTED_RESOURCE + prefix + path))
  return {
    prefix: () => prefix,
    endpoint: (_request, path) => origin + prefix + path,
    metadata: (_request, path) => origin + PROTECTED_RESOURCE + prefix + path,
    // As clients request them, and without the prefix that a proxy may remove there, too.
    metadataPaths: (path) => [
      PROTECTED_RESOURCE + prefix + path,
      ...(known.has(PROTECTED_RESOURCE + path) ? [] : [PROTECTED_RESOURCE + path]),
    ],
  }
}

/** Whether an address is one of these addresses, or in one of these networks. */
function networks(all: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList()
  for (const one of all) {
    const [address = '', bits] = one.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return (text) => {
    const [address = ''] = text?.split('%', 1) ?? []
    const version = isIP(address)
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }
}
