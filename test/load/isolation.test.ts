/**
 * Many callers of three principals at once, on all lanes: whatever arrives at one of them, in answers, progress, logs, questions,
 * errors, changes and updates, is its own. Some calls are given up in the middle, and servers log on for them. Everybody uses the
 * same ids and progress tokens, and every word that belongs to a call has its canary. A pipe has only one principal, so that
 * all clients here come over HTTP.
 */
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import { startBridgeProcess } from '../support/bridge-process.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { listen } from '../support/listening.js'
import { CAPABILITIES, envelope, headersFor, LOG_LEVEL } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { startFixture } from '../support/process.js'

type Json = Record<string, unknown>
type Message = Json & { method?: string; params?: Json; result?: Json; error?: Json }

const TOTAL = Number(process.env['ISOLATION_CALLS'] ?? 10_000)
/** Milliseconds after which no more calls are made, on a machine that has other things to do. */
const AT_MOST = 140_000
const PRINCIPALS = ['alice', 'bob', 'carol']
/** Callers of each principal, of each era. */
const CALLERS = 6
const CAPABLE = { elicitation: {} }
/** What a call does, one of these after the other. */
const KINDS = ['say', 'ask', 'say', 'fail', 'say', 'leave', 'say', 'late', 'touch', 'say', 'cancel'] as const
type Kind = (typeof KINDS)[number]

const tokenOf = (who: string) => `token-of-${who}-0123456789`
const uriOf = (who: string) => `test://canary-${who}-0`
const CANARY = /canary-([a-z]+)-\d+/g

/** One server, and clients of both eras in front of it. */
interface Lane {
  name: string
  server: object
  /** Servers log in a process or session of each principal, so that logs have to arrive. */
  logs: boolean
}

async function lanesOf(t: Test): Promise<Lane[]> {
  const http = async (script: string, plan: object) => (await startFixture(t, script, JSON.stringify(plan))).url
  const legacyUrl = await http('legacy-http.mjs', { asks: true })
  return [
    { name: 'a legacy program', server: legacyStdio(t).server, logs: true },
    { name: 'a legacy program that is shared', server: { ...legacyStdio(t).server, session: 'shared' }, logs: false },
    { name: 'a legacy server over HTTP', server: { url: legacyUrl }, logs: true },
    { name: 'a legacy server over HTTP that is shared', server: { url: legacyUrl, session: 'shared' }, logs: false },
    { name: 'a modern program', server: modernStdio(t).server, logs: true },
    { name: 'a modern program that is shared', server: { ...modernStdio(t).server, session: 'shared' }, logs: false },
    { name: 'a modern server over HTTP', server: { url: await http('modern-http.mjs', {}) }, logs: true },
  ]
}

t.test(`H1 ${TOTAL} calls of ${PRINCIPALS.length} principals on all lanes: each gets its own`, async (t) => {
  const lanes = await lanesOf(t)
  const { urls, busy } = await startBridgeProcess(t, {
    listen: 'http://127.0.0.1:0/mcp',
    mcpServers: Object.fromEntries(lanes.map(({ server }, n) => [`lane-${n}`, server])),
    auth: { tokens: Object.fromEntries(PRINCIPALS.map((who) => [who, tokenOf(who)])) },
  })
  for (const [n, lane] of lanes.entries())
    await t.test(lane.name, async (t) => {
      const storm = new Storm(String(urls[`lane-${n}`]), Math.ceil(TOTAL / lanes.length))
      const { made, answered, wrong, logs, updates } = await storm.run(AT_MOST / lanes.length)
      t.same(wrong, [])
      t.equal(answered, made)
      if (made < storm.calls) t.comment(`${made} of ${storm.calls} calls were made in time`)
      for (const who of PRINCIPALS) {
        t.ok((updates.get(who) ?? 0) > 0, `${who} hears of what changes`)
        if (lane.logs) t.ok((logs.get(who) ?? 0) > 0, `${who} hears what is logged`)
      }
      await until(async () => (await busy()) === 0, 'the end of all calls')
    })
})

class Storm {
  readonly calls: number
  readonly #url: string
  readonly #pool: Pool
  readonly #wrong: string[] = []
  readonly #logs = new Map<string, number>()
  readonly #updates = new Map<string, number>()
  #next = 0
  #answered = 0
  #until = 0

