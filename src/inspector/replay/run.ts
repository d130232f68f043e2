/** Runs the calls of a recording again, as the clients that made them, and compares the answers. */

import { BoundedMap } from '../../base/limits/bounded.js'
import { connectTry, listOf } from '../try/client.js'
import {
  errorOf,
  type JsonRecord,
  type TryClient,
  type TryClientOptions,
  TryError,
  type TryQuestion,
} from '../try/types.js'
import { type Difference, diff } from './diff.js'
import { type Expected, hiddenIn, type RecordedAnswer, type Recording, type RecordingCall } from './recording.js'

export interface ReplayOptions {
  /** The server or group for a call. Throws an error that says why there is none. */
  targetOf(call: RecordingCall): string
  /** Sends a request to a server or group. */
  send(target: string, request: Parameters<TryClientOptions['send']>[0]): ReturnType<TryClientOptions['send']>
  /** JSON without secrets, as they are hidden in recordings. */
  redact(text: string): string
  /** Ends the run: the call in progress is cancelled. */
  signal: AbortSignal
}

/** The outcome of a repeated call. */
export interface Replayed {
  call: RecordingCall
  /** `failed`: it could not be made, or was not made as recorded. */
  outcome: 'same' | 'different' | 'failed'
  ms: number
  /** What went wrong, in sentences. */
  problems: readonly string[]
  /** Between the recorded answer and this one, without their secrets. */
  differences: readonly Difference[]
  /** Number of further differences. */
  more: number
}

/** Most clients that are connected at the same time. */
const MAX_REPLAY_CLIENTS = 16
/** Whether and when a server asks for roots is not compared. */
const ROOTS = 'roots/list'

/** Runs the calls one after another. */
export async function* replayed(recording: Recording, options: ReplayOptions): AsyncGenerator<Replayed, void> {
  const clients = new ReplayClients(options, recording)
  try {
    for (const call of recording.calls) yield await clients.replay(call, recording.ignore ?? [])
  } finally {
    await clients.close()
  }
}

/** The clients of a run: one for each target, revision and set of capabilities. */
class ReplayClients {
  readonly #options: ReplayOptions
  readonly #open = new BoundedMap<string, Promise<TryClient>>(
    MAX_REPLAY_CLIENTS,
    (oldest) => void closed(oldest).catch(() => {}),
  )
  /** The listed tools of each client. Their schemas name the arguments that headers repeat. */
  readonly #tools = new WeakMap<TryClient, Promise<ReadonlyMap<unknown, JsonRecord>>>()
  readonly #roots: JsonRecord
  /** The answers that the server may still ask for in this call, and its questions without one. */
  #answers: RecordedAnswer[] = []
  #unanswered: string[] = []

  constructor(options: ReplayOptions, { calls }: Recording) {
    this.#options = options
    const roots = calls.flatMap(({ answers = [] }) => answers).find(({ method }) => method === ROOTS)
    this.#roots = roots?.result ?? { roots: [] }
  }

  async replay(call: RecordingCall, ignore: readonly string[]): Promise<Replayed> {
    const began = performance.now()
    const failed = (problem: string): Replayed => {
      return { call, outcome: 'failed', ms: performance.now() - began, problems: [problem], differences: [], more: 0 }
    }
    const [hidden] = hiddenIn({ params: call.params, answers: call.answers ?? [] })
    if (hidden !== undefined)
      return failed(`A secret or binary value is hidden in the recording: enter a value at ${hidden}`)
    let client: TryClient
    try {
      client = await this.#connect(this.#options.targetOf(call), call)
    } catch (error) {
      return failed((error as Error).message)
    }
    if (client.revision !== call.revision)
      return failed(`The server speaks ${client.revision}, and the call was recorded with ${call.revision}`)
    this.#answers = (call.answers ?? []).filter(({ method }) => method !== ROOTS)
    this.#unanswered = []
    let actual: Expected
    try {
      const { signal } = this.#options
      actual = {
        result: await client.call(call.method, call.params, { signal, tool: await this.#toolOf(client, call) }),
      }
    } catch (error) {
      if (!(error instanceof TryError)) return failed((error as Error).message)
      actual = { error: errorOf(error) }
    }
    const problems = [
      ...this.#unanswered.map((method) => `The server asked ${method}, and the recording has no answer to that`),
      ...this.#answers.map(({ method }) => `The server did not ask ${method}, as it did when this was recorded`),
    ]
    const ms = performance.now() - began
    const shown = this.#shown(actual)
    if (shown === undefined) return failed('The answer is nested too deeply to be compared')
    const { all, more } = diff(this.#shown(call.expect), shown, [...ignore, ...(call.ignore ?? [])])
    const outcome = all.length > 0 ? 'different' : problems.length > 0 ? 'failed' : 'same'
    return { call, outcome, ms, problems, differences: all, more }
  }

  async close(): Promise<void> {
    const open = [...this.#open.values()]
    this.#open.clear()
    await Promise.all(open.map((client) => closed(client)))
  }

  /** A failure to connect is kept: the other calls fail with it. */
  #connect(target: string, { revision, capabilities }: RecordingCall): Promise<TryClient> {
    const key = JSON.stringify([target, revision, capabilities])
    const known = this.#open.get(key)
    if (known) return known
    const { send } = this.#options
    const connected = connectTry({
      revision,
      capabilities,
      send: (request) => send(target, request),
      ask: (question) => this.#answer(question),
    }).catch((error: Error) => {
      throw new Error(`Cannot connect as a client of ${revision}: ${error.message}`)
    })
    this.#open.set(key, connected)
    return connected
  }

  /** The tool of a call, as listed, if the client has to know it. */
  async #toolOf(client: TryClient, { method, params }: RecordingCall): Promise<JsonRecord | undefined> {
    if (method !== 'tools/call' || client.era !== 'modern') return undefined
    const known = this.#tools.get(client)
    const listed = known ?? toolsOf(client)
    if (!known) this.#tools.set(client, listed)
    return (await listed).get(params['name'])
  }

  /** The next recorded answer to a question like this. */
  async #answer({ method }: TryQuestion): Promise<JsonRecord> {
    if (method === ROOTS) return this.#roots
    const at = this.#answers.findIndex((one) => one.method === method)
    const [answer] = at < 0 ? [] : this.#answers.splice(at, 1)
    if (answer) return answer.result
    this.#unanswered.push(method)
    throw new Error('The recording has no answer to this question')
  }

  /** An answer as it is compared: without secrets. Undefined if it cannot be written. */
  #shown(answer: Expected): unknown {
    try {
      return JSON.parse(this.#options.redact(JSON.stringify(answer))) as unknown
    } catch {
      return undefined
    }
  }
}

/** The tools of a server by name; none if it does not list them. */
async function toolsOf(client: TryClient): Promise<ReadonlyMap<unknown, JsonRecord>> {
  const { items } = await listOf(client, 'tools').catch(() => ({ items: [] as JsonRecord[] }))
  return new Map(items.map((tool) => [tool['name'], tool]))
}

function closed(client: Promise<TryClient>): Promise<void> {
  return client.then((connected) => connected.close()).catch(() => {})
}
