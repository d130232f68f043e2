/** What others have written, as it can be shown to people and put into logs: in one line, short, and with nothing hidden. */
import { MAX_ECHO } from './lengths.js'

/** What turns text around, hides in it, drives a terminal or is half a character. */
export const DECEPTIVE = /[\p{Cc}\p{Surrogate}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u
const ALL_DECEPTIVE = new RegExp(DECEPTIVE, 'gu')

/** What somebody has sent, as it is repeated to them: at most 200 characters of it. */
export function echoed(text: string): string {
  return shown(text, MAX_ECHO - 1)
}

export function shown(text: string, max = 64): string {
  const plain = text.slice(0, max).replace(ALL_DECEPTIVE, '?')
  return text.length > max ? `${plain}…` : plain
}
