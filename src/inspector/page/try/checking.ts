/** Checks values before they are sent: in the form, and at the bridge against the schema. */

import { useRef, useState } from 'preact/hooks'
import type { CheckedValue } from '../../check/checked.js'
import { shown } from '../../words.js'
import { fromBridge } from '../feed.js'
import { type FormState, readForm } from './form.js'
import type { Wrong } from './shape.js'

/** Milliseconds that a call waits for its check. */
const CHECKED_WITHIN = 10_000

/** Never rejects: a failed check gives the reason. */
export async function checkValue(schema: unknown, value: unknown): Promise<CheckedValue> {
  try {
    const response = await fromBridge('check', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ schema, value }),
      signal: AbortSignal.timeout(CHECKED_WITHIN),
    })
    if (response.ok) return (await response.json()) as CheckedValue
    return { ok: null, why: `The bridge answered ${response.status}.` }
  } catch {
    return { ok: null, why: 'The bridge did not answer.' }
  }
}

/** Most mistakes that are listed at once. */
const MAX_LISTED = 20

/**
 * Sends a form: `submit` checks it first. `wrong` has the mistakes of fields, `problem` all of them as text. `sendAnyway` exists
 * if only the schema is violated: the reaction of the server may be of interest.
 */
export function useSubmit(
  schema: unknown,
  latest: () => FormState,
  send: (value: unknown) => void,
): { wrong: readonly Wrong[]; problem: string; submit(): void; sendAnyway: (() => void) | undefined } {
  const [{ wrong, more, isSendable }, setFound] = useState(NOTHING_WRONG)
  const isChecking = useRef(false)
  const submit = async () => {
    const { value, wrong } = readForm(schema, latest())
    if (wrong.length > 0) return setFound({ wrong, more: 0, isSendable: false })
    const found = schema === undefined ? undefined : await checkValue(schema, value)
    if (found?.ok === false)
      return setFound({
        wrong: found.errors.map(({ at, message }) => ({ at, why: message })),
        more: found.more,
        isSendable: true,
      })
    setFound(
      found?.ok === null
        ? { ...NOTHING_WRONG, wrong: [{ at: '', why: `were not checked: ${found.why}` }] }
        : NOTHING_WRONG,
    )
    send(value)
  }
  const rest = more + Math.max(0, wrong.length - MAX_LISTED)
  const words = wrong
    .slice(0, MAX_LISTED)
    .map(({ at, why }) => `${shown(at, 200) || 'the arguments'} ${shown(why, 500)}`)
  return {
    wrong,
    problem: [...words, ...(rest > 0 ? [`${rest} more`] : [])].join('; '),
    submit() {
      if (isChecking.current) return
      isChecking.current = true
      submit()
        .catch(() => {})
        .finally(() => {
          isChecking.current = false
        })
    },
    sendAnyway: isSendable
      ? () => {
          const { value, wrong } = readForm(schema, latest())
          setFound({ ...NOTHING_WRONG, wrong })
          if (wrong.length === 0) send(value)
        }
      : undefined,
  }
}

const NOTHING_WRONG: { wrong: readonly Wrong[]; more: number; isSendable: boolean } = {
  wrong: [],
  more: 0,
  isSendable: false,
}
