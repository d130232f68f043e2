/**
 * One sign-in of a person. It belongs to the record, not to a process: the process that has the callback port opens the
 * browser, once for all. The others watch the record, and take over if that process ends.
 */

import { Fault } from '../../fault/fault.js'
import type { Log } from '../../log/events.js'
import { checkDestination } from '../../net/fetch.js'
import { within } from '../../time/time.js'
import type { Found } from '../client/discover.js'
import { AuthorizationRefused, GrantRefused, keepGranted, redeemCode } from '../client/grants.js'
import { newProofKey } from '../client/proof-key.js'
import { knownClient, register } from '../client/register.js'
import type { ClientSettings } from '../client/settings.js'
import { failed, networkFault, quoted } from '../failure.js'
import { sameIssuer } from '../issuer.js'
import type { Reach } from '../reach.js'
import { includesAll } from '../scopes.js'
import { type Client, ENDINGS, type Holder, type Pending, type Token, type TokenRecord } from '../store/record.js'
import type { TokenStore } from '../store/store.js'
import {
  type Authorization,
  authorizationAddress,
  checkedResponse,
  checkPkce,
  isAnswerTo,
  newSecrets,
} from './authorization.js'
import type { OpenBrowser } from './browser.js'
import { CallbackPort, portOf } from './callback-port.js'
import { isForgotten } from './forgotten.js'
import type { PageName } from './pages.js'
import { readPasted } from './paste.js'

/** How to ask a person. */
export interface Person {
  open: OpenBrowser
  /** Shows an address to a person whose browser is on another machine. Returns whether there is a place for that. */
  show(address: string): boolean
}

/** Where the steps of a sign-in are logged. */
export type FlowLog = Pick<Log, 'info' | 'warn'>

/** The sign-in, and what it needs. */
export interface FlowOptions {
  /** The server's name, for people. */
  server: string
  /** The argument of `mcp-bridge login` for it; by default its name. */
  loginName?: string | undefined
  store: TokenStore
  key: string
  holder: Holder
  found: Found
  settings: ClientSettings
  reach: Reach
  asked: readonly string[]
  /** The access token to be replaced. */
  known: string | undefined
  /** Started by a command: opens the browser again, even if it was opened recently. */
  insist: boolean
  person: Person
  log: FlowLog
  now: () => number
  /** Aborts when the process ends. */
  signal: AbortSignal
}

/** All in milliseconds. */
const LIFETIME = 600_000
const OPENED_FOR = 300_000
const INTERVAL = 250
/** For redeeming the code of a response. */
const REDEEMED_WITHIN = 30_000
/** For reusing a registered client: an issuer may delete unused ones. */
const CLIENT_FOR = 3_600_000
/** Most authorizations of an account. */
const RATE = { most: 3, within: 300_000 }

