/** Finds the values that a JSON Schema marks as secret: `writeOnly: true` or `format: password`. */
import { ANY, LONGEST, MANY, type PathStep } from './paths.js'
import { isRecord } from './record.js'
import { referred } from './schema-reference.js'
import type { JsonRecord } from './try/types.js'

type Path = readonly PathStep[]

/** Levels of a schema that are examined. Deeper values count as secret. */
const DEEPEST = 32
/** Most secret values, and most recursive schemas. */
const MOST = 1_000
/** Keywords with schemas, and the values these apply to: the same value, all below it, or the members they name. */
const KEYWORDS: readonly (readonly [keyword: string, of: 'same' | 'below' | 'named'])[] = [
  ['properties', 'named'],
  ['prefixItems', 'named'],
  ['patternProperties', 'below'],
  ['additionalProperties', 'below'],
  ['unevaluatedProperties', 'below'],
  ['items', 'below'],
  ['additionalItems', 'below'],
  ['unevaluatedItems', 'below'],
  ['contains', 'below'],
  ['allOf', 'same'],
  ['anyOf', 'same'],
  ['oneOf', 'same'],
  ['if', 'same'],
  ['then', 'same'],
  ['else', 'same'],
  ['dependentSchemas', 'same'],
  ['dependencies', 'same'],
]
/** Keywords with a schema for each name. */
const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas', 'dependencies'])
/** Keywords whose references are not followed. */
const ELSEWHERE = ['$dynamicRef', '$recursiveRef', 'contentSchema']

/** The number of schemas that may still be examined. */
export interface Effort {
  left: number
}

/**
 * Patterns of the secret values, including all below them. Unexaminable parts count as secret: references outside the
 * schema, and very deep levels. Undefined if the effort is used up, or if there are too many.
 */
export function secretsIn(schema: unknown, effort: Effort): Path[] | undefined {
  return new Search(schema, effort).run()
}

class Search {
  readonly #root: unknown
  readonly #effort: Effort
  readonly #found: Path[] = []
  /** Recursive schemas: the paths of the outer one, by their keys. */
  readonly #loops = new Map<string, Path>()
  /** Schemas under examination, with their paths. */
  readonly #within = new Map<JsonRecord, Path>()
  /** Examined schemas, with their paths. */
  readonly #done = new Map<JsonRecord, Set<string>>()

  constructor(root: unknown, effort: Effort) {
    this.#root = root
    this.#effort = effort
  }

  run(): Path[] | undefined {
    const isKnown = this.#visit(this.#root, []) && this.#found.length <= MOST && this.#loops.size <= MOST
    return isKnown ? this.#found.map((path) => this.#repeated(path)) : undefined
  }

  /** Examines a schema for the value at a path. Returns false if the effort is used up. */
  #visit(schema: unknown, path: Path): boolean {
    // Values with long paths are hidden in any case.
    if (!isRecord(schema) || lengthOf(path) > LONGEST) return true
    const loop = this.#within.get(schema)
    if (loop) {
      this.#loops.set(keyOf(loop), loop)
      return true
    }
    if (this.#isDone(schema, path)) return true
    if (this.#effort.left-- <= 0) return false
    const { $ref: reference } = schema
    const target = typeof reference === 'string' ? referred(this.#root, reference) : true
    const isUnknown = target === undefined || ELSEWHERE.some((keyword) => keyword in schema)
    if (isSecret(schema) || isUnknown || this.#within.size >= DEEPEST) {
      this.#found.push(path)
      return true
    }
    this.#within.set(schema, path)
    const sufficed = this.#visit(target, path) && KEYWORDS.every((keyword) => this.#each(schema, path, ...keyword))
    this.#within.delete(schema)
    return sufficed
  }

  #each(schema: JsonRecord, path: Path, keyword: string, of: 'same' | 'below' | 'named'): boolean {
    const { [keyword]: value } = schema
    const isList = Array.isArray(value) || (MAPS.has(keyword) && isRecord(value))
    return (isList ? Object.entries(value) : [['', value]]).every(([name, one]) =>
      this.#visit(one, of === 'same' ? path : [...path, of === 'named' ? (name as string) : ANY]),
    )
  }

  #isDone(schema: JsonRecord, path: Path): boolean {
    const key = keyOf(path)
    const paths = this.#done.get(schema) ?? new Set()
    this.#done.set(schema, paths)
    if (paths.has(key)) return true
    paths.add(key)
    return false
  }

  /** A secret below a loop is also secret after any number of rounds. */
  #repeated(path: Path): Path {
    const loops = [...this.#loops.values()].filter((loop) => loop.every((step, i) => step === path[i]))
    const start = Math.min(...loops.map(({ length }) => length))
    return loops.length === 0 ? path : [...path.slice(0, start), MANY, ...path.slice(start)]
  }
}

function lengthOf(path: Path): number {
  return path.reduce((length, step) => length + (typeof step === 'string' ? step.length : 0), path.length)
}

/** Identifies a path. */
export function keyOf(path: Path): string {
  return JSON.stringify(path.map((step) => (typeof step === 'symbol' ? [step.description] : step)))
}

function isSecret(schema: JsonRecord): boolean {
  return schema['writeOnly'] === true || schema['format'] === 'password'
}
