/**
 * Keeps the questions that people answer at the bridge's own page. A question is for one call of one principal: while it is
 * open, equal calls ask nothing more, and one of them gets the answer.
 */

import { digest } from '../../../base/crypto/digest.js'
import type { KeptOwners } from '../../../mcp/ports/kept-owners.js'
import type { AuditedCall } from '../../../mcp/protocol/call.js'
import type { Expirations } from './expirations.js'
import type { Decided } from './question.js'
import type { Watched } from './watched.js'

/** What a person has chosen at the page. */
export type PageChoice = (typeof CHOICES)[number]

const CHOICES = ['run', 'window', 'refused'] as const

export function isChoice(text: string | null): text is PageChoice {
  return (CHOICES as readonly (string | null)[]).includes(text)
}

export interface PageQuestion extends Decided {
  /** The name of the client that called, by its own account. */
  client: string | undefined
  /** Milliseconds for which the person may allow the tool. */
  window: number | undefined
  /** When it is too late to answer, by the time of day. */
  until: number
  /** What the audit log says of the call; undefined without one. */
  audited: AuditedCall | undefined
  chosen?: PageChoice | undefined
}

/** Longer than any question is open. */
const KEPT = 7_200_000

export class PageQuestions {
  readonly #owners: KeptOwners
  readonly #questionExpired: Expirations
  readonly #watched: Watched

  /** `questionExpired` is told once of each question that has expired. */
  constructor(owners: KeptOwners, questionExpired: Expirations, watched: Watched) {
    this.#owners = owners
    this.#questionExpired = questionExpired
    this.#watched = watched
  }

  /** Asks, unless it is asked already. Resolves to whether the question is new. */
  async ask(name: string, principal: string, question: PageQuestion): Promise<boolean> {
    const isNew = await this.#change(name, principal, (known) => ({
      question: known ?? question,
      result: known === undefined,
    }))
    if (isNew) this.#watched.watch(name, question.until - Date.now(), () => this.#expire(name, principal))
    return isNew
  }

  /** The question for this principal; undefined if there is none, or if it is too late. */
  find(name: string, principal: string): Promise<PageQuestion | undefined> {
    return this.#change(name, principal, (question) => ({ question, result: question }))
  }

  /** Answers. Resolves to whether the question was open. */
  choose(name: string, principal: string, chosen: PageChoice): Promise<boolean> {
    return this.#change(name, principal, (known) => {
      const isOpen = known !== undefined && known.chosen === undefined
      return { question: isOpen ? { ...known, chosen } : known, result: isOpen }
    })
  }

  /** Takes the answer, which nobody else gets. Undefined if there is no question, 'open' if there is no answer. */
  take(name: string, principal: string): Promise<PageChoice | 'open' | undefined> {
    return this.#change<PageChoice | 'open' | undefined>(name, principal, (known) =>
      known && known.chosen === undefined
        ? { question: known, result: 'open' }
        : { question: undefined, result: known?.chosen },
    )
  }

  /** Withdraws a question. */
  async drop(name: string, principal: string): Promise<void> {
    await this.#change(name, principal, () => ({ question: undefined, result: undefined }))
  }

  /** Withdraws a question that nobody has answered. One that is too late is told of anyway. */
  async #expire(name: string, principal: string): Promise<void> {
    const open = await this.#change(name, principal, (known) => {
      const isOpen = known !== undefined && known.chosen === undefined
      return isOpen ? { question: undefined, result: known } : { question: known, result: undefined }
    })
    if (open) this.#questionExpired(open)
  }

  async #change<T>(
    name: string,
    principal: string,
    edit: (known: PageQuestion | undefined) => { question: PageQuestion | undefined; result: T },
  ): Promise<T> {
    const owner = `${digest(principal)} `
    let expired: PageQuestion | undefined
    const changed = await this.#owners.change(name, KEPT, (text) => {
      const isOwn = text?.startsWith(owner) === true
      const found = isOwn ? (JSON.parse(text.slice(owner.length)) as PageQuestion) : undefined
      const known = found && found.until > Date.now() ? found : undefined
      expired = known || found?.chosen !== undefined ? undefined : found
      const { question, result } = edit(known)
      // What belongs to another principal stays as it is.
      if (text !== undefined && !isOwn) return { text, result }
      return { text: question && owner + JSON.stringify(question), result }
    })
    if (expired) this.#questionExpired(expired)
    return changed
  }
}
