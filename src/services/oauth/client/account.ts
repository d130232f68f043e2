/**
 * The tokens of one account at one server: uses them while they are fresh, renews them, and obtains new ones, if
 * necessary by asking a person to sign in.
 */
import { sha256 } from '../../../base/crypto/digest.js'
import type { AccountRefusal as Refusal } from '../../../base/fault/fault.js'
import { Fault, isOfSignIn } from '../../../base/fault/fault.js'
import type { Signal } from '../../../base/time/hang-up.js'
import { pause } from '../../../base/time/pause.js'
import { unlessAborted, within } from '../../../base/time/time.js'
import type { ProvenRequest } from '../../../mcp/protocol/account.js'
import type { ShownToken } from '../../../mcp/protocol/shown-token.js'
import { readChallenges, type Wanted, wantedBy } from '../challenge.js'
import { endingOf } from '../ending.js'
import { sameIssuer } from '../issuer.js'
import type { PageName } from '../person/pages.js'
import { quoted } from '../quoted.js'
import { chooseScopes, includesAll, OPENID, union } from '../scopes.js'
import type { Holder, Token, TokenRecord } from '../store/record.js'
import type { TokenStore } from '../store/store.js'
import type { Found } from './discover.js'
import { Nonce } from './nonce.js'
import type { Obtainer, ObtainOptions, RecordPlace } from './obtain.js'
import { PersonWait, type RunningFlow } from './person-wait.js'
import { asksPerson, type ClientSettings, isRenewable } from './settings.js'
import type { AccountStatus } from './status.js'

/** The account, and what it needs. */
export interface AccountOptions extends Pick<ObtainOptions, 'server' | 'settings' | 'now'> {
  store: TokenStore
  /** The token of the caller whose account it is, if the bridge calls on behalf of callers. */
  shown?: ShownToken | undefined
  /** The account and the endpoint that the tokens belong to. */
  holder: Holder
  /** The argument of `mcp-bridge login` for the server; by default its name. */
  loginName?: string | undefined
  /** Obtains tokens. Loaded when it is needed. */
  obtainer(): Promise<Obtainer>
}

/** All in milliseconds, except `part`: a part of the token's lifetime. */
const LOOK_EVERY = 500
const FRESH = { least: 60_000, part: 0.1 }
const DECLINED_FOR = 60_000
const REFUSED_FOR = 300_000
/** After a failed renewal of a token that is still valid. */
const RENEW_AGAIN = 10_000
/** For which a refusal of a caller's token counts. */
const REFUSED_AGAIN = 5_000
/** Most renewals because the server refused a token that had not expired. */
const RATE = { most: 3, within: 300_000 }

/** The record as last read. */
interface Known {
  record: TokenRecord | undefined
  stamp: string
  header: string | undefined
  /** Milliseconds since 1970 until which the token is sent without a check. */
  fresh: number
}

/** The key of an account's record: equal in all processes with equal settings. */
export function accountKey({ endpoint, account }: Holder, settings: ClientSettings): string {
  const { resource, params = {}, bearer, apiKey } = settings
  const sorted = Object.entries(params).sort(([one], [other]) => (one < other ? -1 : 1))
  const own = [...(bearer === 'id_token' ? [bearer] : []), ...(apiKey ? [{ header: apiKey.header }] : [])]
  return sha256(JSON.stringify([endpoint, account, resource ?? null, sorted, ...own])).toString('hex')
}

/** The tokens of one account. Safe to use from several processes at once. */
export class TokenAccount {
  readonly key: string
  readonly #options: AccountOptions
  readonly #now: () => number
  #known: Known | undefined
  /** When the record was last checked, by the monotonic clock. */
  #looked = Number.NEGATIVE_INFINITY
  #renewing: Promise<Token | undefined> | undefined
  #renewNotBefore = 0
  #obtaining: Promise<Token | Found> | undefined
  readonly #person: PersonWait
  readonly #nonce = new Nonce()
  /** The challenges of the server's last refusal. */
  #challenges: readonly string[] = []
  /** Why no token was given for the caller's one, and until when that counts. */
  #refusedBy: unknown
  #refusedUntil = 0
  /** Times of renewals because the server refused a token. */
  #forced: readonly number[] = []

