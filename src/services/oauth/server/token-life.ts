/** The life of a checked token: what is open with it ends when it has expired, or when it is no longer accepted. */
import { Fault } from '../../../base/fault/fault.js'
import { HangUp } from '../../../base/time/hang-up.js'
import { LONGEST } from '../../../base/time/pause.js'
import { Deadline } from '../../../base/time/time.js'

export class TokenLife extends HangUp {
  /** When the token expires, in milliseconds since 1970; Infinity if that is unknown. */
  readonly #until: number
  readonly #now: () => number
  #listening = 0
  /** Set while somebody listens. */
  #timer: Deadline | undefined

  constructor(until: number, now: () => number) {
    super()
    this.#until = until
    this.#now = now
  }

  override addEventListener(type: 'abort', listener: () => void): void {
    super.addEventListener(type, listener)
    this.#listening++
    this.#look()
  }

  override removeEventListener(type: 'abort', listener: () => void): void {
    super.removeEventListener(type, listener)
    this.#listening--
    if (this.#listening > 0) return
    this.#timer?.clear()
    this.#timer = undefined
  }

  /** Ends what is open with the token, because it is no longer accepted. */
  refuse(): void {
    this.abort(ended('is no longer accepted'))
    this.#timer?.clear()
  }

  readonly #look = (): void => {
    if (this.#timer || this.aborted || this.#until === Number.POSITIVE_INFINITY) return
    const left = Math.max(0, this.#until - this.#now())
    this.#timer = new Deadline(Math.min(left, LONGEST), () => {
      this.#timer = undefined
      if (this.#until <= this.#now()) this.abort(ended('has expired'))
      else this.#look()
    })
  }
}

function ended(why: string): Fault {
  return new Fault('tokenEnded', `The token of this call ${why}; the server may have executed the call`)
}
