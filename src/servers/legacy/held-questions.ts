/** Questions of a legacy server that arrived while no call was running: they wait for a call that begins soon. */
import type { ServerQuestion } from './question.js'

export interface HeldQuestionsOptions {
  /** Whether another request has been open for so long that it probably waits for the answer to a held question. */
  delaysOther(longerThan: number): boolean
  /** No call has begun in time. */
  refuse(question: ServerQuestion): void
}

/** Milliseconds for which a question waits for a call that it can belong to. */
const HOLD = { 'roots/list': 55_000, others: 2_000 }
/** The same while another request is open, such as a list, which may wait for the answer. */
const HOLD_BESIDE_OTHER = 1_000

export class HeldQuestions {
  readonly #options: HeldQuestionsOptions
  readonly questions = new Map<ServerQuestion, NodeJS.Timeout>()

  constructor(options: HeldQuestionsOptions) {
    this.#options = options
  }

  hold(question: ServerQuestion): void {
    const hold = question.method === 'roots/list' ? HOLD['roots/list'] : HOLD.others
    const until = performance.now() + hold
    const wait = () => {
      const left = until - performance.now()
      if (left >= 1 && !this.#options.delaysOther(HOLD_BESIDE_OTHER - 1))
        return this.questions.set(question, setTimeout(wait, Math.min(left, HOLD_BESIDE_OTHER)).unref())
      this.questions.delete(question)
      return this.#options.refuse(question)
    }
    this.questions.set(question, setTimeout(wait, HOLD_BESIDE_OTHER).unref())
  }

  drop(question: ServerQuestion): void {
    clearTimeout(this.questions.get(question))
    this.questions.delete(question)
  }

  /** Removes and returns all of them. */
  takeAll(): readonly ServerQuestion[] {
    const all = [...this.questions.keys()]
    for (const question of all) this.drop(question)
    return all
  }
}
