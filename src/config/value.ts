/** Unchecked values of a configuration: any JSON. */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value under these keys; undefined if there is none. */
export function valueAt(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((one, key) => (isObject(one) && Object.hasOwn(one, key) ? one[key] : undefined), value)
}

/** The value under a dotted path, whose keys may contain dots. */
export function valueUnder(value: unknown, path: string): unknown {
  if (path === '') return value
  if (typeof value !== 'object' || value === null) return undefined
  const key = Object.keys(value).find((one) => path === one || path.startsWith(`${one}.`))
  return key === undefined ? undefined : valueUnder((value as Record<string, unknown>)[key], path.slice(key.length + 1))
}
