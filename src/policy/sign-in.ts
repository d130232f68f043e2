/**
 * What clients meet where a server wants somebody to sign in first. A call waits for that for a while. Whoever cannot be
 * served yet gets a server with one tool, which signs in, and is told that everything has changed as soon as that is done.
 */
import { type Account, type AccountsByPrincipal, MAX_RETRIES } from '../protocol/account.js'
import type {
  Call,
  Handler,
  LegacyRoute,
  Policy,
  Reply,
  Sender,
  Tunnel,
  TunnelListener,
  TunnelMessage,
} from '../protocol/call.js'
import { type LegacyRevision, MODERN } from '../protocol/eras.js'
import { Fault, isOfSignIn, needsSignIn } from '../protocol/fault.js'
import { uncovered } from '../protocol/input.js'
import { methodTraits } from '../protocol/methods.js'
import { ACKNOWLEDGED, CHANGING_LISTS, wants } from '../protocol/subscriptions.js'
import type { Request, Response } from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import { EMPTY, edit, type Json, objectIn, parseObject, raw, value } from '../rpc/splice.js'
import { refuse } from './refusal.js'

export interface SignInOptions {
  /** The server's name, for people. */
  name: string
  /** What `mcp-bridge login` is told for it. */
  loginName: string
  accounts: AccountsByPrincipal
  version: string
}

/** The tool of the waiting room. */
export const SIGN_IN_TOOL = 'mcp_bridge_sign_in'
const LISTEN = 'subscriptions/listen'
/** Milliseconds between looks at whether somebody has signed in, for those who listen. */
const LOOK_EVERY = 500
/** Milliseconds for which `server/discover` is answered by the waiting room after somebody was waited for in vain. */
const JUST_WAITED = 10_000
/** Milliseconds in which a legacy client that connects waits: for discovery, a person, and the server. */
const CONNECT_WITHIN = 120_000
/** Principals that wait. */
const MAX_ROOMS = 10_000
/** Names the question that leads a person to where they sign in. */
const QUESTION = 'sign-in'
/** The state of a call whose client has been asked to sign in. It says nothing that a client may not make up. */
const STATE = JSON.stringify('io.github.mcp-bridge/sign-in')

/** Lists that are empty as long as somebody waits, by the members that hold them. */
const EMPTY_LISTS: Readonly<Record<string, string>> = {
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
}

/** A principal whom the server does not serve yet. */
interface Room {
  /** What the server has refused, if something was sent. */
  refused: string | undefined
  /** When somebody was last waited for, by `performance.now()`. */
  waited: number
}

export class SignIn {
  readonly policy: Policy
  readonly #options: SignInOptions
  readonly #rooms = new Map<string, Room>()
  /** Somebody has been in the waiting room, so that clients may know its tool. */
  #hasTool = false
  /** Somebody has been asked to sign in, so that the answer may come back. */
  #hasAsked = false

