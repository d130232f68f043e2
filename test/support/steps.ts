/**
 * Counts what work on texts costs in steps rather than in time: characters that are looked at, copied or searched, and
 * elements of arrays that are gone through, by whatever method. What takes steps with the square of a size shows at once.
 */

type Count = (steps: number) => void
type Method = (this: unknown, ...args: unknown[]) => unknown

const lengthOf = (value: unknown) => (value as { length?: number } | null | undefined)?.length ?? 1

/** What one call of a method costs, by its receiver, its arguments and its result. */
type Cost = (self: unknown, args: unknown[], result: unknown) => number

const one: Cost = () => 1
const result: Cost = (_self, _args, result) => 1 + (typeof result === 'string' ? result.length : lengthOf(result))
const whole: Cost = (self) => 1 + lengthOf(self)
const argument: Cost = (_self, [text]) => 1 + lengthOf(text)
/** As far as the searching went. */
const search: Cost = (self, [, from], found) =>
  1 + Math.max(0, ((found as number) < 0 ? lengthOf(self) : (found as number)) - Number(from ?? 0))
const searchBack: Cost = (self, [, from], found) =>
  1 + Math.max(0, Math.min(lengthOf(self), Number(from ?? Number.POSITIVE_INFINITY)) - Math.max(0, found as number))

const COSTS: [prototype: object, costs: Record<string, Cost>][] = [
  [
    String.prototype,
    {
      charCodeAt: one,
      charAt: one,
      codePointAt: one,
      at: one,
      slice: result,
      substring: result,
      indexOf: search,
      lastIndexOf: searchBack,
      includes: whole,
      startsWith: argument,
      endsWith: argument,
      split: whole,
      replace: whole,
      replaceAll: whole,
      match: whole,
      matchAll: whole,
      trim: whole,
      trimEnd: whole,
      trimStart: whole,
      toLowerCase: whole,
      repeat: result,
      padEnd: result,
    },
  ],
  [
    Array.prototype,
    {
      push: (_self, args) => args.length,
      concat: result,
      slice: result,
      splice: whole,
      shift: one,
      unshift: whole,
      map: whole,
      flatMap: whole,
      flat: whole,
      filter: whole,
      find: whole,
      findLast: whole,
      findIndex: whole,
      some: whole,
      every: whole,
      forEach: whole,
      reduce: whole,
      indexOf: search,
      includes: whole,
      join: result,
      reverse: whole,
      sort: whole,
      entries: one,
      at: one,
    },
  ],
  [
    Object.getPrototypeOf(Uint8Array.prototype) as object,
    {
      indexOf: search,
      includes: whole,
      subarray: one,
      slice: result,
      set: argument,
      every: whole,
      map: whole,
      at: one,
    },
  ],
  [TextDecoder.prototype, { decode: argument }],
  [TextEncoder.prototype, { encode: argument }],
  [JSON, { parse: argument, stringify: result }],
]

/** How many steps `work` takes, which has to be synchronous. */
export function stepsOf(work: () => void): number {
  let steps = 0
  let counting = false
  const restore = instrument((more) => {
    if (counting) steps += more
  })
  try {
    counting = true
    work()
  } finally {
    counting = false
    restore()
  }
  return steps
}

function instrument(count: Count): () => void {
  const undo: (() => void)[] = []
  const put = (prototype: object, name: PropertyKey, method: Method) => {
    const before = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor
    Object.defineProperty(prototype, name, { ...before, value: method })
    undo.push(() => Object.defineProperty(prototype, name, before))
  }
  for (const [prototype, costs] of COSTS) {
    for (const [name, cost] of Object.entries(costs)) {
      const method = (prototype as Record<string, Method>)[name] as Method
      put(prototype, name, function counted(this: unknown, ...args: unknown[]) {
        const result = Reflect.apply(method, this, args)
        count(cost(this, args, result))
        return result
      })
    }
  }
  // Every loop over an array, and every copy of one by `...`, goes through its iterator.
  const values = Array.prototype[Symbol.iterator] as Method
  put(Array.prototype, Symbol.iterator, function counted(this: unknown) {
    count(1 + lengthOf(this))
    return Reflect.apply(values, this, [])
  })
  for (const name of ['test', 'exec'] as const) {
    const method = RegExp.prototype[name] as Method
    put(RegExp.prototype, name, function counted(this: unknown, ...args: unknown[]) {
      const pattern = this as RegExp
      const from = pattern.sticky || pattern.global ? pattern.lastIndex : 0
      const result = Reflect.apply(method, pattern, args)
      const to = pattern.sticky || pattern.global ? pattern.lastIndex : lengthOf(args[0])
      count(1 + Math.max(0, to - from))
      return result
    })
  }
  return () => {
    for (const one of undo.reverse()) one()
  }
}
