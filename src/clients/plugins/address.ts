/** The address of a client, also behind proxies: some write it with a port, brackets, quotes or a zone. */
import type { FastifyRequest } from 'fastify'
import { parseUrl, withoutBrackets } from '../../base/texts/parse-url.js'

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/
/** An IPv4 address as IPv6: mapped, or behind a NAT64 (RFC 6052). */
const OF_IPV4 = /^(?:::ffff:|64:ff9b::)([\da-f]{1,4}):([\da-f]{1,4})$/
/** In place of what is no address. All such callers are one, so that none can choose who it is for a limit. */
const UNKNOWN_ADDRESS = 'unknown'

/** The address of a client for a limit; of IPv6 the network of 64 bits, which is one client's. */
export function addressOf({ ip }: { ip: string | undefined }): string {
  if (ip === undefined) return 'none'
  const address = plainAddress(ip)
  if (!address.includes(':')) return address
  const [left = [], right = []] = address.split('::').map((half) => half.split(':').filter((part) => part !== ''))
  return [...left, ...Array(8 - left.length - right.length).fill('0'), ...right].slice(0, 4).join(':')
}

/** Makes the header X-Forwarded-For of a request a list of plain addresses. To be called before anything reads the request's address. */
export function plainAddresses({ raw: { headers } }: Pick<FastifyRequest, 'raw'>): void {
  const given = headers['x-forwarded-for']
  if (given === undefined) return
  const entries = String(given)
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  headers['x-forwarded-for'] = entries.map(plainAddress).join(', ')
}

/** An address without what else may be written with it, in its shortest form. */
export function plainAddress(entry: string): string {
  const text = entry.replace(/^"(.*)"$/, '$1')
  const { in: inBrackets, before } = /^(?:\[(?<in>[^\]]*)\]|(?<before>[^:]*))(?::\d{1,5})?$/.exec(text)?.groups ?? {}
  const [address = ''] = (inBrackets ?? before ?? text).split('%', 1)
  if (IPV4.test(address)) return address
  const url = parseUrl(`http://[${address}]`)
  if (!url) return UNKNOWN_ADDRESS
  const shortest = withoutBrackets(url.hostname)
  const mapped = OF_IPV4.exec(shortest)
  if (!mapped) return shortest
  return mapped
    .slice(1)
    .flatMap((part) => [Number.parseInt(part, 16) >> 8, Number.parseInt(part, 16) & 255])
    .join('.')
}
