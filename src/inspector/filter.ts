/**
 * The filter language: words separated by spaces, which all have to match. `server:orders`, `status:error,fault`,
 * `server:=orders` for the whole value, `ms>500`, a text anywhere in the call or in the kept texts of its messages, and `-` before a word to negate it.
 */
import { CALL_TOOL } from '../mcp/protocol/methods.js'
import { hintOnText, hintOnValues } from './filter-hints.js'
import { elapsed } from './phases.js'
import { isMessage } from './recorder/events.js'
import type { CallView } from './views.js'

/** A parsed filter. */
export interface CallFilter {
  /** `now` is the time until which a running call is measured; without it, such a call has taken no time. */
  matches(call: CallView, now?: number): boolean
  /** Whether all calls match. */
  isEmpty: boolean
  /** Whether it depends on the end of a call. */
  isByEnd: boolean
  /** The error in the text; the wrong word is ignored. */
  problem?: string
  /** A hint about a word with an unlikely meaning. */
  hint?: string
  /** The words that are searched in the texts of messages, in lower case. */
  texts: readonly string[]
  /** Whether a word is about nothing but these texts. */
  isByText: boolean
}

/** Whether a text of a call contains these characters, which are in lower case. */
export type InTexts = (call: CallView, part: string) => boolean

type Field = (call: CallView) => readonly (string | undefined)[]
type Test = (call: CallView, now: number) => boolean

/** The fields of words like `server:orders`. */
export const FIELDS = {
  tool: ({ method, name }) => (method === CALL_TOOL ? [name] : []),
  name: ({ name }) => [name],
  method: ({ method }) => [method],
  server: ({ server, members }) => [server, ...members],
  bridge: ({ bridge }) => [bridge],
  era: ({ client, upstream }) => [
    client?.era,
    upstream?.era,
    client?.revision,
    upstream?.revision,
    pairOf(client, upstream),
  ],
  status: ({ status, code }) => [status, code?.toString()],
  blame: ({ blame }) => [blame],
  fault: ({ fault }) => [fault],
  client: ({ client }) => [client?.name, client?.transport],
  principal: ({ principal }) => [principal],
  session: ({ session }) => [session],
  id: (call) => [call.id, ...requestIds(call)],
  trace: ({ trace }) => [trace],
} satisfies Readonly<Record<string, Field>>

/** The field for texts of messages. */
const TEXT = 'text'

/** The names of all fields with a colon. */
export const FIELD_NAMES: readonly string[] = [...Object.keys(FIELDS), TEXT]

/** Fields with a fixed list of values, which must match completely. */
const WHOLE = new Set(['status', 'blame', 'id', 'session', 'bridge'])
/** Before a value that must match completely. */
export const WHOLE_SIGN = '='
/** Fields that are only known at the end of a call. */
const BY_END = /^-?(?:status:|blame:|fault:|ms[<>:=])/i
const BY_TEXT = /^-?text:/i
/** Longest text of a filter, and most words. */
const MAX_FILTER = 1_000
const MAX_FILTER_WORDS = 50

/** Parses a filter. By default, texts are those in the events of a call. */
export function readFilter(text: string, inTexts: InTexts = inOwnTexts): CallFilter {
  const problems: string[] = []
  const hints: string[] = []
  const texts: string[] = []
  const search = (part: string): Test => {
    texts.push(part)
    return (call) => inTexts(call, part)
  }
  const words = wordsIn(text.slice(0, MAX_FILTER)).slice(0, MAX_FILTER_WORDS)
  const tests = words.flatMap((word) => {
    const isNot = word.length > 1 && word.startsWith('-')
    const test = testOf(isNot ? word.slice(1) : word, { problems, hints, search })
    if (!test) return []
    return isNot ? [(call: CallView, now: number) => !test(call, now)] : [test]
  })
  const [problem] = problems
  const [hint] = hints
  return {
    matches: (call, now = call.at) => tests.every((test) => test(call, now)),
    isEmpty: tests.length === 0,
    isByEnd: words.some((word) => BY_END.test(word)),
    ...(problem !== undefined && { problem }),
    ...(hint !== undefined && { hint }),
    texts: [...new Set(texts)],
    isByText: words.some((word) => BY_TEXT.test(word)),
  }
}

