/**
 * Finds a JSON object at the end of a line that begins with other text: a banner, a prompt, or output that a program
 * printed without a line break.
 */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const SPACE = 0x20
const DELETE = 0x7f
/** A terminal sequence, such as a colour; and the length of the longest. */
const SEQUENCE = /\p{Cc}\[[0-9;?]*[A-Za-z]$/u
const LONGEST_SEQUENCE = 32

/** Where the object begins and ends; undefined if the text does not end with one. Reads each character once, from the end. */
export function objectAtEnd(text: string): { start: number; end: number } | undefined {
  const end = endOfText(text)
  if (text.charCodeAt(end - 1) !== CLOSE_BRACE) return undefined
  let depth = 0
  for (let at = end - 1; at >= 0; at--) {
    switch (text.charCodeAt(at)) {
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth++
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (--depth === 0) return { start: at, end }
        break
      case QUOTE:
        at = startOfString(text, at)
        break
      default:
    }
  }
  return undefined
}

/** The end of the text without white space, control characters and terminal sequences. */
function endOfText(text: string): number {
  let end = text.length
  for (;;) {
    while (end > 0 && isControl(text.charCodeAt(end - 1))) end--
    const sequence = SEQUENCE.exec(text.slice(Math.max(0, end - LONGEST_SEQUENCE), end))
    if (!sequence) return end
    end -= sequence[0].length
  }
}

function isControl(code: number): boolean {
  return code <= SPACE || code === DELETE
}

/** The index of the opening quote of the string that ends at `closing`; -1 if there is none. */
function startOfString(text: string, closing: number): number {
  let at = closing
  do at = at === 0 ? -1 : text.lastIndexOf('"', at - 1)
  while (at > 0 && isEscaped(text, at))
  return at
}

/** Whether an odd number of backslashes is before a character. */
function isEscaped(text: string, index: number): boolean {
  let at = index
  while (text.charCodeAt(at - 1) === BACKSLASH) at--
  return (index - at) % 2 === 1
}
