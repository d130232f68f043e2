/** Makes text from others safe for messages and logs: one line, bounded, without invisible characters. */

/** Characters that reverse or hide text, control terminals, or are half a surrogate pair. */
export const DECEPTIVE = /[\p{Cc}\p{Surrogate}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u
const ALL_DECEPTIVE = new RegExp(DECEPTIVE, 'gu')

/** Most characters of a client's text in an error message. */
export const ECHOED = 200

export function printable(text: string, max = 64): string {
  const plain = text.slice(0, max).replace(ALL_DECEPTIVE, '?')
  return text.length > max ? `${plain}…` : plain
}

/** JSON with escapes in place of such characters. It stands for the same value. */
export function printableJson(json: string): string {
  return json.replace(ALL_DECEPTIVE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
