/** The addresses of a server that has several: those of a list, and those to which a name leads. */
import { isIP } from 'node:net'
import { ipv4Addresses, systemAddresses } from '../base/net/connect.js'
import { proxiesOf } from '../base/net/proxy.js'
import { withoutBrackets } from '../base/texts/parse-url.js'
import { addressesOf, isStdio, type ServerSettings } from '../config/settings.js'
import type { AddressedOptions } from '../servers/addressed.js'
import type { BridgeContext } from './context.js'

/** One of several addresses. */
export interface OneAddress {
  /** As people see it: without what may be secret. */
  name: string
  url: URL
  /** The only IP address to connect to, if the name in `url` has several. */
  ip?: string | undefined
}

/** Finds the addresses, with what each of their names stands for. */
export interface Several extends Pick<AddressedOptions, 'find' | 'changes'> {
  named: ReadonlyMap<string, OneAddress>
  /** All of them, for people. */
  shown: string
}

/** Undefined for a server with a single address. */
export function severalOf(
  own: ServerSettings,
  { env, resolve: given }: Pick<BridgeContext, 'env' | 'resolve'>,
): Several | undefined {
  if (isStdio(own) || own.socket !== undefined) return undefined
  const resolve = given ?? (own.ipv4 ? ipv4Addresses : systemAddresses)
  const proxyOf = proxiesOf(env)
  const urls = addressesOf(own).map((url) => new URL(url))
  // A proxy resolves the name.
  const isName = (url: URL) => own.resolve === 'all' && isIP(hostOf(url)) === 0 && !proxyOf(url)
  const changes = urls.some(isName)
  if (urls.length === 1 && !changes) return undefined
  const named = new Map<string, OneAddress>()
  const addressesAt = async (url: URL): Promise<OneAddress[]> => {
    const name = shownAddress(url)
    if (!isName(url)) return [{ name, url }]
    const ips = await resolve(hostOf(url))
    // A replica may have an address of each family. The first one is of the family that the system prefers.
    return ips
      .filter((ip) => isIP(ip) === isIP(ips[0] ?? ''))
      .toSorted()
      .map((ip) => ({ name: `${name} at ${ip}`, url, ip }))
  }
  const find = async () => {
    const found = (await Promise.all(urls.map(addressesAt))).flat()
    for (const address of found) named.set(address.name, address)
    return found.map(({ name }) => name)
  }
  return { find, changes, named, shown: urls.map(shownAddress).join(', ') }
}

/** An address without user, password and query. */
function shownAddress({ origin, pathname }: URL): string {
  return origin + pathname
}

function hostOf({ hostname }: URL): string {
  return withoutBrackets(hostname)
}
