/**
 * Heads of HTTP messages, with the headers that may be shown. Equal heads are one object: a bridge sees few different ones.
 * Finding one builds no key.
 */

import { publicAddress } from '../base/texts/printable.js'
import type { Http, MessageBody } from './recorder/events.js'
import { short } from './short.js'
import { slotHash } from './slot-hash.js'

/** A head and its approximate bytes. */
export interface KeptHead {
  readonly shown: Http<string>
  readonly weight: number
  /** Its slot in the cache. */
  readonly place: number
  readonly values: Values
}

type HttpHead = NonNullable<MessageBody['http']>
type Value = HttpHead['headers'][string]

/** A name that cannot have a secret: it has no query, no user, and is not encoded. */
const PLAIN = /^[\w./: -]*$/
/** Headers whose values are not secret, or only in part. `isSame` compares all of them. */
const SHOWN = [
  'accept',
  'content-length',
  'content-type',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'retry-after',
  'traceparent',
  'transfer-encoding',
] as const
type Values = Readonly<Record<(typeof SHOWN)[number], string | undefined>>

/** Cached heads, a power of 2. A new one replaces the one in its slot. */
const PLACES = 256
/** Approximate bytes of a head without its texts. */
const OBJECT_BYTES = 300

export class Heads {
  readonly #known = new Array<KeptHead | undefined>(PLACES).fill(undefined)

  /** The visible part of a head. */
  of(received: HttpHead): KeptHead {
    const place = placeOf(received)
    const known = this.#known[place]
    if (known && isHeadOf(known, received)) return known
    const head = headOf(received, place)
    this.#known[place] = head
    return head
  }
}

function headOf({ status, headers }: HttpHead, place: number): KeptHead {
  const values = {} as Record<(typeof SHOWN)[number], string | undefined>
  const shown: Record<string, string> = {}
  let weight = OBJECT_BYTES
  for (const name of SHOWN) {
    const value = headers[name]
    const safe = typeof value === 'string' ? safeValue(name, value) : undefined
    const copy = safe === undefined ? undefined : short(safe)
    // All keys are there, so that all heads have one shape.
    values[name] = copy
    if (copy === undefined) continue
    shown[name] = copy
    weight += copy.length
  }
  return { shown: { ...(status !== undefined && { status }), headers: shown }, weight, place, values }
}

/** The displayed value of a header: the name of a resource is an address, which may contain secrets. */
function safeValue(name: string, value: string): string | undefined {
  if (name !== 'mcp-name' || PLAIN.test(value)) return value
  return value.includes('://') ? publicAddress(value) : undefined
}

/** Whether `shown` is the visible part of a head; a missing head has none. */
export function isHeadOf(head: KeptHead | undefined, received: HttpHead | undefined): boolean {
  if (head === undefined || received === undefined) return head === received
  return head.shown.status === received.status && isSame(head.values, received.headers)
}

/** Whether a head has these values. Each is named because V8 is fastest with constant property names. */
function isSame(values: Values, headers: HttpHead['headers']): boolean {
  return (
    shows(values['content-length'], headers['content-length']) &&
    shows(values['mcp-name'], headers['mcp-name']) &&
    shows(values['mcp-method'], headers['mcp-method']) &&
    shows(values.traceparent, headers['traceparent']) &&
    shows(values['content-type'], headers['content-type']) &&
    shows(values.accept, headers['accept']) &&
    shows(values['mcp-protocol-version'], headers['mcp-protocol-version']) &&
    shows(values['transfer-encoding'], headers['transfer-encoding']) &&
    shows(values['retry-after'], headers['retry-after'])
  )
}

/** Whether this is the displayed form of a value. */
function shows(shown: string | undefined, value: Value): boolean {
  return shown === value || (shown === undefined && typeof value !== 'string')
}

/** The slot of a head, by the values that differ most. */
function placeOf({ status = 0, headers }: HttpHead): number {
  return (
    (status +
      slotHash(headers['content-length']) +
      31 * slotHash(headers['mcp-name']) +
      7 * slotHash(headers['mcp-method'])) &
    (PLACES - 1)
  )
}
