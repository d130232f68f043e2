/** The clients of the matrix: scripted, of one era or the other, and the same to a scenario in all that they can do. */
import { PATIENCE } from '../support/eventually.js'
import { CAPABILITIES, VERSION as CLAIM, CLIENT_INFO, LOG_LEVEL } from '../support/modern.js'
import { type Ended, type Json, keyOf, type Sending, type Wire, write } from './wire.js'

export type { Json } from './wire.js'

export type Era = 'modern' | 'legacy'

export const INFO = { name: 'matrix', version: '1.0', title: 'Matrix é' }
/** What a legacy client asks for. What it gets is the server's to say. */
export const ASKED = '2025-11-25'

export interface RpcError {
  code: number
  message: string
  data?: Json
}

export type Message = Json & { result?: Json; error?: RpcError }

export interface Arrived {
  text: string
  message: Message
  /** The request on whose stream it came, by the key of its id; undefined where requests have no streams. */
  on: string | undefined
}

/** What answers a request. */
export interface Answer extends Arrived {
  /** What came before it: on its stream, or since it was sent where all comes on one. */
  before: Message[]
  status?: number | undefined
}

export interface RequestOptions {
  id?: unknown
  meta?: Json
  /** Headers that mirror arguments, by the names in the schema: only who speaks modern HTTP has to send them. */
  mirrored?: Record<string, string>
}

export interface Pending {
  id: unknown
  /** Rejects where none has come in time or when the stream for it ended, and when the request is taken back. */
  answer: Promise<Answer>
  ended: Promise<Ended>
  /** Takes the request back, in the way of the era and the transport. */
  cancel(reason: string): Promise<void>
}

export interface Question {
  method: string
  params: Json
}

export interface ClientOptions {
  era: Era
  wire: Wire
  /** Who closes the connection has cancelled: there is nobody to tell. */
  hangsUp: boolean
  capabilities: Json
  /** The result that answers a question of the server's, however it is put; undefined where it is left unanswered. */
  answers?: (question: Question) => Json | undefined
}

export class Client {
  readonly era: Era
  readonly capabilities: Json
  /** Everything that came, on whatever connection, in order. */
  readonly arrived: Arrived[] = []
  /** What was not as it has to be of how it came. */
  readonly complaints: string[] = []
  /** What the server has asked, however it was put. */
  readonly asked: Question[] = []
  readonly #options: ClientOptions
  /** Requests that have not been answered, by the keys of their ids. */
  readonly #waiting = new Map<string, Waiting>()
  #lastId = 0
  #closed: Promise<void> | undefined
  #level: string | undefined

  constructor(options: ClientOptions) {
    this.era = options.era
    this.capabilities = options.capabilities
    this.#options = options
  }

  /** Asks what the server is, or shakes hands with it. */
  async open(): Promise<Answer> {
    const { era, wire, capabilities } = this.#options
    await wire.open({
      take: (text, on) => this.#take(text, on),
      complain: (what) => this.complaints.push(what),
    })
    if (era === 'modern') return this.request('server/discover').answer
    const opening = { protocolVersion: ASKED, capabilities, clientInfo: INFO }
    const opened = await this.request('initialize', opening).answer
    wire.agree?.(String(opened.message.result?.['protocolVersion']))
    await this.notify('notifications/initialized')
    await wire.ready?.()
    return opened
  }

