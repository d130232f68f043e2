/**
 * One sign-in of a person. It belongs to the record, not to a process: the process that has the callback port opens the
 * browser, once for all. The others watch the record, and take over if that process ends.
 */
import { Fault } from '../../../base/fault/fault.js'
import { within } from '../../../base/time/time.js'
import type { Found } from '../client/discover.js'
import { endingOf } from '../ending.js'
import { sameIssuer } from '../issuer.js'
import { quoted } from '../quoted.js'
import { includesAll } from '../scopes.js'
import type { Pending, Token, TokenRecord } from '../store/record.js'
import type { OpenBrowser } from './browser.js'
import { CallbackPort } from './callback-port.js'
import type { PageName } from './pages.js'
import { readPasted } from './paste.js'
import { LIFETIME, Steps, type StepsOptions } from './steps.js'

/** How to ask a person. */
export interface Person {
  open: OpenBrowser
  /**
   * Shows an address to a person whose browser is on another machine, with the code to enter or compare there. Returns whether
   * there is a place for that.
   */
  show(address: string, code?: string): boolean
}

/** A sign-in in progress. */
export interface SignInFlow {
  readonly asked: readonly string[]
  /** The address of the sign-in page, once known. */
  readonly address: string | undefined
  /** The code that has to be entered there. */
  readonly code?: string | undefined
  /** No browser could be started, so the address was shown. */
  readonly isShown: boolean
  /** Resolves when the address was shown. */
  readonly shown: Promise<void>
  /** Another request waits for the sign-in. `insist`: a command, which shows the page again. */
  remind(insist?: boolean): void
  /** Resolves to the token, whichever process obtains it. Rejects with a Fault if the sign-in fails. */
  run(): Promise<Token>
  /** Handles a pasted response. Resolves to its page; undefined if it is not a response. */
  paste(text: string): Promise<PageName | undefined>
}

/** The sign-in, and what it needs. */
export interface FlowOptions extends StepsOptions {
  found: Found
  /** The access token to be replaced. */
  known: string | undefined
  /** Started by a command: opens the browser again, even if it was opened recently. */
  insist: boolean
  person: Person
  /** Aborts when the process ends. */
  signal: AbortSignal
}

/** All in milliseconds. */
const OPENED_FOR = 300_000
const INTERVAL = 250
/** For redeeming the code of a response. */
const REDEEMED_WITHIN = 30_000

/** The sign-in. */
export class Flow implements SignInFlow {
  readonly asked: readonly string[]
  readonly #options: FlowOptions
  readonly #steps: Steps
  readonly #port: CallbackPort
  readonly #began: number
  /** When a request last started to wait. It may open the browser again. */
  #reminded: number
  #insists: boolean
  #address: string | undefined
  #isShown = false
  #onShown: () => void = () => {}
  readonly shown = new Promise<void>((resolve) => {
    this.#onShown = resolve
  })
  /** A suitable sign-in was in the record. If it disappears, another process or `logout` has ended it. */
  #seen = false
  /** The state of a sign-in in the record whose client is forgotten. */
  #forgotten: string | undefined
  #wake: () => void = () => {}

  constructor(options: FlowOptions) {
    this.#options = options
    this.#steps = new Steps(options)
    this.asked = options.asked
    const { key, settings, now } = options
    this.#port = new CallbackPort({ key, settings, now, onAnswer: (params) => this.#answer(params) })
    this.#began = options.now()
    this.#reminded = this.#began
    this.#insists = options.insist
  }

  get address(): string | undefined {
    return this.#address
  }

  get isShown(): boolean {
    return this.#isShown
  }

  remind(insist = false): void {
    this.#reminded = this.#options.now()
    if (insist) this.#insists = true
    this.#wake()
  }