  constructor(options: SignInOptions) {
    this.#options = options
    this.policy = (next) => {
      const room = this
      return async function* signedInCall(call) {
        const account = options.accounts.for(call.principal)
        if (account && (room.#hasTool || call.answers?.state === STATE)) yield* room.#answerKnown(account, call, next)
        else if (account) yield* room.#answer(account, call, next)
        else yield* next(call)
      }
    }
  }

  /** Whether a modern request is about signing in, and not for the server. */
  readonly isOurs = (name: string | undefined, body: Uint8Array | undefined): boolean =>
    (this.#hasTool && name === SIGN_IN_TOOL) ||
    (this.#hasAsked && body !== undefined && Buffer.from(body.buffer, body.byteOffset, body.length).includes(STATE))

  /** The account of a principal, for requests that no policy sees. Who is waited for in vain is in the waiting room. */
  for(principal: string): Account | undefined {
    const account = this.#options.accounts.for(principal)
    return (
      account && {
        authorization: (signal) => account.authorization(signal),
        refused: (refusal, signal) => account.refused(refusal, signal),
        signIn: (refusal, signal) =>
          account.signIn(refusal, signal).catch((error: unknown) => {
            if (needsSignIn(error)) this.#enter(principal, refusal.sent)
            throw error
          }),
      }
    )
  }

  /** How a legacy client is served: `translate` as long as nobody has signed in. Rejects with a Fault. */
  async legacyRoute(sender: Sender, find: () => Promise<LegacyRoute>): Promise<LegacyRoute> {
    const account = this.for(sender.principal)
    if (!account) return find()
    const signal = AbortSignal.timeout(CONNECT_WITHIN)
    if (await this.#waits(account, sender.principal, signal)) return 'translate'
    const route = await signedIn(account, signal, find).catch((error: unknown) => {
      if (needsSignIn(error)) return 'translate' as const
      throw error
    })
    if (route === 'translate') return route
    return {
      transport: route.transport,
      connect: async (opening, from, reopens) => {
        const tunnel = await signedIn(account, signal, () => route.connect(opening, from, reopens)).catch(
          (error: unknown) => {
            // Without a session of the server's, the client gets one of the bridge's.
            if (needsSignIn(error)) return undefined
            throw error
          },
        )
        return tunnel && new SigningTunnel(tunnel, account)
      },
    }
  }

  /** A call whose client may be in the waiting room, or has been asked to sign in. */
  async *#answerKnown(account: Account, call: Call, next: Handler): AsyncIterable<Reply> {
    const { answers, method, principal } = call
    if (answers?.state === STATE) {
      const answer = objectIn(parseObject(answers.responses ?? '{}'), QUESTION)
      if (!answer || value(answer, 'action') !== 'accept') {
        const { name } = this.#options
        yield refused(call, new Fault('signInRefused', `Signing in to ${JSON.stringify(name)} was declined`))
        return
      }
      yield* this.#answer(account, { ...call, answers: undefined }, next)
    } else if (method === 'tools/call' && raw(call.params, 'name') === JSON.stringify(SIGN_IN_TOOL)) {
      yield* this.#signIn(account, call, next)
    } else if (await this.#waits(account, principal, call.signal)) {
      const isDiscovery = method === 'server/discover'
      const lately = performance.now() - (this.#rooms.get(principal)?.waited ?? 0) < JUST_WAITED
      const reply = !isDiscovery || lately ? this.#inRoom(call) : undefined
      if (reply) yield reply
      else if (method === LISTEN) yield* this.#listen(account, call, next)
      else yield* this.#answer(account, call, next)
    } else yield* this.#answer(account, call, next)
  }

  /** Gives the call to the server, and again after somebody has signed in for it. */
  async *#answer(account: Account, call: Call, next: Handler): AsyncIterable<Reply> {
    for (let signIns = 0; ; signIns++) {
      let given = false
      try {
        for await (const reply of next(call)) {
          given = true
          yield reply
        }
        return
      } catch (error) {
        if (given || !isOfSignIn(error)) throw error
        const fault = signIns < MAX_RETRIES ? await this.#asked(account, call, error as Fault) : (error as Fault)
        if (!fault) continue
        if (needsSignIn(fault) && this.#takesIn(call)) {
          this.#enter(call.principal, fault.signInFor?.sent ?? (error as Fault).signInFor?.sent)
          const reply = this.#inRoom(call)
          if (reply) yield reply
          else yield* this.#listen(account, call, next)
          return
        }
        yield this.#question(call, fault) ?? refused(call, fault)
        return
      }
    }
  }

  /** Has somebody sign in. Resolves to why nobody has, if that is so; rejects with what is wrong otherwise. */
  async #asked(account: Account, { method, signal }: Call, fault: Fault): Promise<Fault | undefined> {
    if (!fault.signInFor || method === LISTEN) return fault
    try {
      await account.signIn(fault.signInFor, signal)
      return undefined
    } catch (error) {
      if (!isOfSignIn(error)) throw error
      return error as Fault
    }
  }

  /** Sends the person to where they sign in, where the client can. Undefined where it cannot. */
  #question(call: Call, { signInUrl, message }: Fault): Reply | undefined {
    if (signInUrl === undefined || call.answers || !methodTraits(call.method).asks) return undefined
    const params = { mode: 'url', message, url: signInUrl }
    const capabilities = parseObject(call.caller.capabilities)
    if (uncovered('elicitation/create', parseObject(JSON.stringify(params)), capabilities) !== undefined)
      return undefined
    this.#hasAsked = true
    const inputRequests = JSON.stringify({ [QUESTION]: { method: 'elicitation/create', params } })
    return { kind: 'input', result: edit(EMPTY, { inputRequests, requestState: STATE }) }
  }

  // The waiting room.

  #enter(principal: string, refused: string | undefined): void {
    this.#hasTool = true
    this.#rooms.delete(principal)
    this.#rooms.set(principal, { refused, waited: performance.now() })
    const [oldest] = this.#rooms.keys()
    if (oldest !== undefined && this.#rooms.size > MAX_ROOMS) this.#rooms.delete(oldest)
  }

  /** Whether nobody has signed in since this principal was refused. */
  async #waits(account: Account, principal: string, signal: AbortSignal): Promise<boolean> {
    const room = this.#rooms.get(principal)
    if (!room) return false
    // What cannot be had now is not there.
    const credential = await Promise.resolve(account.authorization(signal)).catch(() => undefined)
    if (credential === undefined || credential === room.refused) return true
    if (this.#rooms.get(principal) === room) this.#rooms.delete(principal)
    return false
  }

  /** Whether a call is answered in the place of a server that wants somebody to sign in. */
  #takesIn({ method }: Call): boolean {
    return method === 'server/discover' || method === 'tools/list' || method === LISTEN || method in EMPTY_LISTS
  }

  /** What is said in the place of the server; undefined for what it would not say by itself. */
  #inRoom(call: Call): Reply | undefined {
    const result = this.#result(call.method)
    if (!result) return undefined
    call.log.note({ signIn: 'waiting' })
    const { version } = this.#options
    const server = JSON.stringify({ name: 'mcp-bridge', version })
    const cache = { ttlMs: 0, scope: 'private' } as const
    return { kind: 'result', result: parseObject(JSON.stringify(result)), server, cache }
  }

