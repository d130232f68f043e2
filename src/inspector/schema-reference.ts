/** Follows references within a JSON Schema. */
import { nameOfToken } from '../base/rpc/pointer.js'

/** The target of a `$ref`. Undefined if there is none, if it is in another document, or if it is an anchor. */
export function referred(root: unknown, reference: string): unknown {
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return undefined
  return decoded(reference.slice(2))
    .split('/')
    .map(nameOfToken)
    .reduce<unknown>(
      (at, name) =>
        typeof at === 'object' && at !== null && Object.hasOwn(at, name)
          ? (at as Record<string, unknown>)[name]
          : undefined,
      root,
    )
}

/** The text as it is if it is not percent-encoded. */
function decoded(pointer: string): string {
  try {
    return decodeURIComponent(pointer)
  } catch {
    return pointer
  }
}
