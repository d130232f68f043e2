/** Writes and checks the HTTP headers that mirror a modern request (MCP 2026-07-28, streamable-http, request metadata). */

import { Fault } from '../../base/fault/fault.js'
import type { Request } from '../../base/rpc/message.js'
import { type Json, objectIn, type Payload, raw, stringUnder } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { Annotation } from './annotations.js'
import { NEWEST_MODERN } from './eras.js'
import { methodTraits } from './methods.js'
import { TRACE_HEADERS } from './trace.js'

/**
 * `Mcp-*` headers by their names in lower case: each with its value, or with all its values in the order received. Node.js
 * has removed the white space around them.
 */
export type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** Prefix of the headers that mirror arguments, in lower case. */
export const PARAM_PREFIX = 'mcp-param-'

/** White space in a header. */
const SPACES = ' \t'
const PLAIN = /^[\t\x20-\x7e]*$/
const SENTINEL = /^=\?base64\?(.*)\?=$/
const DECIMAL = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/

/** The prefix of headers that a revision may define, in lower case. */
const OF_MCP = 'mcp-'
/** Headers of MCP that each half writes itself. */
const WRITTEN: ReadonlySet<string> = new Set(['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'])

/** Whether a header of a client's request goes on to the server: the trace context, and headers of MCP that the bridge does not know. */
export function isCarried(name: string): boolean {
  if (!name.startsWith(OF_MCP)) return TRACE_HEADERS.has(name)
  return !WRITTEN.has(name) && !name.startsWith(PARAM_PREFIX)
}

/** The value of a header that may occur once. Equal repetitions are allowed; different values throw a Fault. */
export function single(headers: ReceivedHeaders, name: string): string | undefined {
  const found = headers[name]
  return typeof found === 'object' ? onlyOne(found, name) : found
}

/** `MCP-Protocol-Version`. Proxies may join equal values with commas. */
export function versionHeader(headers: ReceivedHeaders): string | undefined {
  const found = headers['mcp-protocol-version']
  if (typeof found === 'string' && !found.includes(',')) return found
  const values = [found ?? []].flat().flatMap((text) => text.split(','))
  return onlyOne(values, 'mcp-protocol-version')
}

function onlyOne(values: readonly string[], name: string): string | undefined {
  const first = trim(values[0])
  for (let i = 1; i < values.length; i++) {
    if (trim(values[i]) !== first) throw mismatch(`Header ${printable(name, ECHOED)} came with different values`)
  }
  return first
}

/** A value without the white space around it (RFC 9110, section 5.6.3). */
export function trim<T extends string | undefined>(text: T): T {
  if (text === undefined) return text
  let start = 0
  let end = text.length
  while (start < end && SPACES.includes(text.charAt(start))) start++
  while (end > start && SPACES.includes(text.charAt(end - 1))) end--
  return text.slice(start, end) as T
}

/** Checks `Mcp-Method` and `Mcp-Name` against the body. Throws a Fault. `classify` checks the version. */
export function checkHeaders(request: Request, headers: ReceivedHeaders): void {
  const method = single(headers, 'mcp-method')
  if (method === undefined) throw mismatch('Header Mcp-Method is missing')
  if (method !== request.method)
    throw mismatch(`Header Mcp-Method is "${printable(method)}", but the body has another method`)
  const { named } = methodTraits(request.method)
  if (named === undefined) return
  const name = single(headers, 'mcp-name')
  if (name === undefined) throw mismatch('Header Mcp-Name is missing')
  const expected = typeof request.params === 'string' ? undefined : stringUnder(request.params, named)
  if (decodeValue(name, 'Mcp-Name') !== expected)
    throw mismatch(`Header Mcp-Name is "${printable(name)}", but params.${named} of the body has another value`)
}

