/** Which hosts may be reached: those that are public, and those that the operator has listed. */
import { isIP } from 'node:net'
import ip from 'ipaddr.js'
import { failure } from './failure.js'

export interface GuardOptions {
  /** Hosts (`mcp.corp.example`), addresses (`10.1.2.3`) and networks (`10.0.0.0/8`) that may be reached though they are not public. */
  allowed?: readonly string[] | undefined
  /** Also the loopback of this machine, and there without TLS: for development. */
  allowLoopback?: boolean | undefined
}

type Network = [ip.IPv4 | ip.IPv6, number]

/** Names of the loopback itself, which nobody has to look up. */
const LOOPBACK_NAME = /^(?:(?:.+\.)?localhost|ip6-localhost|ip6-loopback|(?:.+\.)?localdomain)$/
/** All of IPv6 that has been given out for the Internet. What is outside of it is something else, known or not. */
const GLOBAL_UNICAST = ip.parseCIDR('2000::/3') as Network
/** A public address at which Azure answers only its own machines, about themselves. */
const WIRE_SERVER = '168.63.129.16'

/** Whether a host is this machine, as far as its name or its address says so. */
export function isLoopback(host: string): boolean {
  return isIP(host) === 0 ? LOOPBACK_NAME.test(host) : ip.parse(host).range() === 'loopback'
}

export class Guard {
  readonly #hosts = new Set<string>()
  readonly #networks: Network[] = []
  readonly #loopback: boolean

  constructor({ allowed = [], allowLoopback = false }: GuardOptions = {}) {
    this.#loopback = allowLoopback
    for (const one of allowed) {
      if (isIP(one) !== 0) this.#networks.push([ip.parse(one), isIP(one) === 4 ? 32 : 128])
      else if (ip.isValidCIDR(one)) this.#networks.push(ip.parseCIDR(one))
      else this.#hosts.add(hostName(one))
    }
  }

  /** Throws a Failure where a host says by its name that it is this machine. */
  checkName(host: string): void {
    if (LOOPBACK_NAME.test(host) && !this.#loopback && !this.#hosts.has(host))
      throw failure('guard', 'internal-name', `${host} is a name of this machine`)
  }

  /**
   * Throws a Failure unless every one of these addresses of a host may be connected to: one that may not is enough,
   * because which of them is used is not in our hands. Without TLS (`plain`) only the loopback will do.
   */
  checkAddresses(host: string, addresses: readonly string[], plain: boolean): void {
    for (const address of addresses) {
      // What is no address in its one usual spelling is nothing to make guesses about.
      const parsed = isIP(address) === 0 ? undefined : ip.parse(address)
      const loopback = this.#loopback && parsed?.range() === 'loopback'
      if (plain && !loopback)
        throw failure(
          'guard',
          'plain-http',
          `Without TLS only this machine is reached, and only for development: ${host} is not`,
        )
      if (!loopback && !(parsed && (this.#hosts.has(host) || this.#isListed(parsed) || isPublic(parsed))))
        throw failure('guard', 'internal-address', `${host} leads to ${address}, which is no public address`)
    }
  }

  #isListed(address: ip.IPv4 | ip.IPv6): boolean {
    return this.#networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
  }
}

/** Whether an address is one of the Internet, and leads nowhere else, either by itself or by another one in it. */
function isPublic(address: ip.IPv4 | ip.IPv6): boolean {
  if (address.range() !== 'unicast') return false
  return address instanceof ip.IPv6 ? address.match(...GLOBAL_UNICAST) : address.toString() !== WIRE_SERVER
}

/** A host as it stands in an address: in ASCII and lower case. */
function hostName(text: string): string {
  const address = `https://${text}`
  if (text === '' || /[\s:/?#@\\]/.test(text) || !URL.canParse(address))
    throw new TypeError(`"${text}" is neither a host nor an address nor a network like 10.0.0.0/8`)
  return new URL(address).hostname.replace(/\.$/, '')
}
