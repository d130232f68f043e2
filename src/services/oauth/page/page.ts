/**
 * The page where people sign in to servers with their own accounts. A browser first shows who is in it; tokens are stored for
 * that person alone, whoever made the link that was opened.
 */

import { digest } from '../../../base/crypto/digest.js'
import type { SealKey } from '../../../base/crypto/seal.js'
import { Fault } from '../../../base/fault/fault.js'
import { parseUrl } from '../../../base/texts/parse-url.js'
import type { BrowserAnswer, BrowserRequest } from '../../../mcp/ports/browser.js'
import type { Decisions } from '../../../middle/policy/approval/decisions.js'
import type { PageQuestions } from '../../../middle/policy/approval/page-questions.js'
import type { Accounts } from '../client/accounts.js'
import type { AccountStatus } from '../client/status.js'
import { redirect, shown } from './answer.js'
import { answerQuestion, showQuestion } from './approving.js'
import type { Company, KnownPerson } from './company.js'
import type { Desk, Ticket } from './desk.js'
import { agreement, type Content, leaving, list, message, type PageContext, type ServerRow, welcome } from './html.js'
import { enteredKey, keyForm } from './key-form.js'
import { type Destination, type Visitor, Visitors } from './visitors.js'

/** Everything that the page needs. */
export interface SignInPageOptions {
  /** Its address, as browsers know it. */
  address: string
  keys: readonly SealKey[]
  desk: Desk
  /** What people are asked about calls. */
  questions: PageQuestions
  /** Is told what they decide. */
  decided: Decisions
  /** The servers to sign in to, by name. */
  servers: ReadonlyMap<string, Accounts>
  /** The sign-in at the identity provider; undefined without one. */
  company: Company | undefined
  /** The principal of a token of this bridge; undefined without such tokens. */
  ownerOf: ((token: string) => string | undefined) | undefined
  log: { warn(fields: { event: 'sign_in_link_foreign'; server: string }, message: string): void }
  now?: (() => number) | undefined
}

/** What may work again later. */
const AWAY: ReadonlySet<string> = new Set(['storeUnavailable', 'upstreamUnavailable', 'authUnavailable'])

/** The page. */
export class SignInPage {
  readonly #options: SignInPageOptions
  readonly #visitors: Visitors
  readonly #base: string
  readonly #origin: string

  constructor(options: SignInPageOptions) {
    this.#options = options
    this.#visitors = new Visitors(options.keys, options.now)
    const { pathname, origin } = new URL(options.address)
    this.#base = pathname
    this.#origin = origin
  }