  #result(method: string): object | undefined {
    const { name, loginName } = this.#options
    const how = `Call the tool ${SIGN_IN_TOOL}, or run "mcp-bridge login ${loginName}" in a terminal.`
    if (method === 'server/discover')
      return {
        supportedVersions: MODERN,
        capabilities: Object.fromEntries(CHANGING_LISTS.map(({ capability }) => [capability, { listChanged: true }])),
        instructions: `The server "${name}" wants somebody to sign in before it can be used. ${how} Its own tools are there after that.`,
      }
    if (method === 'tools/list')
      return {
        tools: [
          {
            name: SIGN_IN_TOOL,
            title: `Sign in to ${name}`,
            description: `Signs in to the server "${name}", whose tools can be used after that. A browser window opens for the person at this machine.`,
            inputSchema: { type: 'object', properties: {}, additionalProperties: false },
          },
        ],
      }
    const list = EMPTY_LISTS[method]
    return list === undefined ? undefined : { [list]: [] }
  }

  /** The tool that signs in: asks the server for its tools, for which somebody has to. */
  async *#signIn(account: Account, call: Call, next: Handler): AsyncIterable<Reply> {
    const listing: Call = { ...call, method: 'tools/list', params: EMPTY, answers: undefined }
    try {
      for (let signIns = 0; ; signIns++) {
        try {
          for await (const _reply of next(listing)) {
            // What the server has is asked for again by the client.
          }
          break
        } catch (error) {
          if (!isOfSignIn(error) || signIns >= MAX_RETRIES) throw error
          const fault = await this.#asked(account, call, error as Fault)
          if (fault) throw fault
        }
      }
    } catch (error) {
      if (!isOfSignIn(error)) throw error
      yield this.#question(call, error as Fault) ?? refused(call, error as Fault)
      return
    }
    this.#rooms.delete(call.principal)
    const text = `Signed in to "${this.#options.name}". Its tools can be listed and called now.`
    yield { kind: 'result', result: parseObject(JSON.stringify({ content: [{ type: 'text', text }] })) }
  }

  /** A subscription in the waiting room: says that all has changed when somebody has signed in, and is the server's then. */
  async *#listen(account: Account, call: Call, next: Handler): AsyncIterable<Reply> {
    const { principal, signal } = call
    const filter = objectIn(call.params, 'notifications') ?? EMPTY
    const lists = CHANGING_LISTS.filter((list) => wants(filter, list.method, EMPTY))
    const honoured = JSON.stringify({ notifications: Object.fromEntries(lists.map((list) => [list.filter, true])) })
    yield { kind: 'notification', method: ACKNOWLEDGED, params: parseObject(honoured) }
    while (await this.#waits(account, principal, signal)) {
      if (!(await pause(LOOK_EVERY, signal))) return
    }
    for (const { method } of lists) yield { kind: 'notification', method, params: EMPTY }
    for await (const reply of next(call)) {
      // It was acknowledged already.
      if (reply.kind !== 'notification' || reply.method !== ACKNOWLEDGED) yield reply
    }
  }
}

