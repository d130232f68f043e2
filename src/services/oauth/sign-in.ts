/**
 * Makes a person sign in to a server that requires it, and repeats the call. A call waits for the person for a while.
 * Until the sign-in, its principal gets a placeholder for the server, with one tool that signs in. After it, the
 * principal is notified that all lists have changed.
 */
import { Fault, isOfSignIn, needsSignIn } from '../../base/fault/fault.js'
import { BoundedMap } from '../../base/limits/bounded.js'
import type { Request } from '../../base/rpc/message.js'
import { EMPTY, edit, objectIn, type Payload, parseObject, raw, value } from '../../base/rpc/splice.js'
import type { Signal } from '../../base/time/hang-up.js'
import {
  type Account,
  type AccountsByPrincipal,
  MAX_RETRIES,
  type Requester,
  SIGN_IN_TOOL,
  type SignInAsking,
} from '../../mcp/protocol/account.js'
import {
  type Call,
  type Final,
  type Handler,
  ignoreNotifications,
  type Sender,
  type ServerNotification,
} from '../../mcp/protocol/call.js'
import { shownName } from '../../mcp/protocol/implementation.js'
import { CALL_TOOL, LISTEN, methodTraits } from '../../mcp/protocol/methods.js'
import type { LegacyRoute } from '../../mcp/protocol/upstream.js'
import { refuse } from '../../middle/policy/refusal.js'
import { isOfPlaceholder, listenToPlaceholder, placeholderResult } from './placeholder.js'
import { canOpenUrl, questionFor, SigningSession, signedIn } from './signing-session.js'

export interface SignInOptions {
  /** The server's name, for people. */
  name: string
  /** The argument of `mcp-bridge login` for it. */
  loginName: string
  accounts: AccountsByPrincipal
  version: string
  /** Other replicas may have asked a client to sign in, or given it the placeholder. */
  asksElsewhere?: boolean
}

/** Milliseconds after a sign-in timed out in which the placeholder answers `server/discover` at once. */
const RECENTLY = 10_000
/** Milliseconds that `initialize` of a legacy client may take: for discovery, the sign-in and the server. */
const CONNECT_WITHIN = 120_000
/** Most principals with a placeholder. */
const MAX_PLACEHOLDERS = 10_000
/** Name of the question that sends a person to the sign-in. */
const QUESTION = 'sign-in'
/**
 * State of a call whose client was asked to sign in. A client may forge it: it only repeats the call. It is compared as it is
 * written, so it has no slash, which some clients escape in JSON.
 */
const STATE = JSON.stringify('io.github.mcp-bridge.sign-in')

/** A principal that gets the placeholder. */
interface Waiting {
  /** The credential that the server refused; undefined if none was sent. */
  refused: string | undefined
  /** When a sign-in was last waited for, by `performance.now()`. */
  waited: number
}

export class SignIn {
  readonly #options: SignInOptions
  readonly #waiting = new BoundedMap<string, Waiting>(MAX_PLACEHOLDERS)
  /** A principal has had the placeholder, so clients may know its tool. */
  #hasTool = false
  /** A client was asked to sign in, so its answer may come back. */
  #hasAsked = false

  constructor(options: SignInOptions) {
    this.#options = options
    this.#hasTool = options.asksElsewhere ?? false
    this.#hasAsked = this.#hasTool
  }

