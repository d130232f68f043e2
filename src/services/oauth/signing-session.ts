/** A client's own session with a legacy server, whose requests may require a sign-in. */
import { randomId } from '../../base/crypto/seal.js'
import { Fault, needsSignIn } from '../../base/fault/fault.js'
import type { Id, Request, Response, Sent } from '../../base/rpc/message.js'
import { type Payload, parseObject } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'
import type { Signal } from '../../base/time/hang-up.js'
import { type Account, MAX_RETRIES } from '../../mcp/protocol/account.js'
import type { ReceivedOneWay, SentBatch } from '../../mcp/protocol/call.js'
import { type LegacyRevision, traits } from '../../mcp/protocol/eras.js'
import { uncovered } from '../../mcp/protocol/input.js'
import type {
  AboutAsked,
  AgreedSettings,
  AnsweredInitialize,
  DirectSession,
  LeftDirectSession,
  ReceivedBatch,
  SessionListener,
  TakeSessionMessage,
} from '../../mcp/protocol/upstream.js'

const URL_QUESTION = parseObject('{"mode":"url"}')

/** Whether a client with these capabilities can be asked to open an address. */
export function canOpenUrl(capabilities: Payload): boolean {
  return uncovered('elicitation/create', URL_QUESTION, capabilities) === undefined
}

/** The session. A request that requires a sign-in is sent again after it. */
export class SigningSession implements DirectSession {
  readonly #direct: DirectSession
  readonly #account: Account
  readonly #capabilities: Payload

  /** `capabilities`: those of the client. */
  constructor(direct: DirectSession, account: Account, capabilities: Payload) {
    this.#direct = direct
    this.#account = account
    this.#capabilities = capabilities
  }

  get keepsIds(): boolean {
    return this.#direct.keepsIds === true
  }

  get agreed(): AgreedSettings | undefined {
    return this.#direct.agreed
  }

  get left(): LeftDirectSession | undefined {
    return this.#direct.left
  }

  leave(): void {
    this.#direct.leave?.()
  }

  opened(id: Id): AnsweredInitialize {
    return this.#direct.opened(id)
  }

  get revision(): LegacyRevision | undefined {
    return this.#direct.revision
  }

  batchOf(received: ReceivedBatch): SentBatch | undefined {
    return this.#direct.batchOf?.(received)
  }

  ask(request: Request, signal: Signal, say: TakeSessionMessage, about?: AboutAsked): Promise<void> {
    let hasSaid = false
    const heard: TakeSessionMessage = (message) => {
      hasSaid = true
      return say(message)
    }
    const account: Pick<Account, 'signIn'> = {
      signIn: (refusal, until) =>
        this.#account.signIn(refusal, until).catch((fault: unknown) => {
          throw this.#byUrl(fault)
        }),
    }
    return signedIn(
      account,
      signal,
      () => this.#direct.ask(request, signal, heard, about),
      () => !hasSaid,
    )
  }

  /** A session of the client's own cannot be asked by the bridge, but an error may carry the address for the person. */
  #byUrl(error: unknown): unknown {
    const opens = this.revision !== undefined && traits[this.revision].elicitationModes
    if (!opens || !needsSignIn(error) || error.signInUrl === undefined) return error
    const { message } = error
    if (!canOpenUrl(this.#capabilities)) return error
    const elicitations = [{ elicitationId: randomId(), ...questionFor(error, error.signInUrl) }]
    return new Fault('signInByUrl', message, { data: { elicitations } })
  }

  notify(method: string, params: Sent, received?: ReceivedOneWay): Promise<void> | undefined {
    return this.#direct.notify(method, params, received)
  }

  respond(response: Response, received?: ReceivedOneWay): Promise<void> | undefined {
    return this.#direct.respond(response, received)
  }

  attach(listener: SessionListener): void {
    this.#direct.attach(listener)
  }

  get listen(): DirectSession['listen'] {
    return this.#direct.listen?.bind(this.#direct)
  }

  close(): void {
    this.#direct.close()
  }

  get closed(): Promise<number | undefined> | undefined {
    return this.#direct.closed
  }
}

/** Most characters of a code that a person enters. */
const MAX_CODE = 100

/** The question that leads a person to the address of a sign-in. */
export function questionFor(
  { message, signInCode }: Fault,
  url: string,
): { mode: 'url'; url: string; message: string } {
  const code = signInCode === undefined ? '' : `. Enter the code ${printable(signInCode, MAX_CODE)} there`
  return { mode: 'url', url, message: message + code }
}

/** Runs `work`, and again after each sign-in that it requires, while `mayRepeat` allows it. Rejects with a Fault. */
export async function signedIn<T>(
  account: Pick<Account, 'signIn'>,
  signal: Signal,
  work: () => Promise<T>,
  mayRepeat: () => boolean = () => true,
): Promise<T> {
  for (let signIns = 0; ; signIns++) {
    try {
      return await work()
    } catch (error) {
      if (!mayRepeat() || signIns >= MAX_RETRIES || !needsSignIn(error) || !error.signInFor) throw error
      await account.signIn(error.signInFor, signal)
    }
  }
}
