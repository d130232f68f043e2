/** Reads and writes JSON-RPC 2.0 messages and batches within bounds (`MAX_BATCH`), and keeps their ids exactly as received. */
import { type Listing, type ScanOptions, scan } from './scan.js'
import { cut, detach, type JsonSource, join, pieces, sourceOf, type Wire } from './source.js'
import { EMPTY, type Json, type Payload, payloadIn, raw, value, wire, write } from './splice.js'
import type { PassedEvent } from './sse.js'
import { END, elementsAt, type JsonRange, keyAt, NEXT, ROW, START, unquote } from './table.js'

/** The JSON text of a request id: `7` and `"7"` differ, and 9007199254740993 keeps its value. */
export type Id = string & { readonly Id: unique symbol }

/** What a peer may send. */
export type Message = Request | Notification | Response | Batch | Invalid

export interface Request {
  kind: 'request'
  id: Id
  method: string
  params: Params
  /** The received text; undefined for a message that the bridge itself has made. */
  source?: JsonSource
  /** It has members that some parsers take for others, such as `Params`. */
  hasLookalikes?: true
}

export interface Notification {
  kind: 'notification'
  method: string
  params: Params
  /** As in a Request. */
  source?: JsonSource
}

/** An answer. If a peer sends both a result and an error, the error counts, unless it is null. */
export interface Response {
  kind: 'response'
  id: Id | undefined
  outcome: ResponseOutcome
  /** Set by the transport of HTTP: the head of the answer that has the response. */
  http?: ResponseHead | undefined
}

/** The head of an HTTP answer. Names of headers are in lower case. */
interface ResponseHead {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The array that has the response among others. */
  array?: Batch | undefined
  /** The event that is the response, if its client gets it as it came. */
  event?: PassedEvent | undefined
}

/** A result or an error: where it is in the text, and its members if it is an object. */
interface ResponseOutcome extends JsonRange {
  kind: 'result' | 'error'
  source: JsonSource
  payload: Payload | undefined
}

export interface Batch {
  kind: 'batch'
  source: JsonSource
  /** At most MAX_BATCH + 1, so that the rest of a refused batch is not read. */
  elements: JsonRange[]
}

/** JSON, but not a valid message. The id is set if it is readable, for the error answer. */
interface Invalid {
  kind: 'invalid'
  id: Id | undefined
  why: string
  /** What it is but for its id, which is the text of it: a fraction, an object, or too long a one. */
  read?: Request | Response
}

/** The params if they are an object; otherwise why there are none. */
export type Params = Payload | 'absent' | 'not an object'

/** All methods of notifications in MCP begin with this. */
const NOTIFICATIONS = 'notifications/'
/** Most characters of an id, without quotes. */
const MAX_ID = 256
/** Most digits of an integer that is read exactly. */
const MAX_DIGITS = 64
const PLAIN_INTEGER = /^-?[1-9][0-9]{0,63}$/
const NUMBER_PARTS = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/
/** Most messages in a batch. */
export const MAX_BATCH = 100
const EMPTY_LIST = /^\[\s*\]$/
const BAD_ID = '"id" has to be a string or an integer'
const LISTING: Listing = {
  descend: new Set(['params', 'result', '_meta']),
  elements: 'content',
  most: MAX_BATCH + 1,
}

/**
 * Reads one message. Throws a JsonError if the text is not JSON. Members of the envelope must not be duplicated. A member
 * that is null counts as absent where JSON-RPC allows no null, because some libraries write all members that they know.
 */
