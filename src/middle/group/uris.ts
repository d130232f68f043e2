/**
 * Translates URIs of resources to those in a group, `<prefix>+<uri>`, and back. That is a legal URI, because a scheme may
 * contain "+". Hosts recognize user interfaces by `ui://`, so in these the prefix follows the scheme.
 */
import { consistsOf } from '../../base/texts/fixed-parts.js'
import type { Prefixed } from './names.js'

const PLUS = '+'
const OF_APPS = 'ui://'

/** The URI, or the template of URIs, as clients of the group see it. */
export function prefixedUri({ prefix }: Prefixed, uri: string): string {
  const isOfApp = startsWithScheme(uri)
  return isOfApp ? uri.slice(0, OF_APPS.length) + prefix + PLUS + uri.slice(OF_APPS.length) : prefix + PLUS + uri
}

/** The server of a URI in the group, and the server's own URI; undefined if no server has the prefix. */
export function splitUri<M extends Prefixed>(
  members: readonly M[],
  uri: string,
): { member: M; uri: string } | undefined {
  const scheme = startsWithScheme(uri) ? uri.slice(0, OF_APPS.length) : ''
  const rest = uri.slice(scheme.length)
  const at = rest.indexOf(PLUS)
  if (at < 0) return undefined
  // Schemes are case-insensitive, and programs write them in lower case.
  const given = rest.slice(0, at).toLowerCase()
  const member = members.find(({ prefix }) => prefix.toLowerCase() === given)
  return member && { member, uri: scheme + rest.slice(at + PLUS.length) }
}

function startsWithScheme(uri: string): boolean {
  return uri.slice(0, OF_APPS.length).toLowerCase() === OF_APPS
}

/** Whether a template (RFC 6570) may expand to a URI: its fixed parts are there in order. Values are not checked. */
export function mayExpandTo(template: string, uri: string): boolean {
  return consistsOf(template.split(/\{[^{}]*\}/), uri)
}
