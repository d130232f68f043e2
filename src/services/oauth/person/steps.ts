/**
 * The steps of a sign-in, wherever its browser comes back, and how long it may take: it begins, the browser is sent away
 * with an address, the response is redeemed, and the end is noted in the record.
 */

import { Fault } from '../../../base/fault/fault.js'
import type { Log } from '../../../base/log/events.js'
import { checkDestination } from '../../../base/net/fetch.js'
import type { Found } from '../client/discover.js'
import { AuthorizationRefused, GrantRefused, keepGranted, redeemCode } from '../client/grants.js'
import { newProofKey } from '../client/proof-key.js'
import { knownClient, register } from '../client/register.js'
import type { ClientSettings } from '../client/settings.js'
import { failed, networkFault } from '../failure.js'
import { sameIssuer } from '../issuer.js'
import { quoted } from '../quoted.js'
import type { Reach } from '../reach.js'
import { includesAll } from '../scopes.js'
import { type Client, ENDINGS, type Holder, type Pending, type TokenRecord } from '../store/record.js'
import type { TokenStore } from '../store/store.js'
import {
  type Authorization,
  authorizationAddress,
  checkedResponse,
  checkPkce,
  isAnswerTo,
  newSecrets,
} from './authorization.js'
import { portOf } from './callback-port.js'
import { isForgotten } from './forgotten.js'
import type { PageName } from './pages.js'

/** Where the steps of a sign-in are logged. */
export type FlowLog = Pick<Log, 'info' | 'warn'>

/** Whose sign-in it is, and at which issuer. */
export interface StepsOptions {
  /** The server's name, for people. */
  server: string
  /** The argument of `mcp-bridge login` for the server; by default its name. */
  loginName?: string | undefined
  store: TokenStore
  key: string
  holder: Holder
  found: Pick<Found, 'server' | 'resource' | 'guessed' | 'dpop'>
  settings: ClientSettings
  reach: Reach
  asked: readonly string[]
  log: FlowLog
  now: () => number
  /** The digest of the browser's session on the page of the bridge; undefined if the browser comes back to this machine. */
  browser?: string | undefined
}

/** Milliseconds for which a sign-in can be finished. */
export const LIFETIME = 600_000
/** Milliseconds for reusing a registered client: an issuer may delete unused ones. */
const CLIENT_FOR = 3_600_000
/** Most authorizations of an account. */
const RATE = { most: 3, within: 300_000 }

/** What a record has of the end of a sign-in. */
export function endedWith(
  { message, retryAfter }: Fault,
  fault: (typeof ENDINGS)[number],
  since: number,
): TokenRecord['ended'] {
  return { fault, message: message.slice(0, 2_000), ...(retryAfter !== undefined && { retryAfter }), since }
}

/** The steps of one sign-in. */
export class Steps {
  readonly #options: StepsOptions

  constructor(options: StepsOptions) {
    this.#options = options
  }

  /** Throws a Fault if the authorization server does not announce PKCE. */
  checkPkce(): void {
    const { found, settings } = this.#options
    checkPkce(found.server, settings.pkce === 'assume')
  }

  /** Rejects with a Fault if a recurring failure has begun too many sign-ins. */
  async checkRate(): Promise<void> {
    const { store, key, now, server, loginName = server } = this.#options
    const began = (await store.read(key))?.began ?? []
    if (began.filter((moment) => moment + RATE.within > now()).length < RATE.most) return
    throw new Fault(
      'signInRequired',
      `Signing in to ${quoted(server)} was started ${RATE.most} times in 5 minutes. Sign in with mcp-bridge login ${loginName}`,
    )
  }

