/** What others have written, as it can be shown to people and put into logs: in one line, short, and with nothing hidden. */

/** What turns text around, hides in it, drives a terminal or is half a character. */
export const DECEPTIVE = /[\p{Cc}\p{Surrogate}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u
const ALL_DECEPTIVE = new RegExp(DECEPTIVE, 'gu')

/** Characters of what a client has sent, where it is told so. */
export const ECHOED = 200

export function printable(text: string, max = 64): string {
  const plain = text.slice(0, max).replace(ALL_DECEPTIVE, '?')
  return text.length > max ? `${plain}…` : plain
}
