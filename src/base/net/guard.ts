/** The hosts that may be contacted: public ones, and those that the operator has listed. */
import { isIP } from 'node:net'
import ip from 'ipaddr.js'
import { parseUrl } from '../texts/parse-url.js'
import { failure } from './failure.js'

/** Which hosts are allowed. */
export interface GuardOptions {
  /** Further hosts (`mcp.corp.example`), addresses (`10.1.2.3`) and networks (`10.0.0.0/8`) that are not public. */
  allowed?: readonly string[] | undefined
  /** Also allow loopback addresses, and plain HTTP to them: for development. */
  allowLoopback?: boolean | undefined
  /** Hosts that may be contacted without TLS, if they are allowed. */
  plain?: readonly string[] | undefined
}

type Network = [ip.IPv4 | ip.IPv6, number]

/** Names of the loopback interface. */
const LOOPBACK_NAME = /^(?:(?:.+\.)?localhost|ip6-localhost|ip6-loopback|(?:.+\.)?localdomain)$/
/** The part of IPv6 that is assigned to the Internet. Everything else counts as internal. */
const GLOBAL_UNICAST = ip.parseCIDR('2000::/3') as Network
/** A public address that serves internal metadata to virtual machines of Azure. */
const WIRE_SERVER = '168.63.129.16'

/** Whether a host is this machine, by its name or address. */
export function isLoopback(host: string): boolean {
  return isIP(host) === 0 ? LOOPBACK_NAME.test(host) : ip.process(host).range() === 'loopback'
}

/** Checks hosts and their addresses. */
export class Guard {
  readonly #hosts = new Set<string>()
  readonly #networks: Network[] = []
  readonly #plain: ReadonlySet<string>
  readonly #loopback: boolean

  constructor({ allowed = [], allowLoopback = false, plain = [] }: GuardOptions = {}) {
    this.#loopback = allowLoopback
    this.#plain = new Set(plain)
    for (const one of allowed) {
      if (isIP(one) !== 0) this.#networks.push([ip.parse(one), isIP(one) === 4 ? 32 : 128])
      else if (ip.isValidCIDR(one)) this.#networks.push(ip.parseCIDR(one))
      else this.#hosts.add(hostName(one))
    }
  }

  /** Whether a host is one of those that are allowed by name or address. */
  lists(host: string): boolean {
    return this.#hosts.has(host) || (isIP(host) !== 0 && this.#isListed(ip.parse(host)))
  }

  /** Whether a host may be contacted without TLS. */
  isPlain(host: string): boolean {
    return this.#plain.has(host)
  }

  /** Throws a Failure if a host's name is one of this machine. */
  checkName(host: string): void {
    if (LOOPBACK_NAME.test(host) && !this.#loopback && !this.#hosts.has(host))
      throw failure('guard', 'internal-name', `${host} is a name of this machine`)
  }

  /**
   * Throws a Failure unless all addresses of a host are allowed, because any of them may be used. Without TLS
   * (`plain`), only loopback addresses are allowed, and hosts that are listed for that.
   */
  checkAddresses(host: string, addresses: readonly string[], plain: boolean): void {
    for (const address of addresses) {
      // Addresses in unusual spellings are not interpreted.
      const parsed = isIP(address) === 0 ? undefined : ip.parse(address)
      const loopback = this.#loopback && parsed?.range() === 'loopback'
      const mustBeHere = plain && !this.isPlain(host)
      if (mustBeHere && parsed?.range() === 'loopback' && !loopback)
        throw failure('guard', 'plain-http', `${host} is this machine, and loopback addresses are not allowed`)
      if (mustBeHere && !loopback)
        throw failure(
          'guard',
          'plain-http',
          `Without TLS, only this machine may be contacted, and ${host} is another one`,
        )
      if (!loopback && !(parsed && (this.#hosts.has(host) || this.#isListed(parsed) || isPublic(parsed))))
        throw failure('guard', 'internal-address', `${host} resolves to ${address}, which is not a public address`)
    }
  }

  #isListed(address: ip.IPv4 | ip.IPv6): boolean {
    return this.#networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
  }
}

/** Whether an address is on the public Internet, including an address that is embedded in it. */
function isPublic(address: ip.IPv4 | ip.IPv6): boolean {
  if (address.range() !== 'unicast') return false
  return address instanceof ip.IPv6 ? address.match(...GLOBAL_UNICAST) : address.toString() !== WIRE_SERVER
}

/** A host in ASCII and lower case. */
function hostName(text: string): string {
  const url = text === '' || /[\s:/?#@\\]/.test(text) ? undefined : parseUrl(`https://${text}`)
  if (!url) throw new TypeError(`"${text}" is neither a host nor an address nor a network like 10.0.0.0/8`)
  return url.hostname.replace(/\.$/, '')
}
