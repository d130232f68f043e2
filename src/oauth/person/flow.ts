/**
 * One sign-in of a person. It belongs to the record, not to a process: whoever has its port can finish it. The process that
 * has the port sends the browser, once for all; the others look at what comes of it, and take over where that process ends.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../logging.js'
import { checkDestination } from '../../net/fetch.js'
import { Fault } from '../../protocol/fault.js'
import type { Found } from '../client/discover.js'
import { GrantRefused, redeemCode } from '../client/grants.js'
import { knownClient, register } from '../client/register.js'
import type { ClientSettings } from '../client/settings.js'
import { failed, networkFault, quoted } from '../failure.js'
import type { Reach } from '../reach.js'
import { includesAll } from '../scopes.js'
import { type Client, ENDINGS, type Holder, type Pending, type Token, type TokenRecord } from '../store/record.js'
import type { Store } from '../store/store.js'
import { authorizationAddress, checkedResponse, checkPkce, isAnswerTo, newSecrets } from './authorization.js'
import type { OpenBrowser } from './browser.js'
import { CallbackPort, portOf } from './callback-port.js'
import type { PageName } from './pages.js'
import { readPasted } from './paste.js'

/** How a person is asked. */
export interface Person {
  open: OpenBrowser
  /** Shows an address to somebody whose browser is elsewhere. */
  show(address: string): void
}

/** The log of the server. */
export type FlowLog = Pick<Log, 'info' | 'warn'>

export interface FlowOptions {
  /** The server's name, for people. */
  server: string
  store: Store
  key: string
  holder: Holder
  found: Found
  settings: ClientSettings
  reach: Reach
  asked: readonly string[]
  /** The access token that will not do. */
  known: string | undefined
  /** Somebody has asked for it by a command: the browser is sent again, however lately it was. */
  insist: boolean
  person: Person
  log: FlowLog
  now: () => number
  /** Aborts when the process ends. */
  signal: AbortSignal
}

/** Milliseconds. */
const LIFETIME = 600_000
const OPENED_FOR = 300_000
const INTERVAL = 250
/** For which whoever took an answer may take to redeem its code. */
const REDEEMED_WITHIN = 30_000
/** For which a client that was registered is used again, because issuers forget them. */
const CLIENT_FOR = 3_600_000
/** Authorizations of an account. */
const RATE = { most: 3, within: 300_000 }

export class Flow {
  readonly asked: readonly string[]
  readonly #options: FlowOptions
  readonly #port: CallbackPort
  readonly #began: number
  /** Since when somebody has been waiting who may be shown a browser once more. */
  #reminded: number
  #insists: boolean
  #address: string | undefined
  #isShown = false
  #onShown: () => void = () => {}
  /** Resolves when the person has been shown the address, because no browser could be started. */
  readonly shown = new Promise<void>((resolve) => {
    this.#onShown = resolve
  })
  /** A sign-in that is wanted here has begun: if it is there no longer, somebody has ended it. */
  #seen = false
  #wake: () => void = () => {}

  constructor(options: FlowOptions) {
    this.#options = options
    this.asked = options.asked
    const { key, settings, now } = options
    this.#port = new CallbackPort({ key, settings, now, onAnswer: (params) => this.#answer(params) })
    this.#began = options.now()
    this.#reminded = this.#began
    this.#insists = options.insist
  }

  /** Where the person signs in, once that is known. */
  get address(): string | undefined {
    return this.#address
  }

  /** No browser could be started here: the person has been shown the address. */
  get isShown(): boolean {
    return this.#isShown
  }

  /** Somebody else waits for it. */
  remind(insist = false): void {
    this.#reminded = this.#options.now()
    if (insist) this.#insists = true
    this.#wake()
  }