  constructor(url: string, calls: number) {
    this.calls = calls
    this.#url = url
    this.#pool = new Pool(new URL(url).origin, { connections: 64, pipelining: 1 })
  }

  /** Makes calls for so many milliseconds, at most. */
  async run(milliseconds: number) {
    this.#until = performance.now() + milliseconds
    const principals = await Promise.all(PRINCIPALS.map((who) => this.#principal(who)))
    // A call that runs alone shows which tool it is that asks.
    await principals[0]?.modern.call('ask', 'canary-alice-0', undefined)
    await Promise.all(
      principals.flatMap(({ modern, legacy }) =>
        Array.from({ length: CALLERS * 2 }, (_, n) => this.#caller(n % 2 === 0 ? modern : legacy)),
      ),
    )
    for (const { end } of principals) await end()
    await this.#pool.destroy()
    const wrong = this.#wrong.slice(0, 3)
    return { made: this.#next, answered: this.#answered, wrong, logs: this.#logs, updates: this.#updates }
  }

  /** A principal with a client of each era, both of which listen to what changes. */
  async #principal(who: string) {
    const headers = { authorization: `Bearer ${tokenOf(who)}` }
    const filter = { toolsListChanged: true, resourceSubscriptions: [uriOf(who)] }
    const stream = await listen(this.#url, filter, { capabilities: CAPABLE, headers })
    const client = await LegacyClient.open(this.#url, { capabilities: CAPABLE, headers })
    const legacy = new LegacyCaller(who, client, this.#pool)
    legacy.listen((message) => this.#look(message, who, undefined)).catch(() => {})
    await client.request('logging/setLevel', { level: 'debug' })
    await client.request('resources/subscribe', { uri: uriOf(who) })
    const modern = new ModernCaller(who, this.#url, this.#pool)
    const end = async () => {
      for (const message of stream.messages) this.#look(message, who, undefined)
      stream.leave()
      await client.end()
    }
    return { modern, legacy, end }
  }

  async #caller(caller: Caller): Promise<void> {
    while (this.#next < this.calls && performance.now() < this.#until) {
      const n = this.#next++
      const canary = `canary-${caller.who}-${n}`
      const kind = KINDS[n % KINDS.length] as Kind
      const progressToken = n % 2 === 0 ? 't' : undefined
      try {
        const messages = await caller.call(kind, canary, progressToken)
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
    if (canary === undefined || !own || asks) return
    if (first?.[0] !== canary || said.some(([one]) => one !== canary)) this.#wrong.push(`${canary} got ${text}`)
    if (method === undefined && message['id'] !== 1) this.#wrong.push(`${canary} got ${text}`)
  }
}

interface Caller {
  who: string
  /** Makes a call. Resolves to all that came on its own stream, or to nothing where it was given up. */
  call(kind: Kind, canary: string, progressToken: string | undefined): Promise<Message[] | undefined>
}

/** Calls as they are made in both eras. */
function paramsOf(kind: Kind, who: string, canary: string): { name: string; arguments: Json } {
  if (kind === 'ask') return { name: 'ask', arguments: { rounds: [{ name: question(canary) }], standalone: true } }
  if (kind === 'touch') return { name: 'touch', arguments: { uris: [uriOf(who)], tools: true } }
  const ms = Math.random() * 8
  return { name: 'canary', arguments: { canary, ms, fails: kind === 'fail', late: kind === 'say' ? 0 : 3 } }
}

const question = (message: string) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } },
})
const answerTo = (params: Json | undefined) => ({ action: 'accept', content: { name: params?.['message'] } })
const isGivenUp = (kind: Kind) => kind === 'leave' || kind === 'cancel'
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

  async call(kind: Kind, canary: string, progressToken: string | undefined): Promise<Message[] | undefined> {
    const params = paramsOf(kind, this.who, canary)
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

  async call(kind: Kind, canary: string, progressToken: string | undefined): Promise<Message[] | undefined> {
    const params = { ...paramsOf(kind, this.who, canary), ...(progressToken && { _meta: { progressToken } }) }
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
