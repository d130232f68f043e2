/** Explains failures, in the words of docs/reference/errors.md. */
import { FAULT_ADVICE, MESSAGE_ADVICE, OUTCOME_ADVICE, STATUS_ADVICE } from './explanations.js'

/** Markdown, with links relative to docs/troubleshooting.md. */
export interface Advice {
  meaning: string
  next: string
}

/** The failure of a call or a request. The message of a fault may have the details. */
export interface ShownFailure {
  outcome?: string | undefined
  fault?: string | undefined
  message?: string | undefined
}

type Texts = Readonly<Record<string, readonly [meaning: string, next: string]>>

/** Explains a failure; undefined if there is no advice. */
export function adviceOn({ outcome = '', fault = '', message = '' }: ShownFailure): Advice | undefined {
  const found = entryOf(FAULT_ADVICE as Texts, fault) ?? entryOf(OUTCOME_ADVICE as Texts, outcome)
  if (!found) return undefined
  const [meaning, next] = found
  return { meaning, next: (fault.startsWith('upstream') ? nextIn(message) : undefined) ?? next }
}

/** Advice about a server, by the most specific text in its failure. */
function nextIn(message: string): string | undefined {
  const [, status = ''] = /\bHTTP (\d{3})\b/.exec(message) ?? []
  const ofStatus = entryOf<string>(STATUS_ADVICE as Readonly<Record<string, string>>, status)
  if (ofStatus !== undefined) return ofStatus
  const fitting = MESSAGE_ADVICE.filter(([parts]) => contains(message, parts))
  const [best] = fitting.toSorted(([one], [other]) => other.join('').length - one.join('').length)
  return best?.[1]
}

/** Whether a text has these parts in this order. */
function contains(text: string, parts: readonly string[]): boolean {
  let from = 0
  for (const part of parts) {
    const at = text.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return true
}

function entryOf<Value>(table: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