/** The sign-in. */
export class Flow {
  readonly asked: readonly string[]
  readonly #options: FlowOptions
  readonly #port: CallbackPort
  readonly #began: number
  /** When a request last started to wait. It may open the browser again. */
  #reminded: number
  #insists: boolean
  #address: string | undefined
  #isShown = false
  #onShown: () => void = () => {}
  /** Resolves when the address was shown, because no browser could be started. */
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
    this.asked = options.asked
    const { key, settings, now } = options
    this.#port = new CallbackPort({ key, settings, now, onAnswer: (params) => this.#answer(params) })
    this.#began = options.now()
    this.#reminded = this.#began
    this.#insists = options.insist
  }

  /** The address of the sign-in page, once known. */
  get address(): string | undefined {
    return this.#address
  }

  /** No browser could be started, so the address was shown. */
  get isShown(): boolean {
    return this.#isShown
  }

  /** Another request waits for the sign-in. */
  remind(insist = false): void {
    this.#reminded = this.#options.now()
    if (insist) this.#insists = true
    this.#wake()
  }

  /** Resolves to the token, whichever process obtains it. Rejects with a Fault if the sign-in fails. */
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

  /** Handles a pasted response. Resolves to its page; undefined if it is not a response. */
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
      throw new Fault('signInRequired', `Signing in to ${quoted(this.#options.server)} was given up`)
    this.#seen ||= usable !== undefined
    if (usable) {
      this.#address = await this.#addressOf(usable)
      if (this.#insists || usable.opened < this.#reminded - OPENED_FOR) {
        if (usable.opened > 0 && (await this.#isForgotten(usable))) {
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

  /** Limits how often a recurring failure opens a browser. */
  async #checkRate(): Promise<void> {
    const { store, key, now, insist, server } = this.#options
    const began = (await store.read(key))?.began ?? []
    if (insist || began.filter((moment) => moment + RATE.within > now()).length < RATE.most) return
    throw new Fault(
      'signInRequired',
      `Signing in to ${quoted(server)} was started ${RATE.most} times in 5 minutes. Sign in with "mcp-bridge login"`,
    )
  }

  /** Checks both endpoints before a person is sent to one of them. */
  async #checkEndpoints(): Promise<void> {
    const { found, reach } = this.#options
    const { authorization_endpoint, token_endpoint, issuer } = found.server
    if (authorization_endpoint === undefined || token_endpoint === undefined)
      throw failed(`The authorization server ${quoted(issuer)} lacks an authorization endpoint or a token endpoint`)
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
    const isSame =
      before !== undefined &&
      sameIssuer(before.issuer, server.issuer) &&
      portOf(before.redirectUri ?? '') === portOf(redirectUri)
    // An issuer may restrict a client to the scopes that it registered for.
    const registeredFor = record?.pending?.asked ?? record?.asked?.scopes ?? []
    const fits = isYoung && isSame && includesAll(registeredFor, asked)
    if (fits && !(await this.#isForgotten({ client: before, redirectUri }))) return before
    return register({ server, settings, redirectUri, scopes: asked, reach, now: now() }).catch((error: unknown) => {
      if (!found.guessed || !(error instanceof Fault) || error.fault !== 'authFailed') throw error
      throw failed(
        `${quoted(this.#options.server)} requires credentials and publishes nothing about signing in. ` +
          'If it requires a key, set it in "headers"; if it has an authorization server, set "oauth.issuer"',
      )
    })
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
    const address = await this.#addressOf(pending)
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

  /** Whether the authorization server has forgotten a client that the bridge registered. */
  async #isForgotten({ client, redirectUri }: Pick<Pending, 'client' | 'redirectUri'>): Promise<boolean> {
    const { found, asked, reach } = this.#options
    if (client.how !== 'registered') return false
    const { resource } = found
    const trial = { ...newSecrets(), client, redirectUri: client.redirectUri ?? redirectUri, asked: [...asked] }
    return isForgotten(await this.#addressOf({ ...trial, ...(resource !== undefined && { resource }) }), reach)
  }

  #addressOf(pending: Authorization): Promise<string> {
    const { found, settings } = this.#options
    return authorizationAddress(found.server.authorization_endpoint ?? '', pending, settings.params)
  }

  /** Handles a redirect. A response to another sign-in changes nothing. */
  async #answer(params: URLSearchParams): Promise<PageName> {
    const { store, key, holder, found, settings, reach, now, log } = this.#options
    const known = (await store.read(key))?.pending
    if (!known || !isAnswerTo(params, known)) return 'unknown'
    const pending = await store.change(key, holder, (record) => {
      const { pending } = record
      const isOpen = pending && pending.claimed === undefined && pending.began + LIFETIME > now()
      if (!isOpen || !isAnswerTo(params, pending)) return undefined
      // A response is used once, whether or not that succeeds.
      pending.claimed = now()
      return structuredClone(pending)
    })
    if (!pending || !sameIssuer(pending.issuer, found.server.issuer)) return 'unknown'
    const { client, resource, verifier, redirectUri, asked } = pending
    try {
      const response = checkedResponse(params, found.server, client.id)
      const proof = found.dpop ? await newProofKey() : undefined
      const context = { server: found.server, client, resource, settings, reach, now, key: proof }
      const granted = await redeemCode(context, { response, verifier, redirectUri, asked })
      await store.change(key, holder, (record) => {
        // The person has signed out meanwhile: drop the token.
        if (record.pending?.state !== pending.state) return
        delete record.pending
        delete record.ended
        keepGranted(record, granted)
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

  /** Records how a sign-in ended, for all processes that wait. */
  async #note(error: unknown, pending: Pending | undefined): Promise<Fault> {
    const { store, key, holder, now } = this.#options
    const fault = this.#asFault(error)
    const ending = ENDINGS.find((one) => one === fault.fault)
    if (!ending) return fault
    await store.change(key, holder, (record) => {
      if (pending && record.pending?.state !== pending.state) return
      delete record.pending
      const isForgotten = error instanceof GrantRefused && error.isOfClient && record.client?.how === 'registered'
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
    if (!(error instanceof GrantRefused)) return Fault.from(error)
    const what = error instanceof AuthorizationRefused ? 'answered with the error' : 'refused the code:'
    return failed(`The authorization server ${quoted(issuer)} ${what} ${error.code}`)
  }

  async #end(error: unknown): Promise<unknown> {
    const { signal, log, store, key } = this.#options
    if (signal.aborted) return error
    const record = await store.read(key).catch(() => undefined)
    const isNoted = record?.ended !== undefined && record.ended.since >= this.#began
    // Only the process with the port knows how the sign-in ended.
    const fault =
      isNoted || this.#port.port === undefined ? this.#asFault(error) : await this.#note(error, record?.pending)
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

function endingOf({ fault, message, retryAfter }: NonNullable<TokenRecord['ended']>): Fault {
  return new Fault(fault, message, retryAfter === undefined ? {} : { retryAfter })
}
