/** Legacy servers that ask their clients, by each way in which they can; and what a test says to them through a bridge. */
import type { Test } from 'tap'
import { LegacyHttp, type Plan } from './legacy-http.js'
import { LegacySse } from './legacy-sse.js'
import { legacyStdio } from './legacy-stdio.js'
import { type Answer, CAPABILITIES, type CallOptions, call } from './modern.js'

type Json = Record<string, unknown>

export interface Question {
  method: string
  params?: object
  id?: unknown
}

/** What a server does in the middle of a call: see test/fixtures/legacy-asking.mjs. */
export interface Step {
  ask?: readonly Question[]
  /** Milliseconds, or a signal, between one question and the next. */
  gap?: number | string
  /** After so many milliseconds, or when the signal of that name is given. */
  withdraw?: number | string
  /** What it says while it waits for the answers. */
  meanwhile?: { after: number | string; tell: readonly { method: string; params: object }[] }
  tell?: { method: string; params: object }
  /** Says it beside the call. */
  by?: 'session'
  wait?: number | string
  leave?: number
  visit?: readonly object[]
  fail?: object
}

/** One that answers everything, as clients declare it. */
export const ABLE = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} }

export const NAME: Question = {
  method: 'elicitation/create',
  params: { message: 'Your name?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } },
}
export const COLOUR: Question = { ...NAME, params: { ...NAME.params, message: 'Your colour?' } }
export const PAGE: Question = {
  method: 'elicitation/create',
  params: { mode: 'url', message: 'Look here', url: 'https://example.com/x', elicitationId: 'el-1' },
}
export const MODEL: Question = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'Capital of France?' } }], maxTokens: 10 },
}
export const ROOTS: Question = { method: 'roots/list' }

export const ADA = { action: 'accept', content: { name: 'Ada' } }
export const BLUE = { action: 'accept', content: { name: 'blue' } }
export const PARIS = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } }
export const FOLDERS = { roots: [{ uri: 'file:///home/ada', name: 'home' }] }

/** A server that asks, and the way in which it does. */
export interface Asker {
  name: string
  /** The entry of `mcpServers` that leads to it. */
  server: object
  /** Whether it asks on the stream of the call, or beside it. */
  by: 'call' | 'session'
  /** Every message that it has been sent, in order. */
  messages(): Json[]
  /** The same, with the session that each was sent in: its id, its process or where it is posted. */
  seen(): { session: string; message: Json }[]
}

export const WAYS = [
  'over stdio',
  'on the stream of the call over HTTP',
  'on the stream of the session over HTTP',
  'over HTTP+SSE',
] as const

/** Starts a server that asks in one of these ways. */
export async function startAsker(t: Test, way: (typeof WAYS)[number], plan: Omit<Plan, 'asks'> = {}): Promise<Asker> {
  if (way === 'over stdio') {
    const { server, messages, seen } = legacyStdio(t, { ...plan, asks: true })
    const lines = () => seen().filter(({ line }) => line.startsWith('{'))
    return {
      name: way,
      server,
      by: 'call',
      messages,
      seen: () => lines().map(({ pid, line }) => ({ session: pid, message: JSON.parse(line) as Json })),
    }
  }
  if (way === 'over HTTP+SSE') {
    const sse = await LegacySse.start(t, { ...plan, asks: true })
    const posted = () => sse.received.filter(({ method }) => method === 'POST')
    return {
      name: way,
      server: { url: sse.url, type: 'sse' },
      by: 'call',
      messages: () => posted().map(({ message }) => message),
      seen: () => posted().map(({ path, message }) => ({ session: path, message })),
    }
  }
  const http = await LegacyHttp.start(t, { ...plan, asks: true })
  const posted = () => http.received.filter(({ method }) => method === 'POST')
  return {
    name: way,
    server: { url: http.url },
    by: way === 'on the stream of the session over HTTP' ? 'session' : 'call',
    messages: () => posted().map(({ message }) => message),
    seen: () => posted().map(({ headers, message }) => ({ session: String(headers['mcp-session-id']), message })),
  }
}

/** The status of a round and the code of its error. */
export const codeOf = ({ status, message }: Round) => ({ status, code: message.error?.code })

/** Messages of one method, or the answers to questions where none is named. */
export function of({ messages }: Pick<Asker, 'messages'>, method?: string): Json[] {
  return messages().filter((message) => message['method'] === method && (method !== undefined || 'id' in message))
}

/** What a client has been answered: questions, or the end. */
export interface Round extends Answer {
  /** Questions by their keys. */
  requests: Record<string, { method: string; params?: Json }>
  keys: string[]
  state: string
  /** The answers that the server says it got, when it has ended. */
  said: unknown
}

export interface Talk {
  /** Calls the tool that goes these steps. */
  steps(steps: readonly Step[], args?: Json, options?: CallOptions): Promise<Round>
  /** The same, until so many questions have come in one round: on a busy machine they may not. */
  together(count: number, steps: readonly Step[], args?: Json, options?: CallOptions): Promise<Round>
  /** Gives the server a signal, and resolves when it has done what it does then. */
  signal(name: string): Promise<void>
  /** Calls anything. */
  call(method: string, params: Json, options?: CallOptions): Promise<Round>
  /** Makes the call of a round once more, with these answers and its state. */
  again(round: Round, answers: unknown, changes?: Json, options?: CallOptions): Promise<Round>
  /** What the call of a round was about. */
  paramsOf(round: Round): Json
}

let lastId = 100

/** A client that declares all that can be asked, unless a test says otherwise, and gives every request another id. */
export function talk(url: string, { by, capabilities = ABLE }: { by?: Asker['by']; capabilities?: object } = {}): Talk {
  const calls = new WeakMap<Round, { method: string; params: Json }>()
  const callOf = (round: Round) => {
    const known = calls.get(round)
    if (!known) throw new TypeError('This round was not one of this client')
    return known
  }
  const send = async (method: string, params: Json, options: CallOptions = {}) => {
    const meta = { [CAPABILITIES]: capabilities, ...options.meta }
    const round = roundOf(await call(url, method, params, { id: ++lastId, ...options, meta }))
    const { inputResponses: _responses, requestState: _state, ...own } = params
    calls.set(round, { method, params: own })
    return round
  }
  const steps: Talk['steps'] = (list, args = {}, options = {}) =>
    send('tools/call', { name: 'steps', arguments: { steps: list, ...(by && { by }), ...args } }, options)
  return {
    steps,
    async together(count, list, args, options) {
      for (let attempt = 1; ; attempt++) {
        const round = await steps(list, args, options)
        if (round.keys.length === count || attempt === 5) return round
      }
    },
    call: send,
    paramsOf: (round) => callOf(round).params,
    async signal(name) {
      await send('tools/call', { name: 'signal', arguments: { name } })
    },
    again(round, answers, changes = {}, options) {
      const { method, params } = callOf(round)
      const retry = { ...params, inputResponses: answers, requestState: round.state, ...changes }
      return send(method, Object.fromEntries(Object.entries(retry).filter(([, value]) => value !== undefined)), options)
    },
  }
}

function roundOf(answer: Answer): Round {
  const { result } = answer.message
  const requests = (result?.['inputRequests'] ?? {}) as Round['requests']
  const [first] = (result?.['content'] ?? []) as { text?: string }[]
  return {
    ...answer,
    requests,
    keys: Object.keys(requests),
    state: String(result?.['requestState']),
    said: parsed(first?.text),
  }
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return text
  }
}

/** The same answer to every question of a round. */
export function all({ keys }: Round, answer: unknown): Json {
  return Object.fromEntries(keys.map((key) => [key, answer]))
}
