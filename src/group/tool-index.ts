/** Finds tools by words (BM25) in their names, titles, descriptions and names of arguments. */
import { type Json, keys, objectIn, type Payload, parseObject, value } from '../rpc/splice.js'

/** Finds the best tools for a query, best first: their positions in the list. */
export type Find = (query: string, limit: number) => number[]

/** Most tools in an index. Further ones cannot be found. */
export const MAX_INDEXED_TOOLS = 5_000
/** Longest texts that are indexed, in characters, and most arguments. */
const MAX_INDEXED_TEXT = 2_000
const MAX_INDEXED_NAME = 300
const MAX_INDEXED_ARGUMENTS = 100
/** Most words of a query. */
const MAX_QUERY_WORDS = 32
/** Tools that are indexed in one turn of the event loop. */
const AT_ONCE = 50

/**
 * Words of any script, and parts of names: `getFile_content2` has get, file, content and 2. In Chinese and Japanese,
 * words are not separated, so each character counts.
 */
const WORDS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{M}]+|\p{Lu}|\p{N}+/gu

function wordsIn(text: string): string[] {
  return text.normalize('NFKC').match(WORDS) ?? []
}

interface Indexed {
  id: number
  name: string
  title: string
  description: string
  arguments: string
}

/** Indexes tools, given as their definitions in JSON. Loads the library on first use. */
export async function indexOf(tools: readonly Json[]): Promise<Find> {
  const { default: MiniSearch } = await import('minisearch')
  const index = new MiniSearch<Indexed>({
    fields: ['name', 'title', 'description', 'arguments'],
    tokenize: wordsIn,
    processTerm: (word) => word.toLowerCase(),
    searchOptions: {
      boost: { name: 3, title: 2 },
      prefix: (word) => word.length > 2,
      fuzzy: (word) => (word.length > 4 ? 0.2 : false),
    },
  })
  const known = tools.slice(0, MAX_INDEXED_TOOLS).map(indexed)
  await index.addAllAsync(known, { chunkSize: AT_ONCE })
  const byName = new Map(known.map(({ id, name }) => [name, id]))
  return (query, limit) => {
    const words = [...new Set(wordsIn(query))].slice(0, MAX_QUERY_WORDS)
    const exact = byName.get(query.trim())
    const found = index.search(words.join(' ')).map(({ id }) => id as number)
    return [...new Set(exact === undefined ? found : [exact, ...found])].slice(0, limit)
  }
}

function indexed(tool: Json, id: number): Indexed {
  const definition = parseObject(tool)
  return {
    id,
    name: textIn(definition, 'name', MAX_INDEXED_NAME),
    title: textIn(definition, 'title', MAX_INDEXED_NAME),
    description: textIn(definition, 'description', MAX_INDEXED_TEXT),
    arguments: argumentsIn(definition),
  }
}

function argumentsIn(definition: Payload): string {
  const schema = objectIn(definition, 'inputSchema')
  const properties = schema && objectIn(schema, 'properties')
  const names = properties ? keys(properties).slice(0, MAX_INDEXED_ARGUMENTS) : []
  return names.map((name) => name.slice(0, MAX_INDEXED_NAME)).join(' ')
}

function textIn(definition: Payload, key: string, most: number): string {
  const text = value(definition, key)
  return typeof text === 'string' ? text.slice(0, most) : ''
}