  /** Resolves to the token, whichever process gets it. Rejects with a Fault where there will be none. */
  async run(): Promise<Token> {
    const { store, key, signal, settings, found } = this.#options
    try {
      checkPkce(found.server, settings.pkce === 'assume')
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

  /** Takes an answer that a person has pasted. Resolves to what became of it; undefined where it is none. */
  async paste(text: string): Promise<PageName | undefined> {
    const params = readPasted(text)
    return params && this.#answer(params)
  }

  /** One step forward. Resolves to whether to look again at once. */
  async #advance(found: Pending | undefined): Promise<boolean> {
    const { now } = this.#options
    const pending = this.#suits(found) ? found : undefined
    if (!pending && this.#began + LIFETIME <= now())
      throw new Fault('signInRequired', `Signing in to ${quoted(this.#options.server)} did not begin in 10 minutes`)
    if (pending && pending.began + LIFETIME <= now())
      throw new Fault(
        'signInRequired',
        `Nobody has finished signing in to ${quoted(this.#options.server)} in 10 minutes`,
      )
    // Its code is being redeemed.
    if (pending?.claimed !== undefined && pending.claimed + REDEEMED_WITHIN > now()) return false
    const usable = pending?.claimed === undefined ? pending : undefined
    if (!found && this.#seen)
      throw new Fault('signInRequired', `Signing in to ${quoted(this.#options.server)} was given up`)
    this.#seen ||= usable !== undefined
    if (usable) {
      this.#address = await this.#addressOf(usable)
      if (this.#insists || usable.opened < this.#reminded - OPENED_FOR) await this.#open(usable)
    }
    const had = this.#port.port
    if (!(await this.#port.take(usable))) return false
    // What was there before the port was had may be over.
    if (this.#port.port !== had) return true
    if (usable) return false
    await this.#begin(had as number)
    return true
  }

  /** Whether a sign-in that somebody began is the one that is wanted here. */
  #suits(pending: Pending | undefined): pending is Pending {
    const { found, asked, settings } = this.#options
    return (
      pending !== undefined &&
      pending.issuer === found.server.issuer &&
      pending.resource === found.resource &&
      (settings.clientId === undefined || pending.client.id === settings.clientId) &&
      includesAll(pending.asked, asked) &&
      !this.#port.hasLost(pending) &&
      // One that was over before this one began is nobody's.
      pending.began + LIFETIME > this.#began
    )
  }

  #tokenOf(record: TokenRecord | undefined): Token | undefined {
    const { known, found, asked } = this.#options
    const token = record?.token
    const fits = token && token.access !== known && token.issuer === found.server.issuer
    return fits && includesAll(token.asked, asked) ? token : undefined
  }

  /** Only who has the port begins: nobody else is doing it. */
  async #begin(port: number): Promise<void> {
    const { store, key, holder, found, asked, now, log } = this.#options
    await this.#checkRate()
    await this.#checkEndpoints()
    const redirectUri = this.#port.redirectUri(port)
    const client = await this.#client(redirectUri)
    const pending: Pending = {
      issuer: found.server.issuer,
      ...(found.resource !== undefined && { resource: found.resource }),
      client,
      ...newSecrets(),
      redirectUri: client.redirectUri ?? redirectUri,
      asked: [...asked],
      began: now(),
      opened: 0,
    }
    await store.change(key, holder, (record) => {
      record.pending = pending
      record.began = [...record.began.filter((moment) => moment + RATE.within > now()), now()].slice(-RATE.most)
      record.client ??= client
    })
    log.info({ event: 'sign_in_started', issuer: found.server.issuer }, 'sign-in started')
  }

  /** Whatever goes wrong again and again does not open window after window. */
  async #checkRate(): Promise<void> {
    const { store, key, now, insist, server } = this.#options
    const began = (await store.read(key))?.began ?? []
    if (insist || began.filter((moment) => moment + RATE.within > now()).length < RATE.most) return
    throw new Fault(
      'signInRequired',
      `Signing in to ${quoted(server)} was begun ${RATE.most} times in 5 minutes. Sign in by "mcp-bridge login"`,
    )
  }

  /** Nobody is sent to sign in where it could not be finished, or where nobody should go. */
  async #checkEndpoints(): Promise<void> {
    const { found, reach } = this.#options
    const { authorization_endpoint, token_endpoint, issuer } = found.server
    if (authorization_endpoint === undefined || token_endpoint === undefined)
      throw failed(`The authorization server ${quoted(issuer)} has no endpoint where a person could sign in`)
    for (const endpoint of [authorization_endpoint, token_endpoint])
      await checkDestination(endpoint, reach).catch((error: unknown) => {
        throw networkFault(error, `The authorization server ${quoted(issuer)}`)
      })
  }

  async #client(redirectUri: string): Promise<Client> {
    const { store, key, found, settings, reach, asked, now } = this.#options
    const { server } = found
    const known = knownClient(server, settings, redirectUri, now())
    if (known) return known
    const record = await store.read(key)
    const before = record?.pending?.client ?? record?.client
    const isYoung = before?.how === 'registered' && before.since + CLIENT_FOR > now()
    const isSame = before?.issuer === server.issuer && portOf(before.redirectUri ?? '') === portOf(redirectUri)
    // An issuer may hold a client to the scopes that it has registered for.
    const registeredFor = record?.pending?.asked ?? record?.asked?.scopes ?? []
    if (isYoung && isSame && includesAll(registeredFor, asked)) return before
    return register({ server, settings, redirectUri, scopes: asked, reach, now: now() }).catch((error: unknown) => {
      if (!found.guessed || !(error instanceof Fault) || error.fault !== 'authFailed') throw error
      throw failed(
        `${quoted(this.#options.server)} wants credentials and publishes nothing about signing in. ` +
          'If it takes a key, set it in "headers"; if there is an authorization server, set "oauth.issuer"',
      )
    })
  }

  async #open(pending: Pending): Promise<void> {
    const { store, key, holder, now, person, log } = this.#options
    const insists = this.#insists
    this.#insists = false
    // Before the browser is started: a process that is killed meanwhile leaves no second window.
    const isOwn = await store.change(key, holder, (record) => {
      if (record.pending?.state !== pending.state) return false
      const isFirst = record.pending.opened === pending.opened
      record.pending.opened = now()
      return isFirst || insists
    })
    if (!isOwn) return
    const address = await this.#addressOf(pending)
    if (await person.open(address)) return
    log.info({ event: 'browser_unavailable' }, 'cannot open a browser; showing the address instead')
    this.#isShown = true
    this.#onShown()
    person.show(address)
  }