  constructor(options: AccountOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.key = accountKey(options.holder, options.settings)
    const onEnd = () => {
      this.#known = undefined
    }
    this.#person = new PersonWait({ ...options, onEnd })
  }

  /** The `Authorization` to send; not a promise if it is fresh. Undefined if there is none. Rejects with a Fault. */
  authorization(signal: Signal): string | undefined | Promise<string | undefined> {
    const now = performance.now()
    if (now - this.#looked >= LOOK_EVERY) {
      this.#looked = now
      // Another process may have changed the record.
      if (this.#known?.stamp !== this.#options.store.stamp(this.key)) this.#known = undefined
    }
    const known = this.#known
    if (!known) return this.#load().then((loaded) => this.#current(loaded, signal))
    return known.header === undefined || this.#now() < known.fresh ? known.header : this.#current(known, signal)
  }

  /**
   * Another `Authorization` after a refusal, to be tried once. If `mayAsk`, a person may be asked to sign in: only for
   * requests of clients. Rejects with a Fault.
   */
  async refused(refusal: Refusal, signal: Signal, mayAsk: boolean): Promise<string> {
    const { status, challenges, sent } = refusal
    const began = performance.now()
    if (this.#nonce.isWanted(refusal)) return sent as string
    this.#challenges = challenges
    const wanted = wantedBy(readChallenges(challenges))
    if (status === 403 && wanted.error !== 'insufficient_scope') throw notTaken(refusal)
    const { record } = await this.#load()
    const token = record?.token
    const isStepUp = status === 403 && token !== undefined && sent !== undefined
    const lacking = isStepUp ? (wanted.scopes ?? []) : []
    // Another process or request has obtained another token meanwhile.
    if (token && headerOf(token) !== sent && !this.#isOver(token) && includesAll(token.asked, lacking))
      return headerOf(token)
    if (isStepUp) await this.#checkLacking(record as TokenRecord, lacking)
    if (isStepUp || !this.#isRenewable(record)) {
      // Nothing is sent if a person would be needed and may not be asked, or is being asked already.
      if (!mayAsk && !this.#isMachine) throw this.#person.needed(refusal)
      if (!this.#isMachine) checkDeclined(record, this.#now())
      const { running } = this.#person
      if (running) return headerOf(await this.#person.wait(running, began, signal))
    }
    const obtaining = isStepUp ? this.#stepUp(record as TokenRecord, wanted) : this.#again(refusal, wanted)
    const got = await within(obtaining, this.#person.timeLeft(began), () => this.#person.tooSlow(), signal)
    if (isToken(got)) return headerOf(got)
    if (!mayAsk) throw this.#person.needed(refusal)
    const asked = this.#scopes(got, wanted, record, isStepUp)
    const flow = this.#startFlow(await this.#options.obtainer(), got, asked, token, false)
    return headerOf(await this.#person.wait(flow, began, signal))
  }

  /** Notes the nonce for the next proof. */
  nonce(nonce: string): void {
    this.#nonce.take(nonce)
  }

  /** The `DPoP` header for one request. Rejects with a Fault if the token that it is for has gone. */
  async proof(request: ProvenRequest): Promise<string> {
    const { record } = this.#known ?? (await this.#load())
    if (!record?.key) throw new Fault('signInRequired', this.#person.signInFirst)
    return (await this.#options.obtainer()).proof(record.key, request, this.#nonce.value)
  }

  /**
   * Signs in now, even if there is a token. Resolves when there is a new token; rejects with a Fault. `challenges` say
   * what to sign in for; by default the server's last ones.
   */
  async login(challenges: readonly string[] | undefined, signal: Signal): Promise<AccountStatus> {
    const wanted = wantedBy(readChallenges(challenges ?? this.#challenges))
    const obtainer = await this.#options.obtainer()
    const { record } = await this.#load()
    const found = await obtainer.find(wanted, record, true)
    const asked = this.#scopes(found, wanted, record, false)
    if (this.#isMachine) await obtainer.ask(this.#place, found, asked, record?.token?.access)
    else await unlessAborted(this.#startFlow(obtainer, found, asked, record?.token, true).token, signal)
    return this.status()
  }

  /** Waits for a sign-in in another process. Undefined if there is no other token in time; rejects with a Fault if it fails. */
  async arrived({ sent }: Refusal, signal: Signal): Promise<string | undefined> {
    const began = this.#now()
    for (let left = this.#person.patience; left > 0 && !signal.aborted; left -= LOOK_EVERY) {
      await pause(Math.min(left, LOOK_EVERY), signal)
      const record = await this.#options.store.read(this.key)
      const token = record?.token
      if (token && headerOf(token) !== sent && !this.#isOver(token)) return headerOf(token)
      if (record?.ended && record.ended.since >= began) throw endingOf(record.ended)
    }
    signal.throwIfAborted()
    return undefined
  }

  /** Where a sign-in for these wishes of the server would lead, and for what. Rejects with a Fault. */
  async prospect(wanted: Wanted | undefined): Promise<{ found: Found; asked: readonly string[] }> {
    const { record } = await this.#load()
    const obtainer = await this.#options.obtainer()
    if (!wanted && this.#challenges.length === 0) this.#challenges = await obtainer.challenges()
    const wishes = wanted ?? wantedBy(readChallenges(this.#challenges))
    const found = await obtainer.find(wishes, record, false)
    const isStepUp = record?.token !== undefined && wishes.error === 'insufficient_scope'
    return { found, asked: this.#scopes(found, wishes, record, isStepUp) }
  }

  /**
   * Begins a sign-in on the page of the bridge. Resolves to the address for the browser, which comes back to `redirectUri`.
   * Only the browser with this session can finish it. Rejects with a Fault.
   */
  async begin(wanted: Wanted | undefined, by: { redirectUri: string; browser: string }): Promise<string> {
    const { found, asked } = await this.prospect(wanted)
    return (await this.#options.obtainer()).begin(this.#place, found, asked, by)
  }

  /** Takes the redirect of a sign-in that this browser began at any replica. */
  async finish(params: URLSearchParams, browser: string): Promise<{ page: PageName; why?: string | undefined }> {
    const { pending } = (await this.#load()).record ?? {}
    if (pending?.browser !== browser) return { page: 'unknown' }
    const page = await (await this.#options.obtainer()).finish(this.#place, pending, params)
    const { record } = await this.#load()
    return { page, why: page === 'failed' ? record?.ended?.message : undefined }
  }

  /** Takes the redirect address that a person pasted. Resolves to whether it belongs to a sign-in. */
  async paste(text: string): Promise<boolean> {
    const shown = await this.#person.running?.flow.paste(text)
    return shown === 'signedIn' || shown === 'failed'
  }

  /** Removes the record, for all processes. `revoked`: the issuer confirmed that it revoked the tokens. */
  async logout(): Promise<{ found: boolean; revoked: boolean }> {
    const { record } = await this.#load()
    await this.#options.store.remove(this.key)
    this.#known = undefined
    if (!record) return { found: false, revoked: false }
    const revoked = record.token ? await (await this.#options.obtainer()).revoke(record) : false
    return { found: true, revoked }
  }

  async status(): Promise<AccountStatus> {
    const { record } = await this.#load()
    const { statusOf } = await import('./status.js')
    return statusOf(record ?? { version: 1, ...this.#options.holder, began: [] }, this.#now())
  }

  /** Ends what is in progress in this process. Other processes may continue the sign-in. */
  close(): void {
    this.#person.close()
  }

  get #place(): RecordPlace {
    const { holder, store, shown } = this.#options
    return { key: this.key, holder, store, shown }
  }

  #isRenewable(record: TokenRecord | undefined): record is TokenRecord {
    const { settings, shown } = this.#options
    if (!record || !isRenewable(record, settings)) return false
    // No token is valid for longer than the caller's token that it was obtained for.
    return !shown || (record.token?.expires ?? 0) < shown.expires
  }

  /** Whether tokens are obtained without a person. */
  get #isMachine(): boolean {
    return !asksPerson(this.#options.settings)
  }

  async #load(): Promise<Known> {
    const { store } = this.#options
    const stamp = store.stamp(this.key)
    const record = await store.read(this.key)
    const token = record?.token
    this.#known = { record, stamp, header: token && headerOf(token), fresh: token ? freshUntil(token) : 0 }
    return this.#known
  }

  async #current({ record, header, fresh }: Known, signal: Signal): Promise<string | undefined> {
    const token = record?.token
    const now = this.#now()
    if (!token || now < fresh) return header
    const isOver = this.#isOver(token)
    if (!isOver && now < this.#renewNotBefore) return header
    if (!this.#isRenewable(record)) return isOver ? undefined : header
    try {
      const obtainer = await this.#options.obtainer()
      const renewed = await unlessAborted(this.#renew(obtainer, token.access), signal)
      return renewed && headerOf(renewed)
    } catch (error) {
      if (isOver || signal.aborted) throw error
      this.#renewNotBefore = now + RENEW_AGAIN
      return header
    }
  }

  #isOver({ expires }: Token): boolean {
    return expires !== undefined && expires <= this.#now()
  }

  /** Renews the token; concurrent callers share one renewal. Undefined if there is no token other than `known`. */
  async #renew(obtainer: Obtainer, known: string): Promise<Token | undefined> {
    this.#renewing ??= obtainer.renew(this.#place, known).finally(() => {
      this.#renewing = undefined
      this.#known = undefined
    })
    const token = await this.#renewing
    return token?.access === known ? undefined : token
  }

  /** After a 401: another token, or the issuer where a person must sign in. Concurrent callers share one attempt. */
  #again(refusal: Refusal, wanted: Wanted): Promise<Token | Found> {
    this.#obtaining ??= this.#obtain(refusal, wanted).finally(() => {
      this.#obtaining = undefined
      this.#known = undefined
    })
    return this.#obtaining
  }

  async #obtain(refusal: Refusal, wanted: Wanted): Promise<Token | Found> {
    if (this.#refusedUntil > this.#now()) throw this.#refusedBy
    try {
      return await this.#obtainNow(refusal, wanted)
    } catch (error) {
      // An issuer that has refused a caller's token is not asked again with each call.
      if (this.#options.shown && isOfSignIn(error)) {
        this.#refusedBy = error
        this.#refusedUntil = this.#now() + REFUSED_AGAIN
      }
      throw error
    }
  }

  async #obtainNow(refusal: Refusal, wanted: Wanted): Promise<Token | Found> {
    const { store, holder } = this.#options
    const obtainer = await this.#options.obtainer()
    // The issuer is determined before any secret is sent.
    const found = await obtainer.find(wanted, await store.read(this.key), true)
    const { issuer } = found.server
    const record = await store.change(this.key, holder, (record) => {
      // Tokens and clients of one issuer are never sent to another.
      if (record.token && !sameIssuer(record.token.issuer, issuer)) {
        delete record.token
        delete record.key
      }
      if (record.client && !sameIssuer(record.client.issuer, issuer)) delete record.client
      return structuredClone(record)
    })
    const { token } = record
    const isNew = token !== undefined && headerOf(token) !== refusal.sent && !this.#isOver(token)
    if (isNew) return token
    const isRenewable = this.#isRenewable(record)
    if (token && !this.#isOver(token) && (isRenewable || this.#isMachine)) this.#checkForced(refusal)
    if (token && isRenewable) {
      const renewed = await this.#renew(obtainer, token.access)
      if (renewed) return renewed
    }
    if (!this.#isMachine) return found
    return obtainer.ask(this.#place, found, this.#scopes(found, wanted, record, false), token?.access)
  }

  /** Limits the renewals that a server can cause by refusing every token. */
  #checkForced(refusal: Refusal): void {
    const now = this.#now()
    const lately = this.#forced.filter((moment) => moment + RATE.within > now)
    if (lately.length >= RATE.most) throw notTaken(refusal)
    this.#forced = [...lately, now]
  }

  /** Throws a Fault if the server requires scopes that were requested before. */
  async #checkLacking({ token, refused }: TokenRecord, lacking: readonly string[]): Promise<void> {
    const { store, holder, server } = this.#options
    const lately = refused && refused.since + REFUSED_FOR > this.#now() ? refused.scopes : undefined
    const isNew = !includesAll(token?.asked ?? [], lacking) && !(lately && includesAll(lately, lacking))
    if (isNew) return
    await store.change(this.key, holder, (record) => {
      record.refused = { scopes: [...lacking], since: this.#now() }
    })
    throw new Fault(
      'scopeRefused',
      `${quoted(server)} requires scopes that were requested and not granted: ${lacking.map(quoted).join(', ') || 'it names none'}`,
    )
  }

  /** A token with more scopes, or the issuer where a person must sign in for them. */
  async #stepUp(record: TokenRecord, wanted: Wanted): Promise<Token | Found> {
    const obtainer = await this.#options.obtainer()
    const found = await obtainer.find(wanted, record, false)
    if (!this.#isMachine) return found
    return obtainer.ask(this.#place, found, this.#scopes(found, wanted, record, true), record.token?.access)
  }

  #scopes(found: Found, wanted: Wanted, record: TokenRecord | undefined, stepUp: boolean): readonly string[] {
    const asked = record?.asked
    const before = asked && sameIssuer(asked.issuer, found.server.issuer) ? asked.scopes : undefined
    const { scopes: configured, bearer } = this.#options.settings
    const scopes = chooseScopes({
      configured,
      challenged: wanted.scopes,
      supported: found.scopes,
      // A client that acts for itself needs no refresh token: it requests another access token.
      offered: this.#isMachine ? undefined : found.server.scopes_supported,
      before,
      stepUp,
    })
    return bearer === 'id_token' ? union(scopes, [OPENID]) : scopes
  }

  #startFlow(
    obtainer: Obtainer,
    found: Found,
    asked: readonly string[],
    known: Token | undefined,
    insist: boolean,
  ): RunningFlow {
    return this.#person.start(insist, (signal) =>
      obtainer.flow(this.#place, found, asked, known?.access, { insist, signal }),
    )
  }
}

function headerOf({ access, type }: Token): string {
  return `${type === 'dpop' ? 'DPoP' : 'Bearer'} ${access}`
}

/** A minute, or a tenth of its lifetime, before the token expires. */
function freshUntil({ expires, since }: Token): number {
  return expires === undefined
    ? Number.POSITIVE_INFINITY
    : expires - Math.min(FRESH.least, Math.max(expires - since, 0) * FRESH.part)
}

function isToken(got: Token | Found): got is Token {
  return 'access' in got
}

function notTaken({ status, challenges: [challenge] }: Refusal): Fault {
  return new Fault('upstreamAuthRequired', `The server refused the token that was obtained for it (HTTP ${status})`, {
    data: { httpStatus: status },
    refused: { status, challenge },
  })
}

/** Throws a Fault if a person declined recently, so that they are not asked again at once. */
function checkDeclined(record: TokenRecord | undefined, now: number): void {
  const ended = record?.ended
  if (ended?.fault === 'signInRefused' && ended.since + DECLINED_FOR > now)
    throw new Fault('signInRefused', ended.message, { retryAfter: DECLINED_FOR / 1_000 })
}