/** Whether one of the events of a call, which may have texts, contains these characters. */
export function inOwnTexts({ events }: CallView, part: string): boolean {
  return events.some((seen) => isMessage(seen) && seen.payload?.text.toLowerCase().includes(part) === true)
}

interface Parsing {
  problems: string[]
  hints: string[]
  search(part: string): Test
}

function testOf(word: string, { problems, hints, search }: Parsing): Test | undefined {
  const [, operator, number] = /^ms(>=|<=|>|<|[:=])(.*)$/i.exec(word) ?? []
  if (operator !== undefined) {
    const limit = Number(number)
    if (number === '' || !Number.isFinite(limit)) {
      problems.push(`${word}: a number of milliseconds has to follow, as in ms>500`)
      return undefined
    }
    return (call, now) => {
      const ms = elapsed(call, now)
      return ms !== undefined && compares(ms, operator, limit)
    }
  }
  const [, named = '', value = ''] = /^([a-z]+):(.*)$/is.exec(word) ?? []
  const field = named.toLowerCase()
  if (FIELD_NAMES.includes(field)) {
    const wanted = value
      .toLowerCase()
      .split(',')
      .filter((part) => part !== '' && part !== WHOLE_SIGN)
    if (wanted.length === 0) {
      problems.push(`${word} needs a value`)
      return undefined
    }
    if (field === TEXT) {
      const tests = wanted.map(search)
      return (call, now) => tests.some((test) => test(call, now))
    }
    const values = wanted.map((part) => ({
      value: part.startsWith(WHOLE_SIGN) ? part.slice(1) : part,
      isWhole: WHOLE.has(field) || part.startsWith(WHOLE_SIGN),
    }))
    hints.push(...only(hintOnValues(field, values)))
    const fits = (found: string) =>
      values.some(({ value, isWhole }) => (isWhole ? found === value : found.includes(value)))
    const read: Field = FIELDS[field as keyof typeof FIELDS]
    return (call) => read(call).some((found) => found !== undefined && fits(found.toLowerCase()))
  }
  hints.push(...only(hintOnText(word, FIELD_NAMES)))
  const part = word.toLowerCase()
  const isInTexts = search(part)
  return (call, now) => textsOf(call).some((found) => found?.toLowerCase().includes(part)) || isInTexts(call, now)
}

function only<T>(found: T | undefined): T[] {
  return found === undefined ? [] : [found]
}

function compares(ms: number, operator: string, limit: number): boolean {
  if (operator === '>') return ms > limit
  if (operator === '<') return ms < limit
  if (operator === '>=') return ms >= limit
  if (operator === '<=') return ms <= limit
  return Math.round(ms) === Math.round(limit)
}

function textsOf(call: CallView) {
  const { id, method, name, server, members, principal, session, status, fault, why, client, upstream } = call
  return [id, method, name, server, ...members, principal, session, status, fault, why, client?.name, upstream?.name]
}

/** The ids of the client's requests: a call with a question has several. */
function requestIds({ events }: CallView): string[] {
  const requests = events.filter((seen) => isMessage(seen, 'client', 'in', 'request'))
  return requests.flatMap(({ id }) => (id === undefined ? [] : [String(id)]))
}

function pairOf(client: CallView['client'], upstream: CallView['upstream']): string | undefined {
  return client && upstream && `${client.era}>${upstream.era}`
}

/** Words of a text; quotes keep spaces together. */
function wordsIn(text: string): string[] {
  const found = text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []
  return found.map((word) => word.replaceAll('"', '')).filter((word) => word !== '')
}
