/** Legacy clients that are asked something in the middle of a call, in each way in which they can reach a bridge. */
import type { Test } from 'tap'
import { type Started, startBridge } from './bridge.js'
import { until } from './eventually.js'
import { LegacyClient } from './legacy-client.js'
import { openPipe } from './pipe.js'
import { SseClient } from './sse-client.js'

type Json = Record<string, unknown>

export interface Opening {
  capabilities?: Json
  revision?: string
  /** Settings of the bridge. */
  settings?: object
  /** More about the server, as the configuration has it. */
  entry?: object
}

export interface Client {
  /** Sends a request. */
  begin(id: unknown, method: string, params: Json, meta?: Json): Promise<void>
  /** Says anything else. */
  say(message: Json): Promise<void>
  /** What has come where the answer to this request is to come, in order. */
  heard(id: unknown): Json[]
}

/** One that says that it can answer everything. */
export const EVERYTHING = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} }

/** One that has a bridge to itself. */
export type ClientOfBridge = Client & Pick<Started, 'bridge' | 'log'>

export const FRONTS = ['HTTP', 'HTTP+SSE', 'stdio'] as const

/** Streams that a test leaves open would hold up its end for the usual time. */
const HURRIED = { timeouts: { drainTimeout: 100 } }

export function connect(
  t: Test,
  front: (typeof FRONTS)[number],
  server: object,
  opening: Opening = {},
): Promise<ClientOfBridge> {
  return { HTTP: overHttp, 'HTTP+SSE': overSse, stdio: overStdio }[front](t, server, opening)
}

async function overHttp(t: Test, server: object, opening: Opening): Promise<ClientOfBridge> {
  const { url, bridge, log } = await startBridge(
    t,
    { ...server, ...opening.entry },
    { ...HURRIED, ...opening.settings },
  )
  return { ...(await httpClient(servedAt(bridge, url), opening)), bridge, log }
}

/** The address of the group, if the settings have one, or else of the server. */
function servedAt({ groupUrls }: Started['bridge'], url: string): string {
  return [...groupUrls.values()][0] ?? url
}

/** A client with a session of its own at a bridge. */
export async function httpClient(url: string, { capabilities = EVERYTHING, revision }: Opening = {}): Promise<Client> {
  const client = await LegacyClient.open(url, { capabilities, ...(revision && { revision }) })
  const streams = new Map<unknown, { messages: Json[] }>()
  return {
    async begin(id, method, params, meta = {}) {
      streams.set(id, { messages: [] })
      // Nothing comes, not even the head of an answer, before there is something to say.
      client.stream(method, params, { id, meta }).then(
        (stream) => streams.set(id, stream),
        () => {},
      )
    },
    async say(message) {
      await client.post({ jsonrpc: '2.0', ...message })
    },
    heard(id) {
      const stream = streams.get(id)
      if (!stream) return []
      // An answer that nothing came before is no event.
      const { text = '' } = stream as { text?: string }
      return text.startsWith('{') ? [JSON.parse(text) as Json] : stream.messages
    },
  }
}

async function overSse(
  t: Test,
  server: object,
  { capabilities = EVERYTHING, revision, settings, entry }: Opening,
): Promise<ClientOfBridge> {
  const { url, bridge, log } = await startBridge(t, { ...server, ...entry }, { ...HURRIED, ...settings })
  const client = await SseClient.open(servedAt(bridge, url), revision ?? '2025-11-25', { capabilities })
  return {
    bridge,
    log,
    async begin(id, method, params, meta) {
      await client.post({ jsonrpc: '2.0', id, method, params: { ...params, ...(meta && { _meta: meta }) } })
    },
    async say(message) {
      await client.post({ jsonrpc: '2.0', ...message })
    },
    heard: () => client.messages.slice(1),
  }
}

async function overStdio(
  t: Test,
  server: object,
  { capabilities = EVERYTHING, revision, settings, entry }: Opening,
): Promise<ClientOfBridge> {
  const pipe = openPipe(t, { ...server, ...entry }, { ...HURRIED, ...settings })
  const say = async (message: Json) => pipe.line(JSON.stringify({ jsonrpc: '2.0', ...message }))
  const params = { protocolVersion: revision ?? '2025-11-25', capabilities, clientInfo: { name: 'old', version: '1' } }
  await say({ id: 'hello', method: 'initialize', params })
  await until(() => pipe.messages().length > 0, 'the answer to initialize')
  await say({ method: 'notifications/initialized' })
  const { bridge, log } = pipe
  return {
    bridge,
    log,
    begin: (id, method, params, meta) => say({ id, method, params: { ...params, ...(meta && { _meta: meta }) } }),
    say,
    heard: () => pipe.messages().slice(1),
  }
}

/** Questions that have been asked, and not taken back or answered by way of `answers`. */
export function questions({ heard }: Client, id: unknown): { id: number; method: string; params: Json }[] {
  return heard(id).filter((message) => 'method' in message && 'id' in message) as never
}

/** Waits for so many questions, and gives them. */
export async function asked(client: Client, id: unknown, count: number): Promise<ReturnType<typeof questions>> {
  await until(() => questions(client, id).length >= count, `${count} questions (${JSON.stringify(client.heard(id))})`)
  return questions(client, id)
}

/** Waits for the answer to a request. */
export async function answered(client: Client, id: unknown): Promise<Json & { result?: Json; error?: Json }> {
  const found = () => client.heard(id).find((message) => message['id'] === id && !('method' in message))
  await until(() => found() !== undefined, `an answer to ${JSON.stringify(id)} (${JSON.stringify(client.heard(id))})`)
  return found() as Json
}

/** What a client says to a question, by its method. */
export type Replies = Readonly<Record<string, (params: Json) => Json>>

/** Makes a call and answers what is asked in it. Gives the answer, and the questions in their order. */
export async function converse(client: Client, id: unknown, params: Json, replies: Replies, method = 'tools/call') {
  await client.begin(id, method, params)
  const seen = new Set<number>()
  const final = () => client.heard(id).find((message) => message['id'] === id && !('method' in message))
  for (;;) {
    const next = () => questions(client, id).find((question) => !seen.has(question.id))
    await until(() => next() !== undefined || final() !== undefined, `more about ${JSON.stringify(id)}`)
    const question = next()
    if (!question) break
    seen.add(question.id)
    const reply = replies[question.method]?.(question.params) ?? { error: { code: -32601, message: 'Unknown' } }
    await client.say({ id: question.id, ...reply })
  }
  const all = questions(client, id)
  return { answer: final() as Json & { result?: Json; error?: Json }, asked: all }
}
