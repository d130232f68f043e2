/** What a list of tools costs: a model reads the definitions of all of them before it does anything. */

/** About so many characters of JSON are a token of a model. */
const PER_TOKEN = 4
/** Thousands of tokens above which a list is worth a word. */
const MANY = 20

const ADVICE = 'choose some with "tools" of their servers, or set "search" of a group'

/** Says how many tokens a list of tools takes, and what to do; undefined if that are few. */
export function manyTokens(characters: number, advice = ADVICE): { tokens: number; message: string } | undefined {
  const thousands = Math.round(characters / PER_TOKEN / 1_000)
  if (thousands <= MANY) return undefined
  const tokens = thousands * 1_000
  return { tokens, message: `the tools are about ${tokens.toLocaleString('en')} tokens for a model: ${advice}` }
}
