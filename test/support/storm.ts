/**
 * Many callers of some principals at once, of both eras: whatever arrives at one of them, in answers, progress, logs, questions,
 * errors, changes and updates, has to be its own. Some calls are given up in the middle, and servers log on for them. Everybody uses
 * the same ids and progress tokens, and every word that belongs to a call has its canary.
 */
import { Pool } from 'undici'
import { LegacyClient } from './legacy-client.js'
import { listen } from './listening.js'
import { CAPABILITIES, envelope, headersFor, LOG_LEVEL } from './modern.js'

type Json = Record<string, unknown>
type Message = Json & { method?: string; params?: Json; result?: Json; error?: Json }

/** Callers of each principal, of each era. */
const CALLERS = 6
const CAPABLE = { elicitation: {} }
/** What a call does, one of these after the other. */
const KINDS = ['say', 'ask', 'say', 'fail', 'say', 'leave', 'say', 'late', 'touch', 'say', 'cancel'] as const
export type Kind = (typeof KINDS)[number]

export const tokenOf = (who: string) => `token-of-${who}-0123456789`
const CANARY = /canary-([a-z]+)-\d+/g

/** A server behind the address: what its names and its URIs begin with there. */
interface Place {
  name: string
  uri: string
}

export interface StormOptions {
  url: string
  principals: readonly string[]
  calls: number
  /** The servers of a group, which are called in turn. */
  places?: readonly Place[]
}

/** A call that was made: its canary is `canary-<principal>-<number>`. */
export interface MessageOrigin {
  canary: string
  kind: Kind
  /** Which of the places it went to. */
  place: number
}

export class Storm {
  readonly made: MessageOrigin[] = []
  readonly #options: Required<StormOptions>
  readonly #pool: Pool
  readonly #wrong: string[] = []
  readonly #logs = new Map<string, number>()
  readonly #updates = new Map<string, number>()
  #answered = 0
  #asked = 0
  #until = 0

  constructor(options: StormOptions) {
    this.#options = { places: [{ name: '', uri: '' }], ...options }
    this.#pool = new Pool(new URL(options.url).origin, { connections: 64, pipelining: 1 })
  }

