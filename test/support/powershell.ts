/**
 * Reads the strings of a PowerShell command as its tokenizer does (about_Quoting_Rules; `IsSingleQuote` and `IsDoubleQuote` in
 * its CharTraits.cs): typographic quotes are quotes, and two of them within a string are one character of it.
 */

const SINGLE = new Set("'\u2018\u2019\u201a\u201b")
const DOUBLE = new Set('"\u201c\u201d\u201e')

export interface PowershellString {
  kind: 'single' | 'double'
  text: string
}

/** The strings in a command, and what is left of it around them. Throws if one does not end. */
export function stringsIn(command: string): { strings: PowershellString[]; around: string } {
  const strings: PowershellString[] = []
  let around = ''
  for (let at = 0; at < command.length; at++) {
    const quotes = [SINGLE, DOUBLE].find((some) => some.has(command[at] as string))
    if (!quotes) {
      around += command[at]
      continue
    }
    let text = ''
    for (at++; ; at++) {
      const sign = command[at]
      if (sign === undefined) throw new Error(`This string does not end: ${text}`)
      if (quotes.has(sign)) {
        if (!quotes.has(command[at + 1] ?? '')) break
        at++
      }
      text += command[at]
    }
    strings.push({ kind: quotes === SINGLE ? 'single' : 'double', text })
    around += '""'
  }
  return { strings, around }
}
