/** Unchecked values of a configuration: any JSON. */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value under a dotted path, whose keys may contain dots. */
export function valueUnder(value: unknown, path: string): unknown {
  if (path === '') return value
  if (typeof value !== 'object' || value === null) return undefined
  const key = Object.keys(value).find((one) => path === one || path.startsWith(`${one}.`))
  return key === undefined ? undefined : valueUnder((value as Record<string, unknown>)[key], path.slice(key.length + 1))
}
