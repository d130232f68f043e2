/**
 * The messages with which the sources construct errors. `…` stands for a part that is known only at run time. A message in a constant
 * is found, and so are all arguments of a function of the same file that passes its parameter on as the message.
 */

const NAME = /^[a-z]\w*$/i
const QUOTES = new Set(["'", '"', '`'])

/** The messages of `ChannelError`, and of each fault by its name. */
export function messagesByKind(texts: readonly string[]): Map<string, string[]> {
  const found = new Map<string, Set<string>>()
  for (const text of texts)
    for (const { 0: all, 1: kind = '', index } of text.matchAll(/new (ChannelError|Fault)\(/g)) {
      const [first = '', second = ''] = argumentsAt(text, index + all.length)
      const fault = /^'(\w+)'$/.exec(first)?.[1]
      if (kind === 'Fault' && fault === undefined) continue
      const key = fault ?? kind
      const messages = valuesOf(kind === 'Fault' ? second : first, text, index).filter(saysSomething)
      found.set(key, new Set([...(found.get(key) ?? []), ...messages]))
    }
  return new Map([...found].map(([key, messages]) => [key, [...messages].toSorted()]))
}

/** Whether a message has words of its own, and no detail in brackets is missing. */
function saysSomething(message: string): boolean {
  return /[a-z]/i.test(message) && !message.includes('()')
}

/** The texts that an expression can have at this place of a source. */
function valuesOf(expression: string, source: string, at: number, seen: readonly number[] = []): string[] {
  const [condition, ...branches] = splitAt(expression, /^\s[?:]\s/)
  if (condition !== undefined && branches.length > 0)
    return branches.flatMap((branch) => valuesOf(branch, source, at, seen))
  const summands = splitAt(expression, /^\s\+\s/)
  if (summands.length > 1) return joined(summands.map((one) => valuesOf(one, source, at, seen)))
  const quote = expression[0] ?? ''
  if (quote === '`') return joined(partsOf(expression).map((part) => valuesOfPart(part, source, at, seen)))
  if (QUOTES.has(quote)) return [unescaped(expression.slice(1, -1))]
  return NAME.test(expression) ? valuesOfName(expression, source, at, seen) : ['…']
}

function valuesOfPart(part: string, source: string, at: number, seen: readonly number[]): string[] {
  if (!part.startsWith('${')) return [unescaped(part)]
  return valuesOf(part.slice(2, -1).trim(), source, at, seen)
}

/** The texts of a constant or of a parameter: that of the nearest declaration before this place. */
function valuesOfName(name: string, source: string, at: number, seen: readonly number[]): string[] {
  const before = source.slice(0, at)
  const constant = [...before.matchAll(new RegExp(`const ${name}(?:: string)? =\\s`, 'g'))].at(-1)
  const parameter = [...before.matchAll(new RegExp(`[ .](#?\\w+)\\(([^()]*\\b)?${name}: string\\b`, 'g'))].at(-1)
  const declared = Math.max(constant?.index ?? -1, parameter?.index ?? -1)
  if (seen.includes(declared)) return ['…']
  if (constant?.index === declared) {
    const [value = ''] = argumentsAt(source, declared + constant[0].length)
    return valuesOf(value, source, declared, [...seen, declared])
  }
  if (!parameter) return ['…']
  const [all, callee = '', earlier = ''] = parameter
  const position = earlier.split(',').length - 1
  const calls = [...source.matchAll(new RegExp(`(?<![\\w#])${callee}\\(`, 'g'))]
  const values = calls.flatMap((call) => {
    if (call.index === parameter.index + all.indexOf(callee)) return []
    const value = argumentsAt(source, call.index + call[0].length)[position] ?? ''
    return valuesOf(value, source, call.index, [...seen, declared])
  })
  return values.length === 0 ? ['…'] : values
}

/** The expressions from here to the closing bracket or the end of the statement, which are separated by commas. */
function argumentsAt(source: string, start: number): string[] {
  const end = endOf(source, start, (rest) =>
    /^(?:[)\]}]|\n\S|\n\n|\n\s*(?:const|return|throw|if|for|this)\b)/.test(rest),
  )
  return splitAt(source.slice(start, end), /^,/)
}

/** Splits at what matches outside of brackets and quotes. */
function splitAt(text: string, separator: RegExp): string[] {
  const parts: string[] = []
  for (let from = 0; from <= text.length; ) {
    const end = endOf(text, from, (rest) => separator.test(rest))
    parts.push(text.slice(from, end).trim())
    from = end + (separator.exec(text.slice(end))?.[0].length ?? 1)
  }
  return parts
}

/** Where a place outside of brackets and quotes is the end. */
function endOf(text: string, start: number, isEnd: (rest: string) => boolean): number {
  let open = 0
  for (let i = start; i < text.length; i++) {
    const char = text[i] as string
    if (open === 0 && isEnd(text.slice(i, i + 40))) return i
    if (QUOTES.has(char)) i = endOfQuoted(text, i)
    else if ('([{'.includes(char)) open++
    else if (')]}'.includes(char)) open--
  }
  return text.length
}

/** The place of the closing quote. */
function endOfQuoted(text: string, start: number): number {
  const quote = text[start]
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === quote) return i
    else if (quote === '`' && text.startsWith('${', i)) i = endOf(text, i + 2, (rest) => rest.startsWith('}'))
  }
  return text.length
}

/** The texts and placeholders of a template. */
function partsOf(template: string): string[] {
  const parts: string[] = []
  const inside = template.slice(1, -1)
  let from = 0
  for (let i = 0; i < inside.length; i++) {
    if (inside[i] === '\\') i++
    if (!inside.startsWith('${', i)) continue
    const end = endOf(inside, i + 2, (rest) => rest.startsWith('}')) + 1
    parts.push(inside.slice(from, i), inside.slice(i, end))
    from = end
    i = end - 1
  }
  return [...parts, inside.slice(from)]
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, '$1')
}

/** Every combination of the texts of each part. */
function joined(parts: readonly (readonly string[])[]): string[] {
  return parts.reduce<readonly string[]>(
    (starts, ends) => starts.flatMap((start) => ends.map((end) => `${start}${end}`.replace(/…+/g, '…'))),
    [''],
  ) as string[]
}
