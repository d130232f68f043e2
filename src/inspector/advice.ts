/** Explains failures, in the words of docs/reference/errors.md. */
import { CAUSES } from '../base/fault/causes.js'
import { MESSAGES, nextIn, STATUSES } from '../base/fault/failures.js'
import { ANSWERED, faults } from '../base/fault/faults.js'

/** Markdown, with links relative to docs/troubleshooting.md. */
export interface Advice {
  what: string
  next: string
}

/** The failure of a call or a request. The message of a fault may have the details. */
export interface ShownFailure {
  outcome?: string | undefined
  fault?: string | undefined
  message?: string | undefined
}

/** What to do about a server, by the text of its failure. */
const TEXTS = new Map<string, string>()
for (const { what, next } of Object.values(CAUSES)) if (next !== undefined) TEXTS.set(what, next)
for (const [text, [, next]] of Object.entries(MESSAGES)) TEXTS.set(text, next)

/** Explains a failure; undefined if there is no advice. */
export function adviceOn({ outcome = '', fault = '', message = '' }: ShownFailure): Advice | undefined {
  const row = entryOf<Advice>(faults, fault)
  const [what, next] = row ? [row.what, row.next] : (entryOf(ANSWERED, outcome) ?? [])
  if (what === undefined || next === undefined) return undefined
  return { what, next: (fault.startsWith('upstream') ? nextFor(message) : undefined) ?? next }
}

function nextFor(message: string): string | undefined {
  const [, status = ''] = /\bHTTP (\d{3})\b/.exec(message) ?? []
  return entryOf<string>(STATUSES, status) ?? nextIn(message, TEXTS)
}

function entryOf<Value>(table: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
