/** The sign-in of a person that runs in this process, and how long requests wait for it. */
import { type AccountRefusal, Fault } from '../../../base/fault/fault.js'
import type { Signal } from '../../../base/time/hang-up.js'
import { within } from '../../../base/time/time.js'
import type { SignInFlow } from '../person/flow.js'
import { quoted } from '../quoted.js'
import type { Token } from '../store/record.js'
import type { ClientSettings } from './settings.js'

export interface PersonWaitOptions {
  server: string
  /** The argument of `mcp-bridge login` for the server; by default its name. */
  loginName?: string | undefined
  settings: Pick<ClientSettings, 'wait'>
  /** Called when a sign-in has ended. */
  onEnd(): void
}

const WAIT = 40_000
/** Milliseconds for questions to authorization servers before a person is asked. They shorten the time for the person. */
const FOR_SERVERS = 5_000

export interface RunningFlow {
  flow: SignInFlow
  token: Promise<Token>
  /** A waiting request was told where to sign in, because no browser could be started. */
  isInformed: boolean
}

export class PersonWait {
  readonly #options: PersonWaitOptions
  readonly #closing = new AbortController()
  /** The sign-in in progress. */
  running: RunningFlow | undefined

  constructor(options: PersonWaitOptions) {
    this.#options = options
  }

  /** Starts the sign-in that `make` creates, or reminds the person of the one in progress. */
  start(insist: boolean, make: (signal: AbortSignal) => SignInFlow): RunningFlow {
    if (this.running) {
      this.running.flow.remind(insist)
      return this.running
    }
    const flow = make(this.#closing.signal)
    const token = flow.run().finally(() => {
      this.running = undefined
      this.#options.onEnd()
    })
    // The request that started it may have been cancelled.
    token.catch(() => {})
    this.running = { flow, token, isInformed: false }
    return this.running
  }

  /** Milliseconds that a request waits for a person. */
  get patience(): number {
    return this.#options.settings.wait ?? WAIT
  }

  /** Milliseconds that a request may still wait: clients give `initialize` a minute, and its server needs time as well. */
  timeLeft(began: number): number {
    return Math.max(0, Math.max(this.patience, WAIT) + FOR_SERVERS - (performance.now() - began))
  }

  /** Throws the Fault for an authorization server that is slow. */
  tooSlow(): never {
    const { server } = this.#options
    throw new Fault('signInPending', `The authorization server of ${quoted(server)} is slow to answer. Try again later`)
  }

  /** Waits for a person, for as long as a request may. `began`: when the request was refused. */
  wait(running: RunningFlow, began: number, signal: Signal): Promise<Token> {
    const { flow, token } = running
    flow.remind()
    const patience = Math.min(this.patience, this.timeLeft(began))
    // A person who has not seen the address cannot have signed in, so the wait ends when it is shown.
    const tokenOrShown = running.isInformed
      ? token
      : Promise.race([
          token,
          flow.shown.then(() => {
            running.isInformed = true
            throw this.#stillWaiting(flow)
          }),
        ])
    const stillWaiting = () => {
      throw this.#stillWaiting(flow)
    }
    return within(tokenOrShown, patience, stillWaiting, signal)
  }

  /** The Fault for a request that would need a person, and may not ask one or does not wait. */
  needed(refusal: AccountRefusal): Fault {
    const flow = this.running?.flow
    return new Fault(flow ? 'signInPending' : 'signInRequired', this.signInFirst, {
      signInFor: refusal,
      signInUrl: flow?.address,
      signInCode: flow?.code,
    })
  }

  get signInFirst(): string {
    const { server, loginName = server } = this.#options
    return `Sign in to ${quoted(server)} first: mcp-bridge login ${loginName}`
  }

  #stillWaiting({ address, isShown, code }: SignInFlow): Fault {
    const message = isShown
      ? this.signInFirst
      : `Sign in to ${quoted(this.#options.server)} in the browser window that was opened, then try again`
    return new Fault('signInPending', message, { signInUrl: address, signInCode: code })
  }

  /** Ends the sign-in in this process. Other processes may continue it. */
  close(): void {
    this.#closing.abort(new Fault('draining', 'The bridge is shutting down'))
  }
}