  /** Answers a request. Never rejects because of what others say. */
  async answer(request: BrowserRequest): Promise<BrowserAnswer> {
    try {
      return await this.#route(request)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const status = AWAY.has(error.fault) ? 503 : 400
      return shown(message('Not signed in', error.message, this.#back), this.#context(request), status)
    }
  }

  async #route(request: BrowserRequest): Promise<BrowserAnswer> {
    const [first, second] = request.path
    // To look at a page changes nothing; to come back from an identity provider does, and is left to GET.
    const method = request.method === 'HEAD' && second === undefined ? 'GET' : request.method
    switch (`${method} ${second === undefined ? '' : first}`) {
      case 'GET ':
        return first === undefined ? this.#list(request) : this.#ask(request, first)
      case 'POST ':
        return first === undefined ? this.#missing(request) : this.#begin(request, first)
      case 'GET approve':
        return this.#show(request, second as string)
      case 'POST approve':
        return this.#choose(request, second as string)
      case 'GET callback':
        return this.#finish(request, second as string)
      case 'POST out':
        return this.#signOut(request, second as string)
      case 'GET browser':
        return second === 'callback' ? this.#arrive(request) : this.#missing(request)
      case 'POST browser':
        if (second === 'out') return this.#forget(request)
        return second === 'token' ? this.#take(request) : this.#missing(request)
      default:
        return this.#missing(request)
    }
  }

  // What a person sees.

  async #list(request: BrowserRequest): Promise<BrowserAnswer> {
    const known = this.#visitor(request)
    if (!known) return this.#welcome({})
    const { visitor, cookie } = known
    const rows = await Promise.all(
      [...this.#options.servers].map(async ([name, accounts]): Promise<ServerRow> => {
        const status = await accounts
          .heldBy(visitor.principal)
          .status()
          .catch(() => undefined)
        return {
          name,
          host: hostOf(accounts.url),
          state: stateOf(status),
          issuer: status?.issuer && hostOf(status.issuer),
          hasKey: accounts.keyOf(visitor.principal) !== undefined,
        }
      }),
    )
    const context = this.#contextOf(visitor)
    return shown(list(rows, request.query.get('done') ?? undefined, context), context, 200, cookie)
  }

  async #ask(request: BrowserRequest, server: string): Promise<BrowserAnswer> {
    const accounts = this.#options.servers.get(server)
    if (!accounts) return this.#missing(request)
    const ticket = request.query.get('t') ?? undefined
    const known = this.#visitor(request)
    if (!known) return this.#welcome({ server, ticket })
    const { visitor, cookie } = known
    const context = this.#contextOf(visitor)
    const invited = await this.#invited(server, ticket, visitor, context)
    if (invited && 'status' in invited) return invited
    const { client } = invited ?? {}
    const key = accounts.keyOf(visitor.principal)
    if (key) {
      const { signedIn: isStored } = await key.status()
      const wanted = { server, host: hostOf(accounts.url), isStored, client, ticket }
      return shown(keyForm(wanted, context), context, 200, cookie)
    }
    const { found, asked } = await accounts.of(visitor.principal).prospect(invited?.wanted)
    const { issuer } = found.server
    const content = agreement({ server, host: hostOf(accounts.url), issuer, scopes: asked, client, ticket }, context)
    return shown(content, context, 200, cookie)
  }

  async #begin(request: BrowserRequest, server: string): Promise<BrowserAnswer> {
    const accounts = this.#options.servers.get(server)
    const visitor = this.#sender(request)
    if (!accounts) return this.#missing(request)
    if (!visitor) return this.#stale(request)
    const ticket = request.form.get('t') ?? undefined
    const context = this.#contextOf(visitor)
    const invited = await this.#invited(server, ticket, visitor, context)
    if (invited && 'status' in invited) return invited
    const key = accounts.keyOf(visitor.principal)
    const read = key && enteredKey(request.form.get('key'))
    if (read && 'wrong' in read) {
      const { client } = invited ?? {}
      const again = { server, host: hostOf(accounts.url), isStored: false, client, ticket, wrong: read.wrong }
      return shown(keyForm(again, context), context, 400)
    }
    if (invited && !(await this.#options.desk.spend(invited))) return shown(this.#old(server), context, 400)
    if (key && read) {
      await key.enter(read.entered)
      return redirect(this.#done(server))
    }
    const redirectUri = `${this.#options.address}/callback/${encodeURIComponent(server)}`
    const by = { redirectUri, browser: digest(visitor.id) }
    const address = await accounts.of(visitor.principal).begin(invited?.wanted, by)
    return shown(leaving(server, address), context)
  }

  async #finish(request: BrowserRequest, server: string): Promise<BrowserAnswer> {
    const accounts = this.#options.servers.get(server)
    const { visitor } = this.#visitor(request) ?? {}
    if (!accounts) return this.#missing(request)
    if (!visitor) return this.#stale(request)
    const { page, why } = await accounts.of(visitor.principal).finish(request.query, digest(visitor.id))
    if (page === 'signedIn') return redirect(this.#done(server))
    if (page === 'unknown') return this.#stale(request)
    const text = why ?? 'The sign-in failed.'
    return shown(message('Not signed in', text, this.#back), this.#contextOf(visitor), 400)
  }

  async #signOut(request: BrowserRequest, server: string): Promise<BrowserAnswer> {
    const accounts = this.#options.servers.get(server)
    const visitor = this.#sender(request)
    if (!accounts) return this.#missing(request)
    if (!visitor) return this.#stale(request)
    await accounts.heldBy(visitor.principal).logout()
    return redirect(this.#base)
  }

  // Calls that a person approves.

  #show(request: BrowserRequest, name: string): Promise<BrowserAnswer> {
    const known = this.#visitor(request)
    if (!known) return this.#welcome({ question: name })
    return showQuestion({ ...this.#options, ...known, name }, this.#contextOf(known.visitor))
  }

  async #choose(request: BrowserRequest, name: string): Promise<BrowserAnswer> {
    const visitor = this.#sender(request)
    if (!visitor) return this.#stale(request)
    const asked = { ...this.#options, visitor, name }
    return answerQuestion(asked, request.form.get('choice'), this.#contextOf(visitor))
  }

  /** The content of the ticket, or the answer to an unusable one. Undefined without a ticket. */
  async #invited(
    server: string,
    text: string | undefined,
    visitor: Visitor,
    context: PageContext,
  ): Promise<(Ticket & { id: string }) | BrowserAnswer | undefined> {
    if (text === undefined) return undefined
    const { desk, log } = this.#options
    const ticket = desk.read(text)
    if (!ticket || ticket.server !== server) return shown(this.#old(server), context, 400)
    if (ticket.principal === visitor.principal) return ticket
    await desk.spend(ticket)
    log.warn(
      { event: 'sign_in_link_foreign', server },
      'somebody opened a link to sign in that was made for somebody else',
    )
    const foreign = message(
      'This link is not for you',
      'It was made for somebody else, and cannot be used any more. If somebody sent it to you, tell your administrator.',
      this.#back,
    )
    return shown(foreign, context, 403)
  }

  #old(server: string): Content {
    const href = `${this.#base}/${encodeURIComponent(server)}`
    return message('This link is too old', 'A link can be used once, and for ten minutes.', {
      text: 'Go on without it',
      href,
    })
  }

  // The person in the browser.

  async #welcome(to: Destination, wrong = false): Promise<BrowserAnswer> {
    const { company, ownerOf } = this.#options
    if (!company && !ownerOf) {
      const text = 'The proxy before this page has not said who you are.'
      return shown(message('Who are you?', text, undefined), this.#contextOf(undefined), 401)
    }
    const begun = await company?.begin()
    const { arrival, cookie } = this.#visitors.expect(to, begun?.secrets)
    if (begun && !ownerOf) return redirect(begun.address, cookie)
    const context = this.#contextOf(undefined)
    const ways = { company: begun?.address, tokens: ownerOf !== undefined }
    const content = welcome(ways, this.#visitors.secretOf(arrival), wrong, context)
    return shown(content, context, wrong ? 403 : 200, cookie)
  }

  /** The browser comes back from the identity provider. */
  async #arrive(request: BrowserRequest): Promise<BrowserAnswer> {
    const arrival = this.#visitors.arriving(request.cookies)
    const { company } = this.#options
    const person = arrival?.secrets && company && (await company.finish(request.query, arrival.secrets))
    return person ? this.#admit(person, arrival?.to ?? {}) : this.#stale(request)
  }

  /** A token was entered. */
  async #take(request: BrowserRequest): Promise<BrowserAnswer> {
    const arrival = this.#visitors.arriving(request.cookies)
    const { ownerOf } = this.#options
    const isOurs = arrival && this.#isOwn(request) && this.#visitors.isSecretOf(arrival, request.form.get('secret'))
    if (!isOurs || !ownerOf) return this.#stale(request)
    const principal = ownerOf(request.form.get('token') ?? '')
    if (principal === undefined) return { ...(await this.#welcome(arrival.to, true)), isWrong: true }
    return this.#admit({ principal, who: principal }, arrival.to)
  }

  #admit(person: KnownPerson, { server, ticket, question }: Destination): BrowserAnswer {
    const { cookie } = this.#visitors.admit(person)
    const [, ...others] = this.#visitors.forgotten
    const query = ticket === undefined ? '' : `?t=${encodeURIComponent(ticket)}`
    const at = (path: string) => `${this.#base}/${path}${query}`
    const ofServer = server === undefined ? this.#base : at(encodeURIComponent(server))
    const to = question === undefined ? ofServer : at(`approve/${encodeURIComponent(question)}`)
    return redirect(to, cookie, ...others)
  }

  #forget(request: BrowserRequest): BrowserAnswer {
    if (!this.#sender(request)) return this.#stale(request)
    const text = 'This browser no longer knows who you are. Your accounts at the servers stay signed in.'
    const content = message('Goodbye', text, { text: 'Sign in again', href: this.#base })
    return shown(content, this.#contextOf(undefined), 200, ...this.#visitors.forgotten)
  }

  /** The person in the browser, and the cookie to set for a new one. A proxy names the person with each request. */
  #visitor({ cookies, proxied }: BrowserRequest): { visitor: Visitor; cookie?: string } | undefined {
    const visitor = this.#visitors.in(cookies)
    if (!proxied || visitor?.principal === proxied.principal) return visitor && { visitor }
    return this.#visitors.admit(proxied)
  }

  /** The person who has sent a form of this page; undefined if another page may have sent it. */
  #sender(request: BrowserRequest): Visitor | undefined {
    const { visitor, cookie } = this.#visitor(request) ?? {}
    if (!visitor || cookie !== undefined || !this.#isOwn(request)) return undefined
    return this.#visitors.isSecretOf(visitor, request.form.get('secret')) ? visitor : undefined
  }

  #isOwn({ origin, site }: BrowserRequest): boolean {
    return (origin === undefined || origin === this.#origin) && (site === undefined || site === 'same-origin')
  }

  // Answers.

  #done(server: string): string {
    return `${this.#base}?done=${encodeURIComponent(server)}`
  }

  get #back() {
    return { text: 'Your accounts', href: this.#base }
  }

  #context(request: BrowserRequest): PageContext {
    return this.#contextOf(this.#visitors.in(request.cookies))
  }

  #contextOf(visitor: Visitor | undefined): PageContext {
    const secret = visitor && this.#visitors.secretOf(visitor)
    return { base: this.#base, who: visitor?.who, secret }
  }

  #missing(request: BrowserRequest): BrowserAnswer {
    const content = message('Not found', 'There is no such server to sign in to.', this.#back)
    return shown(content, this.#context(request), 404)
  }

  #stale(request: BrowserRequest): BrowserAnswer {
    const text = 'This page is too old, or was opened in another browser. Nothing has changed.'
    return shown(message('Not signed in', text, this.#back), this.#context(request), 400)
  }
}

function stateOf(status: AccountStatus | undefined): ServerRow['state'] {
  if (!status) return 'unknown'
  if (status.signedIn) return 'signed in'
  return status.expires === undefined ? 'not signed in' : 'expired'
}

function hostOf(address: string): string {
  return parseUrl(address)?.host ?? ''
}
