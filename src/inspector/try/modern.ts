/** A client of 2026-07-28 for the inspector: every request has its envelope, and a result can ask for input. */

import { parseObject } from '../../base/rpc/splice.js'
import { annotationsOfTool } from '../../mcp/protocol/annotations.js'
import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { encodeValue, paramHeaders } from '../../mcp/protocol/headers.js'
import {
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  LOG_LEVEL,
  PROGRESS_TOKEN,
  PROTOCOL_VERSION,
  SERVER_INFO,
  TASKS_EXTENSION,
} from '../../mcp/protocol/meta.js'
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

const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: {},
  extensions: { [TASKS_EXTENSION]: {} },
}
/** Most times that one call can ask for input. */
const MAX_TRY_INPUTS = 100

export async function connectModern({
  send,
  ask,
  on,
  capabilities: declared = CAPABILITIES,
}: TryClientOptions): Promise<TryClient> {
  let last = 0
  const closing = new AbortController()

  /** Sends a request, and resolves to its result. */
  async function request(
    method: string,
    params: JsonRecord,
    {
      signal,
      call,
      logLevel,
      tool,
    }: { signal: AbortSignal; call: number; logLevel?: string | undefined; tool?: JsonRecord | undefined },
  ): Promise<JsonRecord> {
    const id = ++last
    const meta = {
      ...(isRecord(params['_meta']) ? params['_meta'] : {}),
      [PROTOCOL_VERSION]: NEWEST_MODERN,
      [CLIENT_INFO]: CLIENT,
      [CLIENT_CAPABILITIES]: declared,
      [PROGRESS_TOKEN]: call,
      ...(logLevel !== undefined && { [LOG_LEVEL]: logLevel }),
    }
    const message = { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } }
    on?.({ kind: 'sent', message })
    const response = await send({
      method: 'POST',
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'mcp-protocol-version': NEWEST_MODERN,
        'mcp-method': method,
        ...nameIn(method, params),
        ...(tool && mirroredIn(tool, params)),
      },
      body: JSON.stringify(message),
      signal,
    })
    for await (const received of messagesIn(response)) {
      on?.({ kind: 'received', message: received })
      if ('result' in received || 'error' in received) return resultOf(received, response.status)
      const event = eventOf(received, call)
      if (event) on?.(event)
    }
    signal.throwIfAborted()
    throw new TryError('The answer ended without a response', undefined, response.status)
  }

  async function answers(inputs: JsonRecord, call: number, signal: AbortSignal): Promise<JsonRecord> {
    const all = Object.entries(inputs).map(
      async ([key, one]) => [key, await ask(questionIn(isRecord(one) ? one : {}, call), signal)] as const,
    )
    return Object.fromEntries(await Promise.all(all))
  }

  async function followed(task: JsonRecord, call: number, signal: AbortSignal): Promise<JsonRecord> {
    const { taskId } = task
    const answered = new Set<string>()
    try {
      for (let now = task; ; now = await request('tasks/get', { taskId }, { signal, call })) {
        on?.({ kind: 'task', call, task: now })
        if (now['status'] === 'completed') return isRecord(now['result']) ? now['result'] : {}
        if (now['status'] === 'failed') return resultOf({ error: now['error'] ?? { message: 'The task failed' } }, 200)
        if (now['status'] === 'cancelled') throw new TryError('The task was cancelled', undefined, 200)
        const inputs = isRecord(now['inputRequests']) ? now['inputRequests'] : {}
        const open = Object.fromEntries(Object.entries(inputs).filter(([key]) => !answered.has(key)))
        if (Object.keys(open).length > 0) {
          for (const key of Object.keys(open)) answered.add(key)
          const inputResponses = await answers(open, call, signal)
          await request('tasks/update', { taskId, inputResponses }, { signal, call })
        }
        await untilNextPoll(now['pollIntervalMs'], signal)
      }
    } catch (error) {
      if (signal.aborted) request('tasks/cancel', { taskId }, { signal: closing.signal, call }).catch(() => {})
      throw error
    }
  }

  async function call(method: string, params: JsonRecord = {}, options: TryCallOptions = {}): Promise<JsonRecord> {
    const number = last + 1
    options.begun?.(number)
    const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal
    const about = { signal, call: number, logLevel: options.logLevel, tool: options.tool }
    let more: JsonRecord = {}
    for (let inputs = 0; inputs <= MAX_TRY_INPUTS; inputs++) {
      const result = await request(method, { ...params, ...more }, about)
      if (result['resultType'] === 'task') return followed(result, number, signal)
      if (result['resultType'] !== 'input_required') return result
      const { inputRequests, requestState } = result
      const inputResponses = await answers(isRecord(inputRequests) ? inputRequests : {}, number, signal)
      more = { inputResponses, ...(requestState !== undefined && { requestState }) }
    }
    throw new TryError(`The call asked for input more than ${MAX_TRY_INPUTS} times`, undefined, 200)
  }

  /** A call ends with its connection. */
  async function close(): Promise<void> {
    closing.abort(new TryError('The client was closed', undefined, 0))
  }

  const found = await call('server/discover')
  const { _meta: meta } = found
  return {
    era: 'modern',
    revision: NEWEST_MODERN,
    server: serverIn(found, isRecord(meta) ? meta[SERVER_INFO] : undefined),
    call,
    async listen() {
      const notifications = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
      await call('subscriptions/listen', { notifications }).catch((error: unknown) => {
        if (!closing.signal.aborted) throw error
      })
    },
    leave: close,
    close,
  }
}

/** The header with the name that a request is about. */
function nameIn(method: string, { name, uri, taskId }: JsonRecord): Record<string, string> {
  const named = method === 'resources/read' ? uri : method.startsWith('tasks/') ? taskId : name
  return typeof named === 'string' ? { 'mcp-name': encodeValue(named) } : {}
}

/** The headers that repeat arguments, as the tool's schema says. A tool whose schema breaks the rules has none. */
function mirroredIn(tool: JsonRecord, params: JsonRecord): Record<string, string> {
  const { annotations } = annotationsOfTool(parseObject(JSON.stringify(tool)))
  const args = params['arguments']
  return paramHeaders(annotations, isRecord(args) ? parseObject(JSON.stringify(args)) : undefined)
}
