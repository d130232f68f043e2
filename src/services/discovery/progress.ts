/** One step of discovery towards a verdict, and its outcome. */
import type { Failure } from '../../base/net/failure.js'

/** A step towards a verdict. A target is located once; the other steps are for each candidate. `card`: if there is one. */
export type Step = 'locate' | 'manifest' | 'signature' | 'card' | 'handshake' | 'sign-in' | 'trust'

/** The outcome of a step. */
export interface Progress {
  /** The target, or the name of a candidate. */
  about: string
  step: Step
  ms: number
  ok: boolean
  message: string
}

/** Runs a step and reports it. A Failure is the result of the step; other errors reject. */
export type TakeStep = <T>(
  what: Step,
  work: () => T | Promise<T>,
  say: (value: T) => [ok: boolean, message: string],
) => Promise<{ value: T; failed?: never } | { value?: never; failed: Failure }>
