/** Hosts and origins in one spelling: lower case, ASCII, and the shortest form of an address. */
import { parseUrl } from './parse-url.js'

/** A host and its port. An IPv6 address has brackets. */
const HOST = /^(\[[\da-f:.]+\]|[^\s:/@?#\\[\]<>^|%,*"'.][^\s:/@?#\\[\]<>^|%,*"']*)(?::(\d{1,5}))?$/i
const ALL_BELOW = '*.'

interface Host {
  name: string
  /** Undefined for all ports. */
  port: string | undefined
}

/** Reads `host` or `host:port`; undefined if it is neither. */
function readHost(text: string): Host | undefined {
  const [, written = '', digits] = HOST.exec(text) ?? []
  const name = parseUrl(`http://${written}/`)?.hostname.replace(/\.$/, '')
  const port = digits === undefined ? undefined : Number(digits)
  if (!name || port === 0 || (port ?? 0) > 65_535) return undefined
  return { name, port: port?.toString() }
}

/** Whether a text is a host, with or without a port, or `*.` and a name for all names below it. */
export function isHost(text: string): boolean {
  const host = readHost(withoutStar(text))
  return host !== undefined && (!text.startsWith(ALL_BELOW) || /[a-z]/.test(host.name))
}

/** Hosts that requests may name in their Host header. */
export interface AllowedHosts {
  /** Names that are allowed with each port, as nearly all requests write them: looked up first. */
  readonly plain: ReadonlySet<string>
  /** Whether a host in any other spelling is one of them. */
  has(named: string): boolean
}

/** A host without a port is allowed with each; one with a port also where the client leaves out the port of its scheme. */
export function allowedHosts(allowed: readonly string[]): AllowedHosts {
  const [names, below] = [new Map<string, Set<string | undefined>>(), new Map<string, Set<string | undefined>>()]
  for (const one of allowed) {
    const { name, port } = readHost(withoutStar(one)) ?? { name: one.toLowerCase(), port: undefined }
    const where = one.startsWith(ALL_BELOW) ? below : names
    where.set(name, (where.get(name) ?? new Set()).add(port))
  }
  const fits = (ports: ReadonlySet<string | undefined> | undefined, port: string | undefined) =>
    ports !== undefined &&
    (ports.has(undefined) || (port === undefined ? ports.has('443') || ports.has('80') : ports.has(port)))
  const plain = new Set([...names].flatMap(([name, ports]) => (ports.has(undefined) ? name : [])))
  const has = (named: string) => {
    const host = readHost(named)
    if (!host) return false
    const { name, port } = host
    if (fits(names.get(name), port)) return true
    if (below.size === 0) return false
    const labels = name.split('.')
    return labels.some((_label, index) => index > 0 && fits(below.get(labels.slice(index).join('.')), port))
  }
  return { plain, has }
}

function withoutStar(text: string): string {
  return text.startsWith(ALL_BELOW) ? text.slice(ALL_BELOW.length) : text
}

/** The origin of an address as browsers send it; undefined if there is more in the address than an origin, or less. */
export function originOf(text: string): string | undefined {
  const url = parseUrl(text)
  if (!url || !/^[a-z][a-z\d+.-]*:\/\/[^/?#@*\s]+\/?$/i.test(text)) return undefined
  return url.origin === 'null' ? text.toLowerCase().replace(/\/$/, '') : url.origin
}
