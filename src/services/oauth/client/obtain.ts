/** Obtains tokens for one server. Loaded only when a server refuses a request. */
import { Fault } from '../../../base/fault/fault.js'
import { guardedRequest } from '../../../base/net/fetch.js'
import type { ShownToken } from '../../../mcp/protocol/shown-token.js'
import type { Wanted } from '../challenge.js'
import type { IssuerMetadata } from '../documents.js'
import { failed } from '../failure.js'
import { sameIssuer } from '../issuer.js'
import { Issuers } from '../issuers.js'
import { DeviceFlow } from '../person/device-flow.js'
import { Flow, type Person, type SignInFlow } from '../person/flow.js'
import type { PageName } from '../person/pages.js'
import { type FlowLog, Steps } from '../person/steps.js'
import { quoted } from '../quoted.js'
import { type Network, type Reach, reachOf } from '../reach.js'
import { renewInTurn } from '../store/in-turn.js'
import type { Client, Holder, Pending, ProofKey, Token, TokenRecord } from '../store/record.js'
import type { TokenStore } from '../store/store.js'
import { configuredServer, discover, type Found, ownServer } from './discover.js'
import { type Granted, GrantRefused, keepGranted, refresh, revoke } from './grants.js'
import { newProofKey, proofFor } from './proof-key.js'
import { knownClient } from './register.js'
import { asksPerson, type ClientSettings, isRenewable } from './settings.js'
import { obtainWithoutPerson } from './without-person.js'

/** The server, and what is needed to sign in to it. */
export interface ObtainOptions {
  /** The server's name, for people. */
  server: string
  /** The argument of `mcp-bridge login` for it; by default its name. */
  loginName?: string | undefined
  /** The server's address, as connected to. */
  url: string
  settings: ClientSettings
  person: Person
  log: FlowLog
  /** Whether the server is known to speak 2026-07-28. */
  isModern?: (() => boolean) | undefined
  network?: Network | undefined
  /** The hosts that may be contacted; by default those allowed for a configured server. */
  reach?: Reach | undefined
  now?: (() => number) | undefined
}

/** Milliseconds for a server to refuse a request without credentials. */
const CHALLENGED_WITHIN = 5_000

/** The record for the tokens, and whom they are for. */
export interface RecordPlace {
  key: string
  holder: Holder
  /** Where the records are. */
  store: TokenStore
  /** The token of the caller that they are obtained for, if the bridge calls on behalf of callers. */
  shown: ShownToken | undefined
}

/** Obtains, renews and revokes tokens for one server. */
export class Obtainer {
  readonly #options: ObtainOptions
  readonly #reach: Reach
  readonly #now: () => number
  readonly #issuers: Issuers

  constructor(options: ObtainOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#reach = options.reach ?? reachOf(options.url, options.settings, options.network)
    this.#issuers = new Issuers(this.#now)
  }

