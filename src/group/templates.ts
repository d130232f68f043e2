/** Whether a URI may be one of a template (RFC 6570). */

/**
 * Whether the fixed parts of the template follow each other in the URI. What variables may stand for is not checked, so
 * it takes linear time whatever a server sends.
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