/** Checks the `Mcp-Param-*` headers that the tool's schema requires against the arguments. Throws a Fault. */
export function checkParamHeaders(
  annotations: readonly Annotation[],
  args: Payload | undefined,
  headers: ReadonlyMap<string, string>,
): void {
  for (const { header, path } of annotations) {
    const name = `Mcp-Param-${header}`
    const expected = valueAt(args, path)
    if (expected === undefined || expected === 'null') continue
    const received = headers.get(PARAM_PREFIX + header.toLowerCase())
    if (received === undefined)
      throw mismatch(`Header ${name} is missing, but the arguments have a value for "${path.join('.')}"`)
    if (!sameValue(decodeValue(received, name), expected))
      throw mismatch(
        `Header ${name} is "${printable(received)}", but "${path.join('.')}" of the arguments has another value`,
      )
  }
}

/**
 * The headers that mirror a request's body: the version, `Mcp-Method`, and `Mcp-Name` if the method has one. Throws a
 * Fault for a method that is not a valid header value.
 */
export function requestHeaders(method: string, params: Payload): Record<string, string> {
  if (!isPlain(method)) throw new Fault('invalidRequest', `"${printable(method)}" is not a valid method name`)
  const headers: Record<string, string> = { 'mcp-protocol-version': NEWEST_MODERN, 'mcp-method': method }
  const { named } = methodTraits(method)
  const name = named === undefined ? undefined : stringUnder(params, named)
  if (typeof name === 'string') headers['mcp-name'] = encodeValue(name)
  return headers
}

/** `Mcp-Param-*` for the arguments that a tool's schema mirrors. Omits numbers that are not safe integers. */
export function paramHeaders(annotations: readonly Annotation[], args: Payload | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { header, path } of annotations) {
    const text = mirrored(valueAt(args, path))
    if (text !== undefined) headers[PARAM_PREFIX + header.toLowerCase()] = text
  }
  return headers
}

function mirrored(json: Json | undefined): string | undefined {
  if (json === undefined || json === 'null') return undefined
  if (json.startsWith('"')) return encodeValue(JSON.parse(json) as string)
  if (json === 'true' || json === 'false') return json
  const number = Number(json)
  return Number.isSafeInteger(number) ? String(number) : undefined
}

/** The JSON text at a path of property names; undefined if there is none. */
function valueAt(args: Payload | undefined, path: readonly string[]): Json | undefined {
  let at = args
  for (const step of path.slice(0, -1)) at = at && objectIn(at, step)
  return at && raw(at, path.at(-1) as string)
}

/** Compares a header with a value of the body: strings exactly, integers by value, booleans as `true` or `false`. */
function sameValue(received: string, expected: Json): boolean {
  if (expected.startsWith('"')) return received === JSON.parse(expected)
  if (expected === 'true' || expected === 'false') return received === expected
  const number = Number(expected)
  return Number.isSafeInteger(number) && DECIMAL.test(received) && Number(received) === number
}

/**
 * Decodes a value in plain text or in the Base64 form. Throws a Fault if it is neither plain text nor Base64 of UTF-8.
 */
export function decodeValue(text: string, name: string): string {
  if (!PLAIN.test(text)) throw mismatch(`Header ${name} contains characters that need the Base64 form`)
  const encoded = SENTINEL.exec(text)?.[1]
  if (encoded === undefined) return text
  try {
    const binary = atob(encoded)
    // `atob` accepts missing padding, white space and non-zero trailing bits, which the specification does not allow.
    if (btoa(binary) !== encoded) throw new RangeError('not canonical')
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new Fault('headerMismatch', `Header ${name} is not valid Base64 of UTF-8`, { cause })
  }
}

/** Encodes a value for a header: as plain text if possible, otherwise in the Base64 form. */
export function encodeValue(text: string): string {
  if (isPlain(text)) return text
  const bytes = new TextEncoder().encode(text)
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return `=?base64?${btoa(binary)}?=`
}

/** Whether a text can be a header value without Base64. */
function isPlain(text: string): boolean {
  return text !== '' && PLAIN.test(text) && trim(text) === text && !SENTINEL.test(text)
}

function mismatch(message: string): Fault {
  return new Fault('headerMismatch', message)
}
