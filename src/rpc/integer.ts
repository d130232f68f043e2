/** Integers in JSON, however they are written: 1, 1.0, 1e0 and 10E-1 are the same number (RFC 8259, section 6). */
import type { Json } from './splice.js'

/** Most digits of an integer that is read exactly. */
const MAX_DIGITS = 64
const PLAIN = /^-?[1-9][0-9]{0,63}$/
const NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/

/** The digits of the integer that a JSON number is; undefined for a fraction, another value, or more than 64 digits. */
export function integerIn(json: Json): string | undefined {
  if (PLAIN.test(json)) return json
  const [, sign, whole, fraction = '', exponent = '0'] = NUMBER.exec(json) ?? []
  if (whole === undefined) return undefined
  const digits = `${whole}${fraction}`
  const significant = digits.replace(/^0+/, '')
  if (significant === '') return '0'
  /** The number of digits before the point, with the exponent applied. */
  const length = significant.length - fraction.length + Number(exponent)
  if (length < 1 || length > MAX_DIGITS || /[1-9]/.test(significant.slice(length))) return undefined
  return `${sign}${significant.slice(0, length).padEnd(length, '0')}`
}