  /** Makes calls for so many milliseconds, at most. */
  async run(milliseconds: number) {
    this.#until = performance.now() + milliseconds
    const { principals: names, places } = this.#options
    const principals = await Promise.all(names.map((who) => this.#principal(who)))
    // A call that runs alone shows which tool it is that asks.
    for (const [n, place] of places.entries())
      await principals[0]?.modern.call('ask', `canary-${names[0]}-${this.#options.calls + n}`, undefined, place)
    await Promise.all(
      principals.flatMap(({ modern, legacy }) =>
        Array.from({ length: CALLERS * 2 }, (_, n) => this.#caller(n % 2 === 0 ? modern : legacy)),
      ),
    )
    for (const { end } of principals) await end()
    await this.#pool.destroy()
    const wrong = this.#wrong.slice(0, 3)
    const counts = { answered: this.#answered, asked: this.#asked }
    return { made: this.made, ...counts, wrong, logs: this.#logs, updates: this.#updates }
  }

  /** A principal with a client of each era, both of which listen to what changes. */
  async #principal(who: string) {
    const headers = { authorization: `Bearer ${tokenOf(who)}` }
    const { url, places } = this.#options
    const uris = places.map(({ uri }) => uri + uriOf(who))
    const filter = { toolsListChanged: true, resourceSubscriptions: uris }
    const stream = await listen(url, filter, { capabilities: CAPABLE, headers })
    const client = await LegacyClient.open(url, { capabilities: CAPABLE, headers })
    const legacy = new LegacyCaller(who, client, this.#pool)
    legacy.listen((message) => this.#look(message, who, undefined)).catch(() => {})
    await client.request('logging/setLevel', { level: 'debug' })
    for (const uri of uris) await client.request('resources/subscribe', { uri })
    const modern = new ModernCaller(who, url, this.#pool)
    const end = async () => {
      for (const message of stream.messages) this.#look(message, who, undefined)
      stream.leave()
      await client.end()
    }
    return { modern, legacy, end }
  }

  async #caller(caller: Caller): Promise<void> {
    const { calls, places } = this.#options
    while (this.made.length < calls && performance.now() < this.#until) {
      const n = this.made.length
      const canary = `canary-${caller.who}-${n}`
      const kind = KINDS[n % KINDS.length] as Kind
      const place = n % places.length
      this.made.push({ canary, kind, place })
      const progressToken = n % 2 === 0 ? 't' : undefined
      try {
        const messages = await caller.call(kind, canary, progressToken, places[place] as Place)
        for (const message of messages ?? []) this.#look(message, caller.who, canary)
        if (messages && !isAnswer(messages.at(-1))) this.#wrong.push(`${kind} ${canary} was not answered`)
      } catch (error) {
        this.#wrong.push(`${kind} ${canary}: ${error}`)
      }
      this.#answered++
    }
  }

  /** Looks whose words a message has; what belongs to a call has its canary and no other. */
  #look(message: Message, who: string, canary: string | undefined): void {
    const { method } = message
    const text = JSON.stringify(message)
    const said = [...text.matchAll(CANARY)]
    const [first] = said
    if (said.some(([, whose]) => whose !== who)) this.#wrong.push(`${who} got ${text}`)
    if (method === 'notifications/message') count(this.#logs, who)
    if (method === 'notifications/resources/updated') count(this.#updates, who)
    const own = method === 'notifications/progress' || method === undefined
    // A question is put by any call of its client, and its answer goes back to where it came from.
    const asks = message.result?.['resultType'] === 'input_required'
    if (asks || method === 'elicitation/create') this.#asked++
    if (canary === undefined || !own || asks) return
    if (first?.[0] !== canary || said.some(([one]) => one !== canary)) this.#wrong.push(`${canary} got ${text}`)
    if (method === undefined && message['id'] !== 1) this.#wrong.push(`${canary} got ${text}`)
  }
}

interface Caller {
  who: string
  /** Makes a call. Resolves to all that came on its own stream, or to nothing where it was given up. */
  call(kind: Kind, canary: string, progressToken: string | undefined, place: Place): Promise<Message[] | undefined>
}

/** Calls as they are made in both eras. */
function paramsOf(kind: Kind, who: string, canary: string, place: Place): { name: string; arguments: Json } {
  const named = (tool: string, args: Json) => ({ name: place.name + tool, arguments: { ...args, key: canary } })
  if (kind === 'ask') return named('ask', { rounds: [{ name: question(canary) }], standalone: true })
  if (kind === 'touch') return named('touch', { uris: [uriOf(who)], tools: true })
  const ms = Math.random() * 8
  return named('canary', { canary, ms, fails: kind === 'fail', late: kind === 'say' ? 0 : 3 })
}

const uriOf = (who: string) => `test://canary-${who}-0`

const question = (message: string) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } },
})
const answerTo = (params: Json | undefined) => ({ action: 'accept', content: { name: params?.['message'] } })
export const isGivenUp = (kind: Kind) => kind === 'leave' || kind === 'cancel'
const isAnswer = (message: Message | undefined) => message !== undefined && ('result' in message || 'error' in message)
/** Milliseconds until a call is given up: before its answer, or about when it comes. */
const soon = () => Math.random() * 6

class ModernCaller implements Caller {
  readonly who: string
  readonly #url: URL
  readonly #pool: Pool

  constructor(who: string, url: string, pool: Pool) {
    this.who = who
    this.#url = new URL(url)
    this.#pool = pool
  }

  async call(kind: Kind, canary: string, progressToken: string | undefined, place: Place) {
    const params = paramsOf(kind, this.who, canary, place)
    let sent: Json = params
    const all: Message[] = []
    // Servers want another id for each round.
    for (let round = 1; ; round++) {
      const messages = await this.#send(sent, round, progressToken, isGivenUp(kind))
      if (!messages) return undefined
      all.push(...messages.map((message) => (message['id'] === round ? { ...message, id: 1 } : message)))
      const asked = messages.at(-1)?.result
      if (asked?.['resultType'] !== 'input_required') return named(all, kind, canary)
      const inputRequests = asked['inputRequests'] as Record<string, { params?: Json }>
      const answers = Object.entries(inputRequests).map(([key, { params }]) => [key, answerTo(params)])
      sent = { ...params, inputResponses: Object.fromEntries(answers), requestState: asked['requestState'] }
    }
  }

  async #send(params: Json, id: number, progressToken: string | undefined, givesUp: boolean) {
    const meta = { [CAPABILITIES]: CAPABLE, [LOG_LEVEL]: 'debug', ...(progressToken && { progressToken }) }
    const leaving = new AbortController()
    if (givesUp) setTimeout(() => leaving.abort(), soon())
    const response = this.#pool.request({
      path: this.#url.pathname,
      method: 'POST',
      headers: { ...headersFor('tools/call', params), authorization: `Bearer ${tokenOf(this.who)}` },
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, _meta: envelope(meta) } }),
      signal: leaving.signal,
    })
    return read(response, givesUp)
  }
}

