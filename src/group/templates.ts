/** Checks whether a template of URIs may expand to a URI (RFC 6570). */

/**
 * Whether the URI contains the fixed parts of the template in order. The values of variables are not checked, so it takes
 * linear time for any template.
 */
export function mayExpandTo(template: string, uri: string): boolean {
  const [first = '', ...fixed] = template.split(/\{[^{}]*\}/)
  const last = fixed.pop()
  if (last === undefined) return template === uri
  if (!uri.startsWith(first) || !uri.endsWith(last)) return false
  const end = uri.length - last.length
  let at = first.length
  for (const part of fixed) {
    const found = uri.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= end
}