  /**
   * Finds the issuer and the resource. The issuer of existing tokens is kept while the server names it. Rejects with a
   * Fault.
   */
  async find(wanted: Wanted | undefined, record: TokenRecord | undefined, fresh: boolean): Promise<Found> {
    const { url, settings, isModern } = this.#options
    const known = record?.token?.issuer ?? record?.asked?.issuer
    const modern = isModern?.() ?? false
    const common = { url, wanted, settings, known, modern, fresh }
    const found = await discover({ ...common, issuers: this.#issuers, reach: this.#reach })
    this.#checkConfigured(found.server, record)
    return found
  }

  /** A configured client without a configured issuer belongs to the issuer that it was first used with. */
  #checkConfigured({ issuer }: IssuerMetadata, record: TokenRecord | undefined): void {
    const { clientId, issuer: configured } = this.#options.settings
    const client = record?.client ?? record?.pending?.client
    const isOther = client?.how === 'configured' && client.id === clientId && !sameIssuer(client.issuer, issuer)
    if (!isOther || (configured !== undefined && sameIssuer(configured, issuer))) return
    throw new Fault(
      'clientNeeded',
      `"oauth.clientId" was used with the issuer ${quoted(client.issuer)}, but the server now names ${quoted(issuer)}. ` +
        'If that is correct, set "oauth.issuer" and the client that belongs to it',
    )
  }

  /** A token to replace `known`. Resolves to undefined if only a person can obtain one; rejects with a Fault. */
  renew({ key, holder, store, shown }: RecordPlace, known: string): Promise<Token | undefined> {
    return renewInTurn({
      store,
      key,
      holder,
      known,
      now: this.#now,
      isRenewable: (record) => isRenewable(record, this.#options.settings),
      renew: (record, check) => this.#renewed(record, shown, check),
    })
  }

  /** A token to replace `known`, obtained without a person. Rejects with a Fault. */
  async ask(
    { key, holder, store, shown }: RecordPlace,
    found: Found,
    asked: readonly string[],
    known: string | undefined,
  ): Promise<Token> {
    const token = await renewInTurn({
      store,
      key,
      holder,
      known,
      now: this.#now,
      isRenewable: () => true,
      renew: async ({ key }, check) => {
        const proof = found.dpop ? (key ?? (await newProofKey())) : undefined
        return kept(await this.#obtain(found.server, found.resource, asked, shown, proof, check))
      },
    })
    if (!token) throw failed(`The token for ${quoted(this.#options.server)} was removed while it was being obtained`)
    return token
  }

  /** Starts the sign-in of a person. */
  flow(place: RecordPlace, found: Found, asked: readonly string[], known: string | undefined, by: FlowBy): SignInFlow {
    const { server, loginName, settings, person, log } = this.#options
    const { key, holder, store } = place
    const common = { server, loginName, settings, person, log, reach: this.#reach, now: this.#now }
    const options = { ...common, key, holder, store, found, asked, known, ...by }
    return settings.grant === 'device' ? new DeviceFlow(options) : new Flow(options)
  }

  /** The proof that a request with a bound token needs. */
  readonly proof = proofFor

  /** The server's challenges to a request without credentials; none if they are unknown. */
  async challenges(): Promise<readonly string[]> {
    const headers = { accept: 'text/event-stream' }
    const asked = { ...this.#reach, headers, timeLimit: CHALLENGED_WITHIN }
    const answer = await guardedRequest(this.#options.url, asked).catch(() => undefined)
    const { status, headers: said } = answer ?? {}
    return status === 401 ? [said?.['www-authenticate'] ?? []].flat() : []
  }

  /** Begins the sign-in of a person on the page of the bridge. Resolves to the address for the browser. Rejects with a Fault. */
  async begin(place: RecordPlace, found: Found, asked: readonly string[], by: PageBy): Promise<string> {
    const steps = this.#steps(place, found, asked, by.browser)
    steps.checkPkce()
    return steps.addressOf(await steps.begin(by.redirectUri))
  }

  /** Takes the redirect of such a sign-in. */
  async finish(place: RecordPlace, pending: Pending, params: URLSearchParams): Promise<PageName> {
    const { issuer, resource, asked, browser, dpop = false } = pending
    const server = await this.#serverOf({ issuer, resource })
    return server ? this.#steps(place, { server, resource, dpop }, asked, browser).answer(params) : 'unknown'
  }

  #steps(
    { key, holder, store }: RecordPlace,
    found: Pick<Found, 'server' | 'resource' | 'guessed' | 'dpop'>,
    asked: readonly string[],
    browser: string | undefined,
  ): Steps {
    const { server, settings, log } = this.#options
    const common = { server, settings, log, reach: this.#reach, now: this.#now }
    return new Steps({ ...common, key, holder, store, found, asked, browser })
  }

  /** Revokes the tokens of a record. Resolves to whether the issuer confirmed it. */
  async revoke({ token, client }: TokenRecord): Promise<boolean> {
    if (!token || !client) return false
    try {
      const server = await this.#serverOf(token)
      if (server?.revocation_endpoint === undefined || !sameIssuer(client.issuer, server.issuer)) return false
      await revoke(this.#contextOf(server, client, token.resource), token)
      return true
    } catch {
      return false
    }
  }

  async #renewed(
    record: TokenRecord,
    shown: ShownToken | undefined,
    beforeAsking: () => Promise<void>,
  ): Promise<(record: TokenRecord) => void> {
    const { token, client } = record as { token: Token; client: Client }
    const proof = token.type === 'dpop' ? record.key : undefined
    const server = await this.#serverOf(token)
    if (!server)
      return (now) => {
        delete now.token
        delete now.key
      }
    if (!asksPerson(this.#options.settings))
      return kept(await this.#obtain(server, token.resource, token.asked, shown, proof, beforeAsking))
    try {
      return kept(
        await refresh({ ...this.#contextOf(server, client, token.resource), key: proof, beforeAsking }, token),
      )
    } catch (error) {
      if (!(error instanceof GrantRefused)) throw error
      // The grant has ended: another attempt would fail too.
      return (now) => {
        delete now.token
        if (!error.isOfClient || client.how !== 'registered') return
        if (now.client?.id === client.id) delete now.client
        if (now.pending?.client.id === client.id) delete now.pending
      }
    }
  }

  async #obtain(
    server: IssuerMetadata,
    resource: string | undefined,
    asked: readonly string[],
    shown: ShownToken | undefined,
    key: ProofKey | undefined,
    beforeAsking: () => Promise<void>,
  ): Promise<Granted> {
    const { settings, network } = this.#options
    const client = knownClient(server, settings, undefined, this.#now())
    if (!client) throw new Fault('clientNeeded', `The grant "${settings.grant}" requires "oauth.clientId"`)
    const context = { ...this.#contextOf(server, client, resource), key, beforeAsking }
    return obtainWithoutPerson({ ...context, settings, issuers: this.#issuers, network, asked, shown })
  }

  /** Tokens are sent only to the issuer that gave them. Undefined if the configuration now names another. */
  async #serverOf({ issuer, resource }: Pick<Token, 'issuer' | 'resource'>): Promise<IssuerMetadata | undefined> {
    const { url, settings } = this.#options
    const { authServerMetadataUrl: metadataUrl, endpoints } = settings
    if (endpoints) {
      const server = configuredServer({ ...settings, endpoints })
      return sameIssuer(server.issuer, issuer) ? server : undefined
    }
    const isOwn = resource === undefined && sameIssuer(issuer, new URL(url).origin) && settings.issuer === undefined
    if (isOwn && metadataUrl === undefined && settings.resource !== false)
      return (await ownServer(url, this.#reach)).server
    const question = metadataUrl === undefined ? { issuer } : { issuer: settings.issuer, metadataUrl }
    const server = await this.#issuers.find({ ...question, reach: this.#reach })
    return sameIssuer(server.issuer, issuer) ? server : undefined
  }

  #contextOf(server: IssuerMetadata, client: Granted['client'], resource: string | undefined) {
    return { server, client, resource, settings: this.#options.settings, reach: this.#reach, now: this.#now }
  }
}

/** The browser of a sign-in on the page of the bridge: where it comes back, and the digest of its session there. */
interface PageBy {
  redirectUri: string
  browser: string
}

/** Who started a sign-in (`insist`: by a command), and what ends it. */
export interface FlowBy {
  insist: boolean
  signal: AbortSignal
}

function kept(granted: Granted): (record: TokenRecord) => void {
  return (record) => keepGranted(record, granted)
}