  request(method: string, params: Json = {}, options: RequestOptions = {}): Pending {
    const { id = ++this.#lastId, meta = {}, mirrored = {} } = options
    const key = keyOf(id)
    const headers = Object.fromEntries(Object.entries(mirrored).map(([name, value]) => [`mcp-param-${name}`, value]))
    const waiting = waitFor(method, this.arrived.length)
    this.#waiting.set(key, waiting)
    const text = write({ jsonrpc: '2.0', id, method, ...this.#params(params, meta) })
    const sending = this.#options.wire.send({ text, method, params, id: key, headers })
    const answer = waiting.answer.then((found) => this.#withStatus(found, sending))
    answer.catch(() => {})
    this.#failAtTheEnd(sending, key).catch(() => {})
    const cancel = async (reason: string) => {
      this.#giveUp(key, 'it was taken back')
      if (this.#options.hangsUp) sending.hangUp()
      else await this.notify('notifications/cancelled', { requestId: id, reason })
    }
    return { id, answer, ended: sending.ended, cancel }
  }

  /** Asks, answers what is asked back, and gives the answer in the end. */
  async call(method: string, params: Json = {}, options: RequestOptions = {}): Promise<Answer> {
    let retry: Json = {}
    for (;;) {
      const answer = await this.request(method, { ...params, ...retry }, options).answer
      const { result } = answer.message
      if (this.era === 'legacy' || result?.['resultType'] !== 'input_required') return answer
      const { inputRequests = {}, requestState } = result as {
        inputRequests?: Record<string, Question>
        requestState?: string
      }
      const answered = Object.entries(inputRequests).map(([key, question]) => [key, this.#answerTo(question)])
      retry = { inputResponses: Object.fromEntries(answered), ...(requestState !== undefined && { requestState }) }
    }
  }

  /** Resolves when the message has been taken. Cancellations come without an envelope, as the specification shows them. */
  async notify(method: string, params?: Json, meta: Json = {}): Promise<void> {
    const isBare = !params || method === 'notifications/cancelled'
    const about = isBare ? params && { params } : this.#params(params, meta)
    await this.#options.wire.send({ text: write({ jsonrpc: '2.0', method, ...about }), method, params }).ended
  }

  /** Has the server log from this level on. */
  async logAt(level: string): Promise<Answer | undefined> {
    if (this.era === 'legacy') return this.request('logging/setLevel', { level }).answer
    this.#level = level
    return undefined
  }

  close(): Promise<void> {
    for (const key of this.#waiting.keys()) this.#giveUp(key, 'the client has gone')
    this.#closed ??= this.#options.wire.close()
    return this.#closed
  }

  /** Messages with this method that came, on whatever connection. */
  of(method: string): Message[] {
    return this.arrived.map(({ message }) => message).filter((message) => message['method'] === method)
  }

  #params(params: Json, meta: Json): { params?: Json } {
    const about = this.era === 'modern' ? { ...this.#envelope(), ...meta } : meta
    const whole = Object.keys(about).length > 0 ? { ...params, _meta: about } : params
    return Object.keys(whole).length > 0 ? { params: whole } : {}
  }

  #envelope(): Json {
    const { capabilities } = this.#options
    const level = this.#level !== undefined && { [LOG_LEVEL]: this.#level }
    return { [CLAIM]: '2026-07-28', [CLIENT_INFO]: INFO, [CAPABILITIES]: capabilities, ...level }
  }

  /** Where a message has a stream of its own, its answer has come when that ends, or never does. */
  async #failAtTheEnd({ ended }: Sending, key: string): Promise<void> {
    const { status } = await ended
    const hasStream = status === undefined ? this.#options.hangsUp : status !== 202
    if (hasStream) this.#giveUp(key, `it ended with ${status} and without an answer`)
  }

  #giveUp(key: string, why: string): void {
    this.#waiting.get(key)?.fail(why)
    this.#waiting.delete(key)
  }

  #take(text: string, on: string | undefined): void {
    const message = read(text)
    if (!message) {
      this.complaints.push(`this is no message: ${text}`)
      return
    }
    const arrived = { text, message, on }
    this.arrived.push(arrived)
    if (message['method'] === undefined) this.#settle(arrived)
    else if (message['id'] !== undefined) this.#askedBy(message)
  }

  #settle(arrived: Arrived): void {
    const { message, on } = arrived
    const key = keyOf(message['id'])
    const waiting = this.#waiting.get(key)
    if (!waiting) return
    if (on !== undefined && on !== key) this.complaints.push(`the answer to ${key} comes on the stream of ${on}`)
    this.#waiting.delete(key)
    const since = this.arrived.slice(waiting.from, -1)
    const before = since.filter((one) => one.on === on && one.message['method'] !== undefined)
    waiting.settle({ ...arrived, before: before.map((one) => one.message) })
  }

  #askedBy({ id, method, params = {} }: Message): void {
    if (this.era === 'modern') {
      this.complaints.push(`${method} was asked, though nobody asks this client anything`)
      return
    }
    const result = this.#answerTo({ method: String(method), params: params as Json })
    if (result) this.#options.wire.send({ text: write({ jsonrpc: '2.0', id, result }) }).ended.catch(() => {})
  }

  #answerTo({ method, params = {} }: Question): Json | undefined {
    const question = { method, params }
    this.asked.push(question)
    const { answers } = this.#options
    if (answers) return answers(question)
    this.complaints.push(`${method} was asked, though there is nobody to answer`)
    return undefined
  }

  async #withStatus(answer: Answer, sending: Sending): Promise<Answer> {
    return answer.on === undefined ? answer : { ...answer, status: (await sending.ended).status }
  }
}

/** An answer that may never come. */
interface Waiting {
  /** How much had come before the request was sent. */
  from: number
  answer: Promise<Answer>
  settle(answer: Answer): void
  fail(why: string): void
}

function waitFor(method: string, from: number): Waiting {
  let settle: Waiting['settle'] = () => {}
  let fail: Waiting['fail'] = () => {}
  const answer = new Promise<Answer>((resolve, reject) => {
    settle = resolve
    fail = (why) => reject(new Error(`No answer to ${method}: ${why}`))
  })
  const timer = setTimeout(() => fail(`none came in ${PATIENCE} ms`), PATIENCE)
  answer.catch(() => {}).finally(() => clearTimeout(timer))
  return { from, answer, settle, fail }
}

function read(text: string): Message | undefined {
  try {
    return JSON.parse(text) as Message
  } catch {
    return undefined
  }
}