export function parseMessage(source: JsonSource, options?: ScanOptions): Message {
  const table = scan(source, options, LISTING)
  const { text } = source
  const first = text.charAt(table[START] as number)
  if (first === '[') {
    const elements = elementsAt(table)
    if (options?.maxListed !== undefined) checkBatch(source, elements, options)
    return { kind: 'batch', source, elements }
  }
  if (first !== '{') return invalid(undefined, 'A message must be a JSON object')
  /** The rows of the members; for those that are absent 0, the row of the message, whose value begins with a brace. */
  const rows = { jsonrpc: 0, id: 0, method: 0, params: 0, result: 0, error: 0 }
  let twice: string | undefined
  let hasLookalikes = false
  for (let row = ROW; row < table.length; row = table[row + NEXT] as number) {
    const key = keyAt(source, table, row)
    if (!Object.hasOwn(rows, key)) {
      hasLookalikes ||= Object.hasOwn(rows, key.toLowerCase())
      continue
    }
    if (rows[key as keyof typeof rows] > 0) twice = key
    rows[key as keyof typeof rows] = row
  }
  const idText =
    rows.id === 0 ? undefined : cut(source, table[rows.id + START] as number, table[rows.id + END] as number)
  const id = idText === undefined ? undefined : readId(idText)

  if (twice) return invalid(id, `The member "${twice}" appears twice in the message`)
  if (!text.startsWith('"2.0"', table[rows.jsonrpc + START])) return invalid(id, '"jsonrpc" has to be "2.0"')
  const methodAt = table[rows.method + START] as number
  if (rows.method > 0 && !text.startsWith('null', methodAt)) {
    const isText = text.charAt(methodAt) === '"'
    const method = isText ? unquote(cut(source, methodAt, table[rows.method + END] as number)) : undefined
    if (!method) return invalid(id, '"method" has to be a string')
    const paramsAt = table[rows.params + START] as number
    // Some libraries write an empty list for an empty object.
    const isList = rows.params > 0 && text.charAt(paramsAt) === '['
    const isAbsent =
      rows.params === 0 ||
      text.startsWith('null', paramsAt) ||
      (isList && EMPTY_LIST.test(cut(source, paramsAt, table[rows.params + END] as number)))
    const params = isAbsent ? 'absent' : (payloadIn(source, table, rows.params) ?? 'not an object')
    const isNotification = idText === undefined || (idText === 'null' && method.startsWith(NOTIFICATIONS))
    if (isNotification) return { kind: 'notification', method, params, source }
    const request: Request = { kind: 'request', id: id ?? (idText as Id), method, params, source }
    if (hasLookalikes) request.hasLookalikes = true
    return id ? request : invalidId(request)
  }
  const kind = rows.error > 0 && !text.startsWith('null', table[rows.error + START]) ? 'error' : 'result'
  const row = rows[kind]
  const lacksId = idText === undefined || idText === 'null'
  if (row === 0) return invalid(id, id || lacksId ? 'The message has none of "method", "result" and "error"' : BAD_ID)
  const [start, end] = [table[row + START] as number, table[row + END] as number]
  const outcome: ResponseOutcome = { kind, source, start, end, payload: payloadIn(source, table, row) }
  return id || lacksId ? { kind: 'response', id, outcome } : invalidId({ kind: 'response', id: idText as Id, outcome })
}

/** As `parseMessage`; undefined for what is not JSON. */
export function messageOrNone(source: JsonSource): Message | undefined {
  try {
    return parseMessage(source)
  } catch {
    return undefined
  }
}

/** Applies the bound of listed members to all messages of a batch together. Throws a JsonError. */
function checkBatch(source: JsonSource, elements: readonly JsonRange[], options: ScanOptions): void {
  let maxListed = options.maxListed ?? 0
  for (const { start, end } of elements)
    maxListed -= scan(sourceOf(cut(source, start, end)), { ...options, maxListed }, LISTING).length / ROW
}

function invalid(id: Id | undefined, why: string): Invalid {
  return { kind: 'invalid', id, why }
}

function invalidId(read: Request | Response): Invalid {
  return { kind: 'invalid', id: undefined, why: BAD_ID, read }
}

/** The id in a JSON text; undefined if it is not a valid one: null, a fraction, an object, or too long. */
export function readId(text: Json): Id | undefined {
  if (text.length > MAX_ID + 2) return undefined
  return (text.startsWith('"') ? isString(text) : integerIn(text) !== undefined) ? (text as Id) : undefined
}

/** Whether a JSON string is valid: the scan does not check strings in large texts (`ScanOptions.strict`). */
function isString(json: Json): boolean {
  try {
    return !json.includes('\\') || typeof JSON.parse(json) === 'string'
  } catch {
    return false
  }
}

/**
 * The digits of a JSON number that is an integer; undefined for a fraction, another value, or more than 64 digits. 1,
 * 1.0, 1e0 and 10E-1 are the same number (RFC 8259, section 6).
 */
export function integerIn(json: Json): string | undefined {
  if (PLAIN_INTEGER.test(json)) return json
  const [, sign, whole, fraction = '', exponent = '0'] = NUMBER_PARTS.exec(json) ?? []
  if (whole === undefined) return undefined
  const digits = `${whole}${fraction}`
  const significant = digits.replace(/^0+/, '')
  if (significant === '') return '0'
  /** The number of digits before the point, with the exponent applied. */
  const length = significant.length - fraction.length + Number(exponent)
  if (length < 1 || length > MAX_DIGITS || /[1-9]/.test(significant.slice(length))) return undefined
  return `${sign}${significant.slice(0, length).padEnd(length, '0')}`
}

/** A key that is the same for equal ids, regardless of escapes and of how a number is written. */
export function idKey(id: Id): string {
  if (!id.startsWith('"')) return integerIn(id) ?? id
  return id.includes('\\') ? JSON.stringify(JSON.parse(id)) : id
}

/** The value of an id, for people: an integer that a number cannot represent stays a text. */
export function idValue(id: Id): string | number {
  if (id.startsWith('"')) return JSON.parse(id) as string
  const number = Number(id)
  return Number.isSafeInteger(number) ? number : detach(idKey(id))
}

