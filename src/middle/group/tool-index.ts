/**
 * An index of the tools of one server: which words their names, titles, descriptions and names of arguments have. It counts
 * what it takes, and ends where it has no more room.
 */
import { detach } from '../../base/rpc/source.js'
import { type Json, keys, objectIn, type Payload, parseObject, value } from '../../base/rpc/splice.js'
import { inTurns } from '../../base/time/in-turns.js'
import { stemOf, wordsIn } from './search-words.js'

/** Longest texts that are indexed, in characters, and most arguments. */
const MAX_INDEXED_TEXT = 2_000
const MAX_INDEXED_NAME = 300
const MAX_INDEXED_ARGUMENTS = 100

/** What a text counts, and how many words it usually has: words of a shorter one count more. */
const NAME = { counts: 3, usual: 4 }
const TITLE = { counts: 2, usual: 4 }
const DESCRIPTION = { counts: 1, usual: 30 }
const ARGUMENTS = { counts: 0.5, usual: 8 }
const ABOUT_ARGUMENTS = { counts: 0.4, usual: 40 }
/** How much the length of a text counts, from 0 to 1. */
const BY_LENGTH = 0.6

/** Bytes of an index: without words, of a word, of a stem, and of a stem in one tool. */
const PER_INDEX = 2_000
const PER_WORD = 80
const PER_STEM = 80
const PER_PLACE = 24

/** A tool that has a stem: its position, and what the stem counts there. */
export type WordPlace = readonly [tool: number, weight: number]

export class ToolIndex {
  /** How many tools it has: the first ones of the list. */
  readonly count: number
  readonly bytes: number
  /** The stems of all words. */
  readonly #stems: ReadonlyMap<string, string>
  /** By stem, the last of its places. */
  readonly #last: ReadonlyMap<string, number>
  readonly #tools: Uint32Array
  readonly #weights: Float32Array
  /** The place before each one; -1 if there is none. */
  readonly #before: Int32Array

  constructor({ stems, last, tools, weights, before, count, bytes }: Gathered) {
    this.#stems = stems
    this.#last = last
    this.#tools = Uint32Array.from(tools)
    this.#weights = Float32Array.from(weights)
    this.#before = Int32Array.from(before)
    this.count = count
    this.bytes = bytes
  }

  /** All words, with their stems. */
  words(): Iterable<readonly [word: string, stem: string]> {
    return this.#stems
  }

  /** The tools that have a word with this stem. */
  *placesOf(stem: string): Generator<WordPlace> {
    for (let at = this.#last.get(stem) ?? -1; at >= 0; at = this.#before[at] as number)
      yield [this.#tools[at] as number, this.#weights[at] as number]
  }
}

interface Gathered {
  stems: Map<string, string>
  last: Map<string, number>
  tools: number[]
  weights: number[]
  before: number[]
  count: number
  bytes: number
}

/** Indexes tools, given as their definitions in JSON, until they take more than `most` bytes or `hasRoom` says no. */
export async function indexOf(
  tools: readonly Json[],
  most: number,
  hasRoom: (bytes: number) => boolean = () => true,
): Promise<ToolIndex> {
  const all: Gathered = {
    ...{ stems: new Map(), last: new Map() },
    ...{ tools: [], weights: [], before: [], count: 0, bytes: PER_INDEX },
  }
  for await (const tool of inTurns(tools)) if (!add(all, tool, (bytes) => bytes <= most && hasRoom(bytes))) break
  return new ToolIndex(all)
}

/** Adds the next tool, if there is room for it. */
function add(all: Gathered, tool: Json, hasRoom: (bytes: number) => boolean): boolean {
  const { stems, last } = all
  let bytes = all.bytes
  const weights = new Map<string, number>()
  for (const [word, weight] of weightsOf(parseObject(tool))) {
    const known = stems.get(word)
    const stem = known ?? stemOf(word)
    if (known === undefined) {
      bytes += PER_WORD + 2 * word.length
      stems.set(detach(word), detach(stem))
    }
    if (!weights.has(stem)) bytes += PER_PLACE + (last.has(stem) ? 0 : PER_STEM + 2 * stem.length)
    weights.set(stem, (weights.get(stem) ?? 0) + weight)
  }
  if (!hasRoom(bytes)) return false
  all.bytes = bytes
  for (const [stem, weight] of weights) {
    all.before.push(last.get(stem) ?? -1)
    last.set(last.has(stem) ? stem : detach(stem), all.tools.length)
    all.tools.push(all.count)
    all.weights.push(weight)
  }
  all.count++
  return true
}

/** What each word of a tool counts. */
function weightsOf(tool: Payload): Map<string, number> {
  const weights = new Map<string, number>()
  const annotations = objectIn(tool, 'annotations')
  const title =
    textIn(tool, 'title', MAX_INDEXED_NAME) || (annotations ? textIn(annotations, 'title', MAX_INDEXED_NAME) : '')
  const { names, about } = argumentsIn(tool)
  const texts = [
    [NAME, textIn(tool, 'name', MAX_INDEXED_NAME)],
    [TITLE, title],
    [DESCRIPTION, textIn(tool, 'description', MAX_INDEXED_TEXT)],
    [ARGUMENTS, names.join(' ')],
    [ABOUT_ARGUMENTS, about.join(' ')],
  ] as const
  for (const [{ counts, usual }, text] of texts) {
    const words = wordsIn(text)
    const each = counts / (1 - BY_LENGTH + (BY_LENGTH * words.length) / usual)
    for (const word of words) weights.set(word, (weights.get(word) ?? 0) + each)
  }
  return weights
}

/** The names of a tool's arguments, and their descriptions. */
function argumentsIn(tool: Payload): { names: string[]; about: string[] } {
  const schema = objectIn(tool, 'inputSchema')
  const properties = schema && objectIn(schema, 'properties')
  const names = properties ? keys(properties).slice(0, MAX_INDEXED_ARGUMENTS) : []
  const about: string[] = []
  let left = MAX_INDEXED_TEXT
  for (const name of names) {
    const argument = properties && objectIn(properties, name)
    const text = argument ? textIn(argument, 'description', left) : ''
    left -= text.length
    about.push(text)
  }
  return { names: names.map((name) => name.slice(0, MAX_INDEXED_NAME)), about }
}

function textIn(payload: Payload, key: string, most: number): string {
  const text = value(payload, key)
  return typeof text === 'string' ? text.slice(0, most) : ''
}
