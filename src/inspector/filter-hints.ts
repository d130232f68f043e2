/** Hints about words of a filter that are valid, but may not mean what the writer intended. */

import type { Blame } from '../base/fault/faults.js'
import { didYouMean } from '../base/texts/nearest.js'
import { LEGACY, MODERN } from '../mcp/protocol/eras.js'
import type { CallView } from './views.js'

/** Values of fields that have a list. `status:` also takes the code of an error. */
export const VALUES = {
  era: ['modern', 'legacy', ...MODERN, ...LEGACY, 'modern>modern', 'modern>legacy', 'legacy>legacy', 'legacy>modern'],
  status: ['open', 'ok', 'tool_error', 'asks', 'error', 'cancelled', 'fault'] satisfies CallView['status'][],
  blame: ['caller', 'upstream', 'bridge'] satisfies Blame[],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** The codes of errors. */
const CODE = /^-?\d+$/

/** A hint that no call can have one of the values. */
export function hintOnValues(
  field: string,
  wanted: readonly { value: string; isWhole: boolean }[],
): string | undefined {
  const known: readonly string[] | undefined = Object.hasOwn(VALUES, field)
    ? VALUES[field as keyof typeof VALUES]
    : undefined
  const isKnown = ({ value, isWhole }: (typeof wanted)[number]) =>
    known?.some((one) => (isWhole ? one === value : one.includes(value))) || (field === 'status' && CODE.test(value))
  const wrong = wanted.find((one) => !isKnown(one))?.value
  if (!known || wrong === undefined) return undefined
  return `${field}:${wrong} matches nothing${didYouMean(wrong, known)}; values are ${known.join(', ')}`
}

/** A hint for a word that is searched as text but looks like a condition. */
export function hintOnText(word: string, fields: readonly string[]): string | undefined {
  const asText = `"${word}" is searched as text`
  const [, field = '', sign = '', value = ''] = /^([a-z_]*)(:|=|[<>]=?)(.*)$/is.exec(word) ?? []
  const name = field.toLowerCase()
  if (sign === '' || value.startsWith('/')) return undefined
  if (field === '') return `${asText}: write no space around ${sign}, as in ms>500`
  if (sign === ':') return `${field}: is no field, so ${asText}; fields are ${fields.join(', ')}, ms`
  if (sign === '=') return fields.includes(name) ? `${asText}: write ${name}:${value}` : undefined
  return `${asText}: only times are compared, as in ms>500`
}