/**
 * The number of an id, also if it is a string of that number: a server may return numeric ids and progress tokens as
 * strings, and the client of SDK 1.x accepts that (`Number(id)` in shared/protocol). Undefined if it is not an integer
 * above 0.
 */
export function numberOf(id: Json): number | undefined {
  const number = Number(id.startsWith('"') ? id.slice(1, -1) : id)
  return Number.isSafeInteger(number) && number > 0 ? number : undefined
}

/**
 * The key (see `idKey`) under which an id is stored, even if it was returned in the other form: `"7"` for 7, or 7 for
 * `"7"`.
 */
export function keptKey(kept: ReadonlyMap<string, unknown>, id: Id): string | undefined {
  const key = idKey(id)
  if (kept.has(key)) return key
  const other = key.startsWith('"') ? integerIn(key.slice(1, -1)) : `"${key}"`
  return other !== undefined && kept.has(other) ? other : undefined
}

/** Params to send; undefined if there are none. */
export type Sent = Json | Payload | undefined

export function request(id: Id | number, method: string, params: Sent): string {
  const json = jsonOf(params)
  return `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${json === undefined ? '' : `,"params":${json}`}}`
}

export function notification(method: string, params: Sent): string {
  const json = jsonOf(params)
  return `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${json === undefined ? '' : `,"params":${json}`}}`
}

/** The text of params; undefined if the message has none. */
export function jsonOf(params: Sent): Json | undefined {
  if (typeof params !== 'object') return params
  const json = write(params)
  return json === '{}' && (params === EMPTY || params.edits) ? undefined : json
}

/** Whether a message with these params is written without params: EMPTY, and an object that its edits have emptied. */
export function isLeftOut(params: Sent): boolean {
  return typeof params === 'object' && jsonOf(params) === undefined
}

export function result(id: Id, json: Json): string
export function result(id: Id, payload: Payload): Wire
export function result(id: Id, payload: Json | Payload): Wire {
  const head = `{"jsonrpc":"2.0","id":${id},"result":`
  const json = typeof payload === 'string' ? payload : wire(payload)
  return typeof json === 'string' ? `${head}${json}}` : [head, ...json, '}']
}

/**
 * An error answer. It has no id if none could be read, because clients of SDK 1.x reject `null`
 * (`JSONRPCErrorResponseSchema`).
 */
export function error(id: Id | undefined, { code, message, data }: RpcError): string {
  const body = `"error":{"code":${code},"message":${JSON.stringify(message)}${data === undefined ? '' : `,"data":${data}`}}`
  return id === undefined ? `{"jsonrpc":"2.0",${body}}` : `{"jsonrpc":"2.0","id":${id},${body}}`
}

/** An answer with another id. */
export function response(id: Id, { outcome: { kind, source, start, end, payload } }: Response): Wire {
  const said = payload?.edits ? [wire(payload)].flat() : pieces(source, start, end)
  const all = [`{"jsonrpc":"2.0","id":${id},"${kind}":`, ...said, '}']
  return source.asides ? all : join(all)
}

/** The kind, id and method of a message, as its beginning states them. */
export interface MessageHead {
  form: 'request' | 'notification' | 'result' | 'error'
  id: Id | undefined
  method: string | undefined
}

const STRING = '"(?:[^"\\\\]|\\\\.){0,1024}"'
const NUMBER = '-?\\d[-+.eE\\d]{0,255}'
const HEAD = new RegExp(`^{"jsonrpc":"2.0",(?:"id":(${STRING}|${NUMBER}),)?"(?:(result|error)":|method":(${STRING}))`)

/** The head of a message that the bridge has encoded, without reading all of it. Undefined for other texts. */
export function headOf(encoded: Wire): MessageHead | undefined {
  const text = typeof encoded === 'string' ? encoded : encoded[0]
  const [, id, outcome, method] = (typeof text === 'string' && HEAD.exec(text)) || []
  if (outcome !== undefined) return { form: outcome as 'result' | 'error', id: id as Id | undefined, method: undefined }
  if (method === undefined) return undefined
  return {
    form: id === undefined ? 'notification' : 'request',
    id: id as Id | undefined,
    method: JSON.parse(method) as string,
  }
}

/** Reads an error object. Its code and message are replaced if they are none. */
export function readError(payload: Payload, otherwise: string): RpcError {
  const code = value(payload, 'code')
  const message = value(payload, 'message')
  return {
    code: typeof code === 'number' ? code : -32603,
    message: typeof message === 'string' ? message : otherwise,
    data: raw(payload, 'data'),
  }
}

/** A JSON-RPC error object; `data` is its JSON text, unchanged. */
export interface RpcError {
  code: number
  message: string
  data?: Json | undefined
  /** The error as received, if it came from a server. */
  from?: Payload | undefined
}