class LegacyCaller implements Caller {
  readonly who: string
  readonly #client: LegacyClient
  readonly #pool: Pool
  #cancelled = 0

  constructor(who: string, client: LegacyClient, pool: Pool) {
    this.who = who
    this.#client = client
    this.#pool = pool
  }

  /** Listens to what the server says by itself, and answers what it asks. */
  async listen(look: (message: Message) => void): Promise<void> {
    const headers = { ...this.#headers, accept: 'text/event-stream' }
    const { body } = await this.#pool.request({ path: this.#path, method: 'GET', headers })
    return eachMessage(body, (message) => {
      look(message)
      this.#answer(message)
    })
  }

  async call(kind: Kind, canary: string, progressToken: string | undefined, place: Place) {
    const params = { ...paramsOf(kind, this.who, canary, place), ...(progressToken && { _meta: { progressToken } }) }
    const leaving = new AbortController()
    const id = kind === 'cancel' ? `cancelled ${++this.#cancelled}` : 1
    if (kind === 'leave') setTimeout(() => leaving.abort(), soon())
    const cancelled = { method: 'notifications/cancelled', params: { requestId: id } }
    const cancel = () => {
      this.#post(cancelled).catch(() => {})
    }
    if (kind === 'cancel') setTimeout(cancel, soon())
    const response = this.#post({ id, method: 'tools/call', params }, leaving.signal)
    if (kind !== 'ask') return named(await read(response, isGivenUp(kind)), kind, canary)
    const messages: Message[] = []
    await eachMessage((await response).body, (message) => {
      messages.push(message)
      this.#answer(message)
    })
    return messages
  }

  #answer({ id, method, params }: Message): void {
    if (method === 'elicitation/create') this.#post({ id, result: answerTo(params) }).catch(() => {})
  }

  #post(message: Json, signal?: AbortSignal) {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    const headers = { ...this.#headers, 'content-type': 'application/json' }
    const response = this.#pool.request({ path: this.#path, method: 'POST', headers, body, ...(signal && { signal }) })
    // What is not read would keep its connection.
    if (!('method' in message) || !('id' in message)) response.then(({ body }) => body.dump()).catch(() => {})
    return response
  }

  get #path(): string {
    return new URL(this.#client.url).pathname
  }

  get #headers(): Record<string, string> {
    const headers = Object.entries(this.#client.headers).filter(([, value]) => value !== undefined)
    return Object.fromEntries(headers) as Record<string, string>
  }
}

type Response = ReturnType<Pool['request']>
type Body = Awaited<Response>['body']

/** All messages of an answer; undefined where it was given up. */
async function read(response: Response, givenUp: boolean): Promise<Message[] | undefined> {
  try {
    const messages: Message[] = []
    await eachMessage((await response).body, (message) => messages.push(message))
    return givenUp ? undefined : messages
  } catch (error) {
    if (givenUp) return undefined
    throw error
  }
}

/** What the result of such a call has no canary in gets it: there is nothing in it to be mixed up. */
function named(messages: Message[] | undefined, kind: Kind, canary: string): Message[] | undefined {
  if (kind !== 'touch') return messages
  return messages?.map((message) => (message.result ? { ...message, result: { canary } } : message))
}

/** Reads JSON, or events as they come. */
async function eachMessage(body: Body, take: (message: Message) => void): Promise<void> {
  let rest = ''
  for await (const chunk of body) {
    rest += String(chunk)
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: {')) take(JSON.parse(line.slice('data: '.length)) as Message)
  }
  if (rest.startsWith('{')) take(JSON.parse(rest) as Message)
}

function count(counts: Map<string, number>, who: string): void {
  counts.set(who, (counts.get(who) ?? 0) + 1)
}
