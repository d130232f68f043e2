/** Texts from servers, with control characters made visible. */

import { printableLines } from '../../../base/texts/printable.js'
import { shown, shownLines } from '../../words.js'

/** A text in one line; empty if the value is not a text. `most`: characters. */
export function said(value: unknown, most?: number): string {
  return typeof value === 'string' ? shown(value, most) : ''
}

/** Most characters of one text that are drawn. */
const MAX_SHOWN_TEXT = 100_000

/** A text of several lines as it is, without characters that hide or reverse text. */
export function saidLines(text: string): string {
  const parts = text.slice(0, MAX_SHOWN_TEXT).split('\t')
  return parts.map((part) => shownLines(part, MAX_SHOWN_TEXT)).join('\t') + restOf(text)
}

/** A value as JSON in several lines. */
export function saidJson(value: unknown): string {
  const text = printableLines(value)
  return text.slice(0, MAX_SHOWN_TEXT) + restOf(text)
}

function restOf({ length }: string): string {
  return length <= MAX_SHOWN_TEXT ? '' : `\n… ${length - MAX_SHOWN_TEXT} more characters`
}
