/** A client of the legacy revisions for the inspector: a session, in which the server can ask at any time. */
import { isRecord } from '../record.js'
import { eventOf, messagesIn, questionIn, resultOf, serverIn, untilNextPoll } from './http.js'
import {
  CLIENT,
  type JsonRecord,
  type TryCallOptions,
  type TryClient,
  type TryClientOptions,
  TryError,
} from './types.js'

const ENDED: readonly unknown[] = ['completed', 'failed', 'cancelled']

/** The capabilities of a client of a revision. */
function capabilitiesOf(revision: string): JsonRecord {
  return {
    sampling: {},
    roots: {},
    ...(revision >= '2025-06-18' && { elicitation: revision >= '2025-11-25' ? { form: {}, url: {} } : {} }),
  }
}

export async function connectLegacy({
  send,
  ask,
  on,
  revision: wanted,
  session: kept,
  capabilities: declared = capabilitiesOf(wanted),
}: TryClientOptions): Promise<TryClient> {
  // In one session, an id is used once.
  let last = kept ? Date.now() : 0
  let session = kept?.id
  let revision = kept?.revision
  const closing = new AbortController()
  /** Functions that cancel the requests that run. */
  const running = new Set<() => Promise<unknown>>()

  async function post(message: JsonRecord, signal: AbortSignal, call?: number): Promise<JsonRecord | undefined> {
    const body = { jsonrpc: '2.0', ...message }
    on?.({ kind: 'sent', message: body })
    const headers = { ...headersNow(), 'content-type': 'application/json' }
    const response = await send({ method: 'POST', headers, body: JSON.stringify(body), signal })
    session ??= response.headers.get('mcp-session-id') ?? undefined
    for await (const received of messagesIn(response)) {
      take(received, call)
      const isAnswer = !('method' in received)
      if (isAnswer && (received['id'] === message['id'] || received['id'] == null))
        return resultOf(received, response.status)
    }
    if (!('id' in message) || !('method' in message)) return undefined
    signal.throwIfAborted()
    throw new TryError('The answer ended without a response', undefined, response.status)
  }

  function headersNow(): Record<string, string> {
    return {
      accept: 'application/json, text/event-stream',
      ...(session !== undefined && { 'mcp-session-id': session }),
      ...(revision !== undefined && { 'mcp-protocol-version': revision }),
    }
  }

  function take(received: JsonRecord, call: number | undefined): void {
    on?.({ kind: 'received', message: received })
    if (!('method' in received)) return
    if ('id' in received) {
      answer(received, call).catch(() => {})
      return
    }
    const { params } = received
    if (received['method'] === 'notifications/cancelled' && isRecord(params)) asked.get(params['requestId'])?.abort()
    const event = eventOf(received, call)
    if (event) on?.(event)
  }

  /** The open questions of the server, by their ids. */
  const asked = new Map<unknown, AbortController>()

  async function answer(asking: JsonRecord, call: number | undefined): Promise<void> {
    const { id } = asking
    if (asking['method'] === 'ping') {
      await post({ id, result: {} }, closing.signal)
      return
    }
    const abort = new AbortController()
    asked.set(id, abort)
    const signal = AbortSignal.any([abort.signal, closing.signal])
    try {
      const result = await ask(questionIn(asking, call), signal)
      if (!signal.aborted) await post({ id, result }, closing.signal)
    } catch (error) {
      const message = error instanceof Error ? error.message : 'refused'
      if (!signal.aborted) await post({ id, error: { code: -32603, message } }, closing.signal)
    } finally {
      asked.delete(id)
    }
  }

  async function request(method: string, params: JsonRecord, signal: AbortSignal, call: number): Promise<JsonRecord> {
    const id = ++last
    // The request must stay open until the server knows of the cancellation.
    const own = new AbortController()
    const cancel = async () => {
      const cancellation = {
        method: 'notifications/cancelled',
        params: { requestId: id, reason: 'cancelled by a person' },
      }
      await post(cancellation, closing.signal).catch(() => {})
      own.abort(signal.reason)
    }
    signal.throwIfAborted()
    const onAbort = () => void cancel()
    signal.addEventListener('abort', onAbort, { once: true })
    running.add(cancel)
    const cancelled = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    try {
      const answered = post({ id, method, params }, own.signal, call)
      return (await Promise.race([answered, cancelled])) ?? {}
    } finally {
      running.delete(cancel)
      signal.removeEventListener('abort', onAbort)
      cancelled.catch(() => {})
    }
  }

  async function followed(task: JsonRecord, signal: AbortSignal, call: number): Promise<JsonRecord> {
    const { taskId } = task
    try {
      let now = task
      // Questions of the task come in the answer to this request.
      while (!ENDED.includes(now['status']) && now['status'] !== 'input_required') {
        on?.({ kind: 'task', call, task: now })
        await untilNextPoll(now['pollInterval'], signal)
        now = await request('tasks/get', { taskId }, signal, call)
      }
      on?.({ kind: 'task', call, task: now })
      return await request('tasks/result', { taskId }, signal, call)
    } catch (error) {
      if (signal.aborted) request('tasks/cancel', { taskId }, closing.signal, call).catch(() => {})
      throw error
    }
  }

  async function call(method: string, params: JsonRecord = {}, options: TryCallOptions = {}): Promise<JsonRecord> {
    const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal
    if (options.logLevel !== undefined) await request('logging/setLevel', { level: options.logLevel }, signal, last + 1)
    const number = last + 1
    options.begun?.(number)
    const meta = { ...(isRecord(params['_meta']) ? params['_meta'] : {}), progressToken: number }
    const more = { _meta: meta, ...(options.task && { task: {} }) }
    const result = await request(method, { ...params, ...more }, signal, number)
    return options.task && isRecord(result['task']) ? followed(result['task'], signal, number) : result
  }

  async function opened(): Promise<TryClient['server']> {
    const opening = { protocolVersion: wanted, capabilities: declared, clientInfo: CLIENT }
    const found = await request('initialize', opening, closing.signal, 0)
    revision = String(found['protocolVersion'])
    await post({ method: 'notifications/initialized' }, closing.signal)
    return serverIn(found, found['serverInfo'])
  }

  const server = kept?.server ?? (await opened())
  const spoken = revision ?? wanted
  return {
    era: 'legacy',
    revision: spoken,
    server,
    session: session === undefined ? undefined : { id: session, revision: spoken, server },
    call,
    async listen() {
      try {
        const response = await send({ method: 'GET', headers: headersNow(), signal: closing.signal })
        for await (const received of messagesIn(response)) take(received, undefined)
      } catch (error) {
        if (!closing.signal.aborted) throw error
      }
    },
    async leave() {
      await Promise.all([...running].map((cancel) => cancel()))
      closing.abort(new TryError('The client was closed', undefined, 0))
    },
    async close() {
      const ending = new AbortController()
      const ended =
        session === undefined ? undefined : send({ method: 'DELETE', headers: headersNow(), signal: ending.signal })
      closing.abort(new TryError('The client was closed', undefined, 0))
      await ended?.catch(() => {})
    },
  }
}