  /** Answers a call whose client may have the placeholder, or was asked to sign in; undefined for all others. */
  ahead(call: Call, next: Handler): Promise<Final> | undefined {
    if (!this.#hasTool && call.answers?.state !== STATE) return undefined
    const account = this.#options.accounts.for(call)
    return account && this.#answerKnown(account, call, next)
  }

  /** Signs in after a call has failed for want of that, and repeats the call. Rejects with every other error. */
  async after(call: Call, error: unknown, next: Handler): Promise<Final> {
    const account = this.#options.accounts.for(call)
    if (!account) throw error
    return this.#answer(account, call, next, false, error)
  }

  /** Whether a modern request concerns the sign-in and must not pass unread to the server. */
  readonly isOurs = (name: string | undefined, body: Uint8Array | undefined): boolean =>
    (this.#hasTool && name === SIGN_IN_TOOL) ||
    (this.#hasAsked && body !== undefined && Buffer.from(body.buffer, body.byteOffset, body.length).includes(STATE))

  /**
   * The account of a requester, for requests that do not pass the policy. If a sign-in times out, the principal gets
   * the placeholder.
   */
  for(requester: Requester): Account | undefined {
    const account = this.#options.accounts.for(requester)
    return (
      account && {
        authorization: (signal) => account.authorization(signal),
        refused: (refusal, signal) => account.refused(refusal, signal),
        signIn: (refusal, signal, asking) =>
          account.signIn(refusal, signal, asking).catch((error: unknown) => {
            if (needsSignIn(error)) this.#enter(requester.principal, refusal.sent)
            throw error
          }),
        ...(account.proof && { proof: account.proof.bind(account) }),
        ...(account.nonce && { nonce: account.nonce.bind(account) }),
      }
    )
  }

  /** How to serve a legacy client: `translate` until a person has signed in. Rejects with a Fault. */
  async legacyRoute(sender: Sender, find: () => Promise<LegacyRoute>): Promise<LegacyRoute> {
    const account = this.for(sender)
    if (!account) return find()
    const signal = AbortSignal.timeout(CONNECT_WITHIN)
    if (await this.#waits(account, sender.principal, signal)) return 'translate'
    const route = await signedIn(account, signal, find).catch((error: unknown) => {
      if (needsSignIn(error)) return 'translate' as const
      throw error
    })
    if (route === 'translate') return route
    const { resume } = route
    return {
      transport: route.transport,
      connect: async (opening, from, options) => {
        const direct = await signedIn(account, signal, () => route.connect(opening, from, options)).catch(
          (error: unknown) => {
            // The server opens no session before the sign-in, so the client gets a session of the bridge.
            if (needsSignIn(error)) return undefined
            throw error
          },
        )
        return direct && new SigningSession(direct, account, capabilitiesIn(opening))
      },
      resume:
        resume &&
        (async (left, from, capabilities) =>
          new SigningSession(await resume(left, from, capabilities), account, parseObject(capabilities))),
    }
  }

  /** Answers a call whose client may have the placeholder, or was asked to sign in. */
  async #answerKnown(account: Account, call: Call, next: Handler): Promise<Final> {
    const { answers, method, principal } = call
    if (answers?.state === STATE) {
      const answer = objectIn(parseObject(answers.responses ?? '{}'), QUESTION)
      if (!answer || value(answer, 'action') !== 'accept') {
        const { name } = this.#options
        return refused(call, new Fault('signInRefused', `Signing in to ${JSON.stringify(name)} was declined`))
      }
      const again = { ...call, answers: undefined }
      return this.#isOfTool(call) ? this.#signIn(account, again, next, true) : this.#answer(account, again, next, true)
    }
    if (this.#isOfTool(call)) return this.#signIn(account, call, next)
    if (await this.#waits(account, principal, call.signal)) {
      const isDiscovery = method === 'server/discover'
      const lately = performance.now() - (this.#waiting.get(principal)?.waited ?? 0) < RECENTLY
      const reply = !isDiscovery || lately ? this.#placeholderReply(call) : undefined
      if (reply) return reply
      if (method === LISTEN) return this.#listen(account, call, next)
    }
    return this.#answer(account, call, next)
  }

  /** Whether a call is for the tool of the placeholder. */
  #isOfTool({ method, params }: Call): boolean {
    return method === CALL_TOOL && raw(params, 'name') === JSON.stringify(SIGN_IN_TOOL)
  }

  /**
   * Sends the call to the server, and again after a sign-in. `hasAccepted`: the person agreed to open the address for that.
   * `failure`: the call was sent once, and failed with it.
   */
  async #answer(account: Account, call: Call, next: Handler, hasAccepted = false, failure?: unknown): Promise<Final> {
    let hasNotified = false
    const notify = (notification: ServerNotification) => {
      hasNotified = true
      return call.notify(notification)
    }
    for (let signIns = 0; ; signIns++) {
      try {
        if (signIns === 0 && failure !== undefined) throw failure
        return await next({ ...call, notify })
      } catch (error) {
        if (hasNotified || !isOfSignIn(error)) throw error
        const fault =
          signIns < MAX_RETRIES
            ? await this.#requestSignIn(account, call, error as Fault, hasAccepted)
            : (error as Fault)
        if (!fault) continue
        if (needsSignIn(fault) && isOfPlaceholder(call.method)) {
          this.#enter(call.principal, fault.signInFor?.sent ?? (error as Fault).signInFor?.sent)
          return this.#placeholderReply(call) ?? this.#listen(account, call, next)
        }
        return this.#question(call, fault) ?? refused(call, fault)
      }
    }
  }

  /**
   * Waits for a sign-in. Resolves to undefined when it is done, or to the fault that prevents it; rejects with other
   * errors.
   */
  async #requestSignIn(
    account: Account,
    { method, signal, caller }: Call,
    fault: Fault,
    hasAccepted: boolean,
  ): Promise<Fault | undefined> {
    if (!fault.signInFor || method === LISTEN) return fault
    const asking: SignInAsking = { hasAccepted, client: shownName(caller.clientInfo) }
    try {
      await account.signIn(fault.signInFor, signal, asking)
      return undefined
    } catch (error) {
      if (!isOfSignIn(error)) throw error
      return error as Fault
    }
  }

  /** Asks the client to open the sign-in page. Undefined if the client cannot. */
  #question(call: Call, fault: Fault): Final | undefined {
    const { signInUrl } = fault
    if (signInUrl === undefined || call.answers || !methodTraits(call.method).asks) return undefined
    const params = questionFor(fault, signInUrl)
    if (!canOpenUrl(parseObject(call.caller.capabilities))) return undefined
    this.#hasAsked = true
    const inputRequests = JSON.stringify({ [QUESTION]: { method: 'elicitation/create', params } })
    return { kind: 'input', result: edit(EMPTY, { inputRequests, requestState: STATE }) }
  }

  // The placeholder.

  #enter(principal: string, refused: string | undefined): void {
    this.#hasTool = true
    this.#waiting.set(principal, { refused, waited: performance.now() })
  }

