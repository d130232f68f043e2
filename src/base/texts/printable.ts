/** Makes foreign text safe for messages and logs: one line, bounded, without invisible characters. */

/** Characters that reverse or hide text, control terminals, or are half a surrogate pair. */
export const DECEPTIVE = /[\p{Cc}\p{Surrogate}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u
const ALL_DECEPTIVE = new RegExp(DECEPTIVE, 'gu')

/** Characters that are not seen by themselves, or change how others are seen: DECEPTIVE and more, also such as tags. */
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Surrogate}\p{Zl}\p{Zp}]/gu

/** Most characters of a client's text in an error message. */
export const ECHOED = 200

/** An address without possible secrets: query, fragment and user. */
export function publicAddress(address: string): string {
  return address.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//')
}

/** The text in one line of at most `max` characters, with `?` for characters that hide or control text. */
export function printable(text: string, max = 64): string {
  const plain = text.slice(0, max).replace(ALL_DECEPTIVE, '?')
  return text.length > max ? `${plain}…` : plain
}

/** JSON with escapes instead of such characters. The value is the same. */
export function printableJson(json: string): string {
  return json.replace(ALL_DECEPTIVE, unicodeEscape)
}

/** JSON for people, with `\u{…}` for characters that are not seen. In JSON, no other text looks like that. */
export function visibleJson(json: string): string {
  return json.replace(UNSEEN, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)
}

/** A value as JSON in several lines, with escapes instead of such characters. */
export function printableLines(value: unknown): string {
  return (JSON.stringify(value, null, 2) ?? '').split('\n').map(printableJson).join('\n')
}

/** A character of one UTF-16 unit as an escape of JSON. */
export function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