/** A session of a legacy client's own, for whose requests somebody may have to sign in. */
class SigningTunnel implements Tunnel {
  readonly #tunnel: Tunnel
  readonly #account: Account

  constructor(tunnel: Tunnel, account: Account) {
    this.#tunnel = tunnel
    this.#account = account
  }

  get opened(): Wire {
    return this.#tunnel.opened
  }

  get revision(): LegacyRevision | undefined {
    return this.#tunnel.revision
  }

  async *ask(request: Request, signal: AbortSignal): AsyncGenerator<TunnelMessage, void> {
    for (let signIns = 0; ; signIns++) {
      let given = false
      try {
        for await (const message of this.#tunnel.ask(request, signal)) {
          given = true
          yield message
        }
        return
      } catch (error) {
        if (given || signIns >= MAX_RETRIES || !needsSignIn(error) || !error.signInFor) throw error
        await this.#account.signIn(error.signInFor, signal)
      }
    }
  }

  notify(method: string, params: Json | undefined): void {
    this.#tunnel.notify(method, params)
  }

  respond(response: Response): void {
    this.#tunnel.respond(response)
  }

  attach(listener: TunnelListener): void {
    this.#tunnel.attach(listener)
  }

  close(): void {
    this.#tunnel.close()
  }
}

/** Does something for a client, and again after somebody has signed in for it. Rejects with a Fault. */
async function signedIn<T>(account: Account, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let signIns = 0; ; signIns++) {
    try {
      return await work()
    } catch (error) {
      if (signIns >= MAX_RETRIES || !needsSignIn(error) || !error.signInFor) throw error
      await account.signIn(error.signInFor, signal)
    }
  }
}

/** A failure to sign in, as a client and its model read it. */
function refused(call: Call, fault: Fault): Reply {
  if (call.method !== 'tools/call') throw fault
  return refuse(call, { reason: fault.row.reason ?? 'sign_in_required', text: fault.message })
}

/** Waits so many milliseconds. Resolves to whether nobody has given up meanwhile. */
function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve(!signal.aborted)
    }
    const timer = setTimeout(done, milliseconds)
    signal.addEventListener('abort', done, { once: true })
    if (signal.aborted) done()
  })
}