  /** Whether a principal still has the placeholder: nobody has signed in since it was refused. */
  async #waits(account: Account, principal: string, signal: Signal): Promise<boolean> {
    const waiting = this.#waiting.get(principal)
    if (!waiting) return false
    // A credential that cannot be obtained now counts as absent.
    const credential = await Promise.resolve(account.authorization(signal)).catch(() => undefined)
    if (credential === undefined || credential === waiting.refused) return true
    if (this.#waiting.get(principal) === waiting) this.#waiting.delete(principal)
    return false
  }

  /** The placeholder's reply; undefined for methods without one. */
  #placeholderReply(call: Call): Final | undefined {
    const { version, name, loginName, accounts } = this.#options
    const result = placeholderResult(call.method, { name, loginName, page: accounts.page })
    if (!result) return undefined
    call.log.note({ signIn: 'waiting' })
    const server = JSON.stringify({ name: 'mcp-bridge', version })
    const cache = { ttlMs: 0, scope: 'private' } as const
    return { kind: 'result', result: parseObject(JSON.stringify(result)), server, cache }
  }

  #listen(account: Account, call: Call, next: Handler): Promise<Final> {
    return listenToPlaceholder(call, next, () => this.#waits(account, call.principal, call.signal))
  }

  /** The placeholder's tool: calls `tools/list` of the server, which requires the sign-in. */
  async #signIn(account: Account, call: Call, next: Handler, hasAccepted = false): Promise<Final> {
    const listing: Call = {
      ...call,
      method: 'tools/list',
      params: EMPTY,
      answers: undefined,
      notify: ignoreNotifications,
    }
    for (let signIns = 0; ; signIns++) {
      try {
        // The result is dropped: the client lists the tools itself.
        await next(listing)
        break
      } catch (error) {
        if (!isOfSignIn(error)) throw error
        const last = error as Fault
        const fault = signIns < MAX_RETRIES ? await this.#requestSignIn(account, call, last, hasAccepted) : last
        if (fault) return this.#question(call, fault) ?? refused(call, fault)
      }
    }
    this.#waiting.delete(call.principal)
    const text = `Signed in to "${this.#options.name}". Its tools are available now.`
    return { kind: 'result', result: parseObject(JSON.stringify({ content: [{ type: 'text', text }] })) }
  }
}

/** A failed sign-in, in the form that clients and models read. */
function refused(call: Call, fault: Fault): Final {
  if (call.method !== CALL_TOOL) throw fault
  return refuse(call, { reason: fault.row.reason ?? 'sign_in_required', text: fault.message })
}

/** The capabilities of the client in its `initialize`. */
function capabilitiesIn({ params }: Request): Payload {
  return (typeof params === 'string' ? undefined : objectIn(params, 'capabilities')) ?? EMPTY
}
