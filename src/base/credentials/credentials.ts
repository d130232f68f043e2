/**
 * Hides credentials in texts for people, for logs and the inspector: those of known forms, and the values of names that say
 * that they are secret.
 */
import { FORMS, HIDDEN } from './forms.js'
import { areSecret, isHeader, isSecret, reachOf } from './names.js'

/** A possible name, including the dashes of a flag. */
const NAME = /[\w-]{1,60}/g
/**
 * The text between a name and its value: the quote after the name, then a sign, a comma before another quote, or the
 * space after a flag. Quotes may be escaped, as in JSON within JSON; signs and brackets encoded, as in addresses.
 */
const BETWEEN =
  /(?:\]|%5D)?(\\{0,9}["'`])?(?:\s{0,9}(=>|:=|[=:]|%3[DA])\s{0,9}|\s{0,9}(,)\s{0,9}(?=\\{0,9}["'`])|\s{1,9}(?=[^\s-]))/iy
const OPENING = /\\{0,9}["'`]/y
/** A value without quotes. A line may have quoted parts, as those of cookies. */
const UNQUOTED = {
  word: /(?:\\(?!["'`])|\$\{[\w:]{1,100}\}|[^\s"'`&;,<>{}()[\]\\]){1,}/y,
  words: /(?:\\(?!["'`])|\$\{[\w:]{1,100}\}|[^\r\n"'`&;,<>{}()[\]\\]){1,}/y,
  line: /(?:="[^"\r\n]{0,2000}"|\\(?!["'`])|[^\r\n"'`\\]){1,}/y,
}
/** Shorter values after a colon do not count as secrets: they are more often punctuation. */
const SHORTEST = 3
/** The text before a name at the start of its line, and how many of its characters are examined. */
const STARTS = /(?:^|[\r\n])[\s-]{0,40}$/
const LOOKED_AT = 41
/** A hint where a credential belongs: the name of its variable, or a sign for one. */
const PLACEHOLDER =
  /^(?:(?:Bearer|Basic|DPoP) (?:\$(?:env:)?[A-Z]\w{0,100}|\$\{[\w:]{1,100}\}|…|<[\w ]{1,40}>)|\$\{[\w:]{1,100}\}[.:]?)$/i
/** An element of XML, and no sign for a credential. */
const ELEMENT = /(?<!\b(?:Bearer|Basic|DPoP) )(<([\w:.-]{1,60})(?:\s[^<>]{0,200})?>)([^<]{1,2000})/g

/** A text for people, with its credentials hidden. */
export function withoutCredentials(text: string): string {
  let shown = text
  for (const { form, shown: replacement } of FORMS) shown = shown.replace(form, replacement)
  return withoutValues(shown).replace(ELEMENT, (all: string, tag: string, name: string) =>
    isSecret(name) ? tag + HIDDEN : all,
  )
}

/** Hides the values after names, as in `password: abc`, `token=abc`, `"secret": {…}` and `--api-key abc`. */
function withoutValues(text: string): string {
  let out = ''
  let copied = 0
  let previous = { name: '', end: -1 }
  for (const { 0: name, index } of text.matchAll(NAME)) {
    const end = index + name.length
    const word = previous.end === index - 1 && text[index - 1] === ' ' ? previous.name : ''
    previous = { name, end }
    if (index < copied) continue
    BETWEEN.lastIndex = end
    const between = BETWEEN.exec(text)
    if (!between || !saysSecret(name, word, between)) continue
    const value = valueAt(text, BETWEEN.lastIndex, { name, index, sign: between[2] })
    if (!value || PLACEHOLDER.test(text.slice(value.start, value.end))) continue
    out += text.slice(copied, value.start) + HIDDEN
    copied = value.end
  }
  return out + text.slice(copied)
}

/** Whether the name marks the value after it as secret. `word` is the word before the name. */
function saysSecret(name: string, word: string, [, quote, sign, comma]: readonly (string | undefined)[]): boolean {
  // Other lists of quoted words are more often lists of names.
  if (comma !== undefined) return quote !== undefined && isHeader(name) && isSecret(name)
  if (sign === undefined) return name.startsWith('--') && isSecret(name)
  return isSecret(name) || (word !== '' && areSecret(word, name))
}

interface Named {
  name: string
  /** Where the name begins. */
  index: number
  sign: string | undefined
}

/** The value that begins at `start`, without its quotes; undefined if nothing is hidden there. */
function valueAt(text: string, start: number, named: Named): { start: number; end: number } | undefined {
  OPENING.lastIndex = start
  const [quote = ''] = OPENING.exec(text) ?? []
  const from = start + quote.length
  if (text.startsWith(HIDDEN, from)) return undefined
  if (quote !== '') return { start: from, end: endOfQuoted(text, from, quote) }
  if (text[from] === '{' || text[from] === '[') return { start: from, end: endOfBrackets(text, from) }
  const pattern = UNQUOTED[reachIn(text, named)]
  pattern.lastIndex = from
  if (!pattern.test(text)) return undefined
  const end = pattern.lastIndex
  return named.sign === ':' && end - from < SHORTEST ? undefined : { start: from, end }
}

function reachIn(text: string, { name, index, sign }: Named): keyof typeof UNQUOTED {
  const reach = reachOf(name)
  if (reach === 'line' && (sign === ':' || sign === '=')) return 'line'
  if (reach === 'word' || sign !== ':') return 'word'
  const isFirst = STARTS.test(text.slice(Math.max(0, index - LOOKED_AT), index))
  return reach === 'words' || isFirst ? 'words' : 'word'
}

/** Where a value in quotes ends: at the same quote, with no more backslashes; without one, at the end of the text. */
function endOfQuoted(text: string, start: number, quote: string): number {
  const character = quote.at(-1) as string
  const escapes = quote.length - 1
  for (let at = text.indexOf(character, start); at >= 0; at = text.indexOf(character, at + 1)) {
    let backslashes = 0
    while (at - backslashes > start && text[at - backslashes - 1] === '\\') backslashes++
    if (escapes === 0 ? backslashes % 2 === 0 : backslashes <= escapes) return at - backslashes
  }
  return text.length
}

/** The end of an object or a list, which may be cut off. */
function endOfBrackets(text: string, start: number): number {
  let depth = 0
  let isQuoted = false
  for (let at = start; at < text.length; at++) {
    const character = text[at] as string
    if (character === '\\') at++
    else if (character === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if ('{['.includes(character)) depth++
    else if ('}]'.includes(character) && --depth === 0) return at + 1
  }
  return text.length
}