  async run(): Promise<Token> {
    const { store, key, signal } = this.#options
    try {
      this.#steps.checkPkce()
      for (;;) {
        signal.throwIfAborted()
        const record = await store.read(key)
        const token = this.#tokenOf(record)
        if (token) return token
        if (record?.ended && record.ended.since >= this.#began) throw endingOf(record.ended)
        if (await this.#advance(record?.pending)) continue
        await this.#pause()
      }
    } catch (error) {
      throw await this.#end(error)
    } finally {
      await this.#port.release()
    }
  }

  async paste(text: string): Promise<PageName | undefined> {
    const params = readPasted(text)
    return params && this.#answer(params)
  }

  /** One step. Resolves to whether to continue at once. */
  async #advance(found: Pending | undefined): Promise<boolean> {
    const { now } = this.#options
    const pending = this.#suits(found) ? found : undefined
    if (!pending && this.#began + LIFETIME <= now())
      throw new Fault('signInRequired', `Signing in to ${quoted(this.#options.server)} did not start within 10 minutes`)
    if (pending && pending.began + LIFETIME <= now())
      throw new Fault(
        'signInRequired',
        `Nobody finished signing in to ${quoted(this.#options.server)} within 10 minutes`,
      )
    // Its code is being redeemed.
    if (pending?.claimed !== undefined && pending.claimed + REDEEMED_WITHIN > now()) return false
    const usable = pending?.claimed === undefined ? pending : undefined
    if (!found && this.#seen)
      throw new Fault('signInRequired', `Signing in to ${quoted(this.#options.server)} was cancelled`)
    this.#seen ||= usable !== undefined
    if (usable) {
      this.#address = await this.#steps.addressOf(usable)
      if (this.#insists || usable.opened < this.#reminded - OPENED_FOR) {
        if (usable.opened > 0 && (await this.#steps.isForgotten(usable))) {
          this.#forgotten = usable.state
          return true
        }
        await this.#open(usable)
      }
    }
    const had = this.#port.port
    if (!(await this.#port.take(usable))) return false
    // Another process may have ended it before this one got the port.
    if (this.#port.port !== had) return true
    if (usable) return false
    await this.#begin(had as number)
    return true
  }

  /** Whether a sign-in in the record is for the same issuer, resource, client and scopes. */
  #suits(pending: Pending | undefined): pending is Pending {
    const { found, asked, settings } = this.#options
    return (
      pending !== undefined &&
      pending.state !== this.#forgotten &&
      // It comes back to the page of the bridge.
      pending.browser === undefined &&
      sameIssuer(pending.issuer, found.server.issuer) &&
      pending.resource === found.resource &&
      (settings.clientId === undefined || pending.client.id === settings.clientId) &&
      includesAll(pending.asked, asked) &&
      !this.#port.hasLost(pending) &&
      // It had not expired when this one started.
      pending.began + LIFETIME > this.#began
    )
  }

  #tokenOf(record: TokenRecord | undefined): Token | undefined {
    const { known, found, asked } = this.#options
    const token = record?.token
    const fits = token && token.access !== known && sameIssuer(token.issuer, found.server.issuer)
    return fits && includesAll(token.asked, asked) ? token : undefined
  }

  /** Called only by the process that has the port, so there is one sign-in at a time. */
  async #begin(port: number): Promise<void> {
    if (!this.#options.insist) await this.#steps.checkRate()
    await this.#steps.begin(this.#port.redirectUri(port))
  }

  async #open(pending: Pending): Promise<void> {
    const { store, key, holder, now, person, log, server, loginName = server } = this.#options
    const insists = this.#insists
    this.#insists = false
    // Noted before the browser is started, so that a process that is killed meanwhile does not cause a second window.
    const isOwn = await store.change(key, holder, (record) => {
      if (record.pending?.state !== pending.state) return false
      const isFirst = record.pending.opened === pending.opened
      record.pending.opened = now()
      return isFirst || insists
    })
    if (!isOwn) return
    const address = await this.#steps.addressOf(pending)
    if (await person.open(address)) return
    this.#isShown = true
    this.#onShown()
    // The address is secret, so it is in no log.
    if (person.show(address))
      log.info({ event: 'browser_unavailable' }, 'cannot open a browser; the address is shown on the terminal')
    else
      log.warn(
        { event: 'browser_unavailable', next: `mcp-bridge login ${loginName}` },
        'cannot open a browser, and there is no terminal for the address: sign in with the command in "next"',
      )
  }

  async #answer(params: URLSearchParams): Promise<PageName> {
    try {
      return await this.#steps.answer(params)
    } finally {
      this.#wake()
    }
  }

  async #end(error: unknown): Promise<unknown> {
    const { signal, log, store, key } = this.#options
    if (signal.aborted) return error
    const record = await store.read(key).catch(() => undefined)
    const isNoted = record?.ended !== undefined && record.ended.since >= this.#began
    // Only the process with the port knows how the sign-in ended.
    const fault =
      isNoted || this.#port.port === undefined
        ? this.#steps.asFault(error)
        : await this.#steps.note(error, record?.pending)
    log.warn({ event: 'sign_in_failed', reason: fault.row.reason, why: fault.message }, 'sign-in failed')
    return fault
  }

  /** Waits until the record may have changed. */
  async #pause(): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    await within(woken, INTERVAL)
  }
}
