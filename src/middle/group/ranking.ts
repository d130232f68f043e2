/** Ranks tools for a question (BM25): those that have more of its words, and rarer ones. */
import { isOneSlipApart } from '../../base/texts/typo.js'
import { inTurns } from '../../base/time/in-turns.js'
import { type AskedWord, askedIn, isTableWord, othersFor, stemOf, tableWords } from './search-words.js'
import type { ToolIndex } from './tool-index.js'

/** A tool: the number of its index, and its position there. */
export interface Hit {
  index: number
  tool: number
}

const MAX_ASKED_WORDS = 32
/** Shortest words that may be the beginning of another one, and that may have a slip. In letters. */
const SHORTEST_BEGINNING = 3
const SHORTEST_MISSPELT = 4
/** How sure it is that a word of a tool is meant by one of the question. */
const SAME_MEANING = 0.6
const BEGINNING = 0.5
const MISSPELT = 0.6
/** The same of a word that is the beginning of another one: `fiel` may be `field`, or a slip for `file`. */
const PERHAPS_MISSPELT = 0.4
/** How soon a word that occurs more often counts no more (k1 of BM25). */
const SATURATION = 1.2

/** The best tools for a question, best first. */
export async function ranked(indexes: readonly ToolIndex[], question: string, limit: number): Promise<Hit[]> {
  const tools = indexes.reduce((sum, { count }) => sum + count, 0)
  const scores = indexes.map(() => new Map<number, number>())
  for (const stems of await meant(indexes, askedIn(question).slice(0, MAX_ASKED_WORDS))) {
    const weights = indexes.map((index) => weightsIn(index, stems))
    const having = weights.reduce((sum, { size }) => sum + size, 0)
    const rarity = Math.log(1 + (tools - having + 0.5) / (having + 0.5))
    for (const [i, each] of weights.entries())
      for (const [tool, weight] of each) {
        const score = (rarity * weight) / (weight + SATURATION)
        scores[i]?.set(tool, (scores[i]?.get(tool) ?? 0) + score)
      }
  }
  return scores
    .flatMap((each, index) => [...each].map(([tool, score]) => ({ index, tool, score })))
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
}

/** By word of a question the stems that it may mean, and how sure that is. */
async function meant(indexes: readonly ToolIndex[], asked: readonly AskedWord[]): Promise<Map<string, number>[]> {
  const all = asked.map(({ stem }) => new Map(othersFor(stem).map((other) => [other, SAME_MEANING])).set(stem, 1))
  const isKnown = asked.map(({ word }) => isTableWord(word))
  const begins = asked.map(() => false)
  /** By word, the known words at its beginning and at its end, by their lengths: `readfile` may be two words. */
  const halves = asked.map(() => ({ first: new Map<number, string>(), last: new Map<number, string>() }))
  await eachWord(indexes, (written, known) => {
    for (const [i, { word, stem }] of asked.entries()) {
      const { length } = written
      if (length >= SHORTEST_BEGINNING && length < word.length) {
        if (word.startsWith(written)) halves[i]?.first.set(length, known)
        if (word.endsWith(written)) halves[i]?.last.set(word.length - length, known)
      }
      if (known === stem) isKnown[i] = true
      else if (stem.length >= SHORTEST_BEGINNING && known.startsWith(stem)) {
        begins[i] = true
        if (!all[i]?.has(known)) all[i]?.set(known, BEGINNING)
      }
    }
  })
  const joined = halves.flatMap(({ first, last }, i) => {
    const at = isKnown[i] || begins[i] ? undefined : [...first.keys()].find((length) => last.has(length))
    return at === undefined ? [] : [first.get(at) as string, last.get(at) as string]
  })
  for (const stem of joined) all.push(new Map([[stem, MISSPELT]]))
  const isMisspelt = asked.map(({ word }, i) => !isKnown[i] && word.length >= SHORTEST_MISSPELT)
  if (!isMisspelt.includes(true)) return all
  const sureness = begins.map((one) => (one ? PERHAPS_MISSPELT : MISSPELT))
  const add = (i: number, stem: string, sure: number) => all[i]?.set(stem, Math.max(all[i]?.get(stem) ?? 0, sure))
  await eachWord(indexes, (written, known) => {
    for (const [i, { word }] of asked.entries())
      if (isMisspelt[i] && isOneSlipApart(written, word)) add(i, known, sureness[i] as number)
  })
  // No tool may have the right word, but one with the same meaning.
  for (const [i, { word }] of asked.entries())
    for (const written of isMisspelt[i] ? tableWords() : [])
      if (isOneSlipApart(written, word))
        for (const other of othersFor(stemOf(written))) add(i, other, SAME_MEANING * (sureness[i] as number))
  return all
}

async function eachWord(indexes: readonly ToolIndex[], act: (word: string, stem: string) => void): Promise<void> {
  for (const index of indexes) for await (const [word, stem] of inTurns(index.words())) act(word, stem)
}

/** What these stems count in each tool that has one of them. */
function weightsIn(index: ToolIndex, stems: ReadonlyMap<string, number>): Map<number, number> {
  const weights = new Map<number, number>()
  for (const [stem, sureness] of stems)
    for (const [tool, weight] of index.placesOf(stem))
      weights.set(tool, Math.max(weights.get(tool) ?? 0, weight * sureness))
  return weights
}