  /** Begins a sign-in that comes back to `redirectUri`. It replaces any other of the account. Rejects with a Fault. */
  async begin(redirectUri: string): Promise<Pending> {
    const { store, key, holder, found, asked, now, log, browser } = this.#options
    await this.#checkEndpoints()
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
      ...(browser !== undefined && { browser }),
      ...(found.dpop && { dpop: true }),
    }
    await store.change(key, holder, (record) => {
      record.pending = pending
      if (browser !== undefined) delete record.ended
      record.began = [...record.began.filter((moment) => moment + RATE.within > now()), now()].slice(-RATE.most)
      record.client ??= client
    })
    log.info({ event: 'sign_in_started', issuer: found.server.issuer }, 'sign-in started')
    return pending
  }

  /** The address for the browser. It is secret. */
  addressOf(pending: Authorization): Promise<string> {
    const { found, settings } = this.#options
    return authorizationAddress(found.server.authorization_endpoint ?? '', pending, settings.params)
  }

  /** Whether the authorization server has forgotten a client that the bridge registered. */
  async isForgotten({ client, redirectUri }: Pick<Pending, 'client' | 'redirectUri'>): Promise<boolean> {
    const { found, asked, reach } = this.#options
    if (client.how !== 'registered') return false
    const { resource } = found
    const trial = { ...newSecrets(), client, redirectUri: client.redirectUri ?? redirectUri, asked: [...asked] }
    return isForgotten(await this.addressOf({ ...trial, ...(resource !== undefined && { resource }) }), reach)
  }

  /** Handles a redirect. A response to another sign-in, or in another browser, changes nothing. */
  async answer(params: URLSearchParams): Promise<PageName> {
    const { store, key, holder, found, settings, reach, now, log, browser } = this.#options
    const isOurs = (pending: Pending | undefined): pending is Pending =>
      pending !== undefined && pending.browser === browser && isAnswerTo(params, pending)
    if (!isOurs((await store.read(key))?.pending)) return 'unknown'
    const pending = await store.change(key, holder, (record) => {
      const { pending } = record
      const isOpen = pending && pending.claimed === undefined && pending.began + LIFETIME > now()
      if (!isOpen || !isOurs(pending)) return undefined
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
      const { row, message } = await this.note(error, pending)
      // On this machine, the flow writes how it ended.
      if (browser !== undefined)
        log.warn({ event: 'sign_in_failed', reason: row.reason, why: message }, 'sign-in failed')
      return 'failed'
    }
  }

  /** Records how a sign-in ended, for all processes that wait. */
  async note(error: unknown, pending: Pending | undefined): Promise<Fault> {
    const { store, key, holder, now } = this.#options
    const fault = this.asFault(error)
    const ending = ENDINGS.find((one) => one === fault.fault)
    if (!ending) return fault
    await store.change(key, holder, (record) => {
      if (pending && record.pending?.state !== pending.state) return
      delete record.pending
      const isForgotten = error instanceof GrantRefused && error.isOfClient && record.client?.how === 'registered'
      if (isForgotten && record.client?.id === pending?.client.id) delete record.client
      record.ended = endedWith(fault, ending, now())
    })
    return fault
  }

  asFault(error: unknown): Fault {
    const { issuer } = this.#options.found.server
    if (!(error instanceof GrantRefused)) return Fault.from(error)
    const what = error instanceof AuthorizationRefused ? 'answered with the error' : 'refused the code:'
    return failed(`The authorization server ${quoted(issuer)} ${what} ${error.code}`)
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
    const { store, key, found, settings, reach, asked, now, browser } = this.#options
    const { server } = found
    const known = knownClient(server, settings, redirectUri, now())
    if (known) return known
    const record = await store.read(key)
    const before = record?.pending?.client ?? record?.client
    const isYoung = before?.how === 'registered' && before.since + CLIENT_FOR > now()
    const isSame =
      before !== undefined &&
      sameIssuer(before.issuer, server.issuer) &&
      // On this machine, `localhost` may have been registered as an address.
      (browser === undefined
        ? portOf(before.redirectUri ?? '') === portOf(redirectUri)
        : before.redirectUri === redirectUri)
    // An issuer may restrict a client to the scopes that it registered for.
    const registeredFor = record?.pending?.asked ?? record?.asked?.scopes ?? []
    const fits = isYoung && isSame && includesAll(registeredFor, asked)
    if (fits && !(await this.isForgotten({ client: before, redirectUri }))) return before
    const isFixed = browser !== undefined
    return register({ server, settings, redirectUri, isFixed, scopes: asked, reach, now: now() }).catch(
      (error: unknown) => {
        if (!found.guessed || !(error instanceof Fault) || error.fault !== 'authFailed') throw error
        throw failed(
          `${quoted(this.#options.server)} requires credentials and publishes nothing about signing in. ` +
            'If it requires a key, set it in "headers"; if it has an authorization server, set "oauth.issuer"',
        )
      },
    )
  }
}
