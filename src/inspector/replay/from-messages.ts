/** Makes a recorded call from the messages between a client and the bridge. */

import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import {
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  LOG_LEVEL,
  PROGRESS_TOKEN,
  PROTOCOL_VERSION,
  SERVER_INFO,
} from '../../mcp/protocol/meta.js'
import { isRecord, recordIn } from '../record.js'
import type { MessageBody, Side } from '../recorder/events.js'
import type { JsonRecord } from '../try/types.js'
import { pointerOf } from './diff.js'
import type { Expected, RecordedAnswer, RecordingCall } from './recording.js'

/** A message between a client and the bridge. `in` is towards the bridge. */
export interface ClientMessage extends Pick<MessageBody, 'dir' | 'form'> {
  /** The whole text, without secrets. */
  text: string
}

/** A call and its messages. */
export interface CallMessages {
  server: string
  client: Side | undefined
  messages: readonly ClientMessage[]
  /** The capabilities that a legacy client declared in `initialize`. */
  capabilities?: JsonRecord | undefined
}

/** Methods whose calls can be repeated: they need nothing that the client or the server remembers. */
export const REPEATABLE: ReadonlySet<string> = new Set([
  'completion/complete',
  'prompts/get',
  'prompts/list',
  'resources/list',
  'resources/read',
  'resources/templates/list',
  'tools/call',
  'tools/list',
])

/** Parts of answers that differ between versions of a server. */
export const USUALLY_IGNORED: readonly string[] = [pointerOf(['result', '_meta', SERVER_INFO])]

/** Keys of `_meta` that clients set for each request. */
const OF_REQUESTS: ReadonlySet<string> = new Set([
  PROTOCOL_VERSION,
  CLIENT_INFO,
  CLIENT_CAPABILITIES,
  LOG_LEVEL,
  PROGRESS_TOKEN,
  'traceparent',
  'tracestate',
  'baggage',
])

/** A repeatable call, without `expect` if its answer is unknown. */
export type RepeatableCall = Omit<RecordingCall, 'expect'> & { expect?: Expected }

/** The call with its answer, or a sentence: why it cannot be repeated and compared. */
export function recordingCallOf(messages: CallMessages): RecordingCall | string {
  const { call, problem = 'It has no answer' } = repeatableCallOf(messages)
  return call?.expect ? { ...call, expect: call.expect } : problem
}

/** The repeatable part of a call, and a sentence about what is missing. */
export function repeatableCallOf({ server, client, messages, capabilities }: CallMessages): {
  call?: RepeatableCall
  problem?: string
} {
  const [first, ...others] = messages.filter(({ form }) => form !== 'notification')
  const request = first?.dir === 'in' && first.form === 'request' ? recordIn(first.text) : undefined
  if (!request) return { problem: 'The text of its request is missing or incomplete' }
  const { method, params } = request
  const given = isRecord(params) ? params : {}
  if (typeof method !== 'string' || !REPEATABLE.has(method))
    return { problem: 'Calls of this method cannot be repeated' }
  if ('cursor' in given) return { problem: 'It requests a further page of a list, and cursors expire' }
  if ('task' in given) return { problem: 'It requests a task' }
  const { answers, last, problem } = answersAmong(others)
  const meta = isRecord(given['_meta']) ? given['_meta'] : {}
  const declared = client?.era === 'legacy' ? capabilities : meta[CLIENT_CAPABILITIES]
  const name = given['name'] ?? given['uri']
  const expect = problem === undefined ? expectedIn(last) : problem
  const call: RepeatableCall = {
    name: typeof name === 'string' ? `${method} ${name}`.slice(0, 200) : method,
    server,
    revision: client?.revision ?? NEWEST_MODERN,
    ...(isRecord(declared) && { capabilities: declared }),
    method,
    params: paramsOf(given, meta),
    ...(answers.length > 0 && { answers }),
    ...(typeof expect === 'object' && { expect }),
  }
  return typeof expect === 'string' ? { call, problem: expect } : { call }
}

/** The answers of the client to questions, and the last answer of the bridge, in the messages after a request. */
function answersAmong(messages: readonly ClientMessage[]) {
  const answers: RecordedAnswer[] = []
  const open = new Map<unknown, string>()
  let asked: JsonRecord = {}
  let last: JsonRecord | undefined
  for (const { dir, form, text } of messages) {
    const message = recordIn(text)
    if (!message) return { answers, problem: 'The text of one of its messages is missing or incomplete' }
    const { id, method, params, result } = message
    if (dir === 'out' && form === 'request') open.set(id, String(method))
    else if (dir === 'in' && form === 'request') answers.push(...answersIn(asked, params))
    else if (dir === 'in') {
      const question = open.get(id)
      if (question === undefined) continue
      if (!isRecord(result)) return { answers, problem: 'Its client refused a question of the server' }
      answers.push({ method: question, result })
    } else {
      last = message
      asked = isRecord(result) && isRecord(result['inputRequests']) ? result['inputRequests'] : {}
    }
  }
  return { answers, last }
}

/** The answer of a call, or a sentence: why it is unknown. */
function expectedIn({ result, error }: JsonRecord = {}): Expected | string {
  if (isRecord(error)) return { error }
  if (!isRecord(result)) return 'It has no answer'
  if (result['resultType'] === 'input_required') return 'Its questions were not answered'
  return result['resultType'] === 'task' || isRecord(result['task']) ? 'It became a task' : { result }
}

/** The answers to the questions of a result, which a modern client sends with the request that it repeats. */
function answersIn(asked: JsonRecord, params: unknown): RecordedAnswer[] {
  const responses = isRecord(params) && isRecord(params['inputResponses']) ? params['inputResponses'] : {}
  return Object.entries(asked).flatMap(([key, question]): RecordedAnswer[] => {
    const { [key]: result } = responses
    return isRecord(question) && isRecord(result) ? [{ method: String(question['method']), result }] : []
  })
}

/** The params without the keys that clients set for each request. */
function paramsOf({ _meta, ...params }: JsonRecord, meta: JsonRecord): JsonRecord {
  const rest = Object.entries(meta).filter(([key]) => !OF_REQUESTS.has(key))
  return rest.length === 0 ? params : { ...params, _meta: Object.fromEntries(rest) }
}