  #addressOf(pending: Pending): Promise<string> {
    const { found, settings } = this.#options
    return authorizationAddress(found.server.authorization_endpoint ?? '', pending, settings.params)
  }

  /** Takes what a browser brought back. An answer to something else changes nothing. */
  async #answer(params: URLSearchParams): Promise<PageName> {
    const { store, key, holder, found, settings, reach, now, log } = this.#options
    const known = (await store.read(key))?.pending
    if (!known || !isAnswerTo(params, known)) return 'unknown'
    const pending = await store.change(key, holder, (record) => {
      const { pending } = record
      const isOpen = pending && pending.claimed === undefined && pending.began + LIFETIME > now()
      if (!isOpen || !isAnswerTo(params, pending)) return undefined
      // One use, whatever becomes of it.
      pending.claimed = now()
      return structuredClone(pending)
    })
    if (!pending || pending.issuer !== found.server.issuer) return 'unknown'
    const { client, resource, verifier, redirectUri, asked } = pending
    try {
      const response = checkedResponse(params, found.server, client.id)
      const context = { server: found.server, client, resource, settings, reach, now }
      const { token, client: accepted } = await redeemCode(context, { response, verifier, redirectUri, asked })
      await store.change(key, holder, (record) => {
        // Whoever has signed out meanwhile wants no token.
        if (record.pending?.state !== pending.state) return
        delete record.pending
        delete record.ended
        record.token = token
        record.client = accepted
        record.asked = { issuer: token.issuer, scopes: token.asked }
      })
      log.info({ event: 'signed_in' }, 'signed in')
      return 'signedIn'
    } catch (error) {
      await this.#note(error, pending)
      return 'failed'
    } finally {
      this.#wake()
    }
  }

  /** Tells all who wait, in all processes, how a sign-in has ended. */
  async #note(error: unknown, pending: Pending | undefined): Promise<Fault> {
    const { store, key, holder, now } = this.#options
    const fault = this.#asFault(error)
    const ending = ENDINGS.find((one) => one === fault.fault)
    if (!ending) return fault
    await store.change(key, holder, (record) => {
      if (pending && record.pending?.state !== pending.state) return
      delete record.pending
      // The issuer has forgotten it.
      const isForgotten = error instanceof GrantRefused && /^(?:invalid|unauthorized)_client$/.test(error.code)
      if (isForgotten && record.client?.id === pending?.client.id) delete record.client
      const { message, retryAfter } = fault
      record.ended = {
        fault: ending,
        message: message.slice(0, 2_000),
        ...(retryAfter !== undefined && { retryAfter }),
        since: now(),
      }
    })
    return fault
  }

  #asFault(error: unknown): Fault {
    const { issuer } = this.#options.found.server
    return error instanceof GrantRefused
      ? failed(`The authorization server ${quoted(issuer)} does not redeem the code: ${error.code}`)
      : Fault.from(error)
  }

  async #end(error: unknown): Promise<unknown> {
    const { signal, log, store, key } = this.#options
    if (signal.aborted) return error
    const record = await store.read(key).catch(() => undefined)
    const isNoted = record?.ended !== undefined && record.ended.since >= this.#began
    // Without the port, it is not this process that knows how it ends.
    const fault =
      isNoted || this.#port.port === undefined ? this.#asFault(error) : await this.#note(error, record?.pending)
    log.warn({ event: 'sign_in_failed', reason: fault.row.reason, why: fault.message }, 'sign-in failed')
    return fault
  }

  /** Until something may have changed. */
  async #pause(): Promise<void> {
    const waiting = new AbortController()
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    const late = sleep(INTERVAL, undefined, { signal: waiting.signal }).catch(() => {})
    await Promise.race([woken, late])
    waiting.abort()
  }
}

function endingOf({ fault, message, retryAfter }: NonNullable<TokenRecord['ended']>): Fault {
  return new Fault(fault, message, retryAfter === undefined ? {} : { retryAfter })
}
