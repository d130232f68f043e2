/**
 * One sign-in of a person. It belongs to the record, not to a process: whoever has its port can finish it. The process that
 * has the port sends the browser, once for all; the others look at what comes of it, and take over where that process ends.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { checkDestination } from '../../net/fetch.js'
import { Fault } from '../../protocol/fault.js'
import { digest } from '../../seal.js'
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
import { holderOf, type Listener, listen } from './loopback.js'
import type { PageName } from './pages.js'
import { readPasted } from './paste.js'

/** How a person is asked. */
export interface Person {
  open: OpenBrowser
  /** Shows an address to somebody whose browser is elsewhere. */
  show(address: string): void
}

export interface FlowLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

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
/** For which somebody who has answered that they are a sibling is one. */
const SIBLING_FOR = 5_000
/** For which a sibling may not answer, because it is busy. */
const STRANGE_FOR = 15_000
/** For which a port that nobody seems to have may not be had. */
const VACANT_FOR = 2_000
/** For which whoever took an answer may take to redeem its code. */
const REDEEMED_WITHIN = 30_000
/** For which a client that was registered is used again, because issuers forget them. */
const CLIENT_FOR = 3_600_000
/** Authorizations of an account. */
const RATE = { most: 3, within: 300_000 }
const PORTS = { first: 33_000, count: 15_000, tries: 8 }

export class Flow {
  readonly asked: readonly string[]
  readonly #options: FlowOptions
  /** Names the account to siblings. */
  readonly #name: string
  readonly #began: number
  /** Since when somebody has been waiting who may be shown a browser once more. */
  #reminded: number
  #insists: boolean
  #address: string | undefined
  #isShown = false
  #listener: Listener | undefined
  /** A sign-in that is wanted here has begun: if it is there no longer, somebody has ended it. */
  #seen = false
  #siblingUntil = 0
  #strangeSince: number | undefined
  /** Sign-ins whose port somebody else has now: nobody can finish them. */
  readonly #lost = new Set<string>()
  #wake: () => void = () => {}

  constructor(options: FlowOptions) {
    this.#options = options
    this.asked = options.asked
    this.#name = digest(`sibling ${options.key}`)
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
      await this.#listener?.close()
      this.#listener = undefined
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
    if (this.#listener && usable && portOf(usable.redirectUri) !== this.#listener.port) {
      await this.#listener.close()
      this.#listener = undefined
    }
    if (!this.#listener) {
      this.#listener = await this.#takePort(usable)
      // What was there before the port was free may be over.
      return this.#listener !== undefined
    }
    if (!usable) {
      await this.#begin(this.#listener.port)
      return true
    }
    return false
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
      !this.#lost.has(pending.state) &&
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

  /** Undefined where a sibling has the port. Throws a Fault where no port can be had. */
  async #takePort(pending: Pending | undefined): Promise<Listener | undefined> {
    const { now } = this.#options
    const { path } = this.#redirect
    const own = pending && portOf(pending.redirectUri)
    for (const port of new Set([...(own === undefined ? [] : [own]), ...this.#ports])) {
      const onAnswer = (params: URLSearchParams) => this.#answer(params)
      const listener = await listen({ port, path, name: this.#name, onAnswer })
      if (listener) return listener
      if (this.#siblingUntil > now()) return undefined
      const holder = await holderOf(port, this.#name)
      if (holder === 'sibling') {
        this.#strangeSince = undefined
        this.#siblingUntil = now() + SIBLING_FOR
        return undefined
      }
      // A sibling on a busy machine may take its time, and a port that has just become free may be had in a moment.
      const patience = port === own ? STRANGE_FOR : holder === 'nobody' ? VACANT_FOR : 0
      this.#strangeSince ??= now()
      if (this.#strangeSince + patience > now()) return undefined
      if (pending && port === own) this.#lost.add(pending.state)
    }
    throw failed(
      `No port is free on this machine for the browser to come back to (${[...this.#ports].join(', ')}). Set "oauth.callbackPort"`,
    )
  }

  get #redirect(): { port: number | undefined; path: string; uri: string | undefined } {
    const { redirectUri: uri } = this.#options.settings
    if (uri === undefined) return { port: undefined, path: '/callback', uri }
    return { port: portOf(uri), path: new URL(uri).pathname, uri }
  }

  get #ports(): readonly number[] {
    const { settings, key } = this.#options
    const fixed = this.#redirect.port ?? settings.callbackPort
    if (fixed !== undefined) return [fixed]
    const first = PORTS.first + (Buffer.from(digest(key), 'base64url').readUInt32BE() % PORTS.count)
    return Array.from({ length: PORTS.tries }, (_, at) => first + at)
  }

  /** Only who has the port begins: nobody else is doing it. */
  async #begin(port: number): Promise<void> {
    const { store, key, holder, found, asked, now, log, server } = this.#options
    await this.#checkRate()
    await this.#checkEndpoints()
    const redirectUri = this.#redirect.uri ?? `http://localhost:${port}/callback`
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
      if (client.how === 'registered') record.client ??= client
    })
    log.info({ server, issuer: found.server.issuer }, 'sign-in began')
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
    if (isYoung && isSame) return before
    return register({ server, settings, redirectUri, scopes: asked, reach, now: now() })
  }

  async #open(pending: Pending): Promise<void> {
    const { store, key, holder, now, person, log, server } = this.#options
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
    log.info({ server }, 'no browser could be started: the address is shown instead')
    this.#isShown = true
    person.show(address)
  }

  #addressOf(pending: Pending): Promise<string> {
    const { found, settings } = this.#options
    return authorizationAddress(found.server.authorization_endpoint ?? '', pending, settings.params)
  }

  /** Takes what a browser brought back. An answer to something else changes nothing. */
  async #answer(params: URLSearchParams): Promise<PageName> {
    const { store, key, holder, found, settings, reach, now, log, server } = this.#options
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
      log.info({ server }, 'signed in')
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
    const { signal, server, log, store, key } = this.#options
    if (signal.aborted) return error
    const record = await store.read(key).catch(() => undefined)
    const isNoted = record?.ended !== undefined && record.ended.since >= this.#began
    // Without the port, it is not this process that knows how it ends.
    const fault = isNoted || !this.#listener ? this.#asFault(error) : await this.#note(error, record?.pending)
    log.warn({ server, reason: fault.row.reason }, `sign-in ended: ${fault.message}`)
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

function portOf(uri: string): number {
  return URL.canParse(uri) ? Number(new URL(uri).port) || 80 : 0
}
