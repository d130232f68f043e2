/** Checks whether a template of URIs may expand to a URI (RFC 6570). */
import { consistsOf } from '../texts/fixed-parts.js'

/** Whether the URI contains the fixed parts of the template in order. The values of variables are not checked. */
export function mayExpandTo(template: string, uri: string): boolean {
  return consistsOf(template.split(/\{[^{}]*\}/), uri)
}
