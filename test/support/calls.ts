/** Calls as policies see them, and a server that a test plays behind them. */

import { parseObject, write } from '../../src/base/rpc/splice.js'
import {
  type Call,
  type CallLog,
  type Final,
  type Handler,
  ignoreNotifications,
  type Notify,
  type Policy,
  type Reply,
} from '../../src/mcp/protocol/call.js'

/** What a test says of a call; the rest is as in most of them. */
export type Changes = Omit<Partial<Call>, 'params' | 'meta' | 'caller'> & {
  params?: object | string
  meta?: object
  caller?: Partial<Call['caller']>
}

export type Outcome =
  | { kind: 'result'; result: Record<string, unknown> & { _meta?: Record<string, unknown> } }
  | { kind: 'input'; result: object }
  | { kind: 'error'; code: number; message: string; data: unknown }

export const payload = (value: object | string) =>
  parseObject(typeof value === 'string' ? value : JSON.stringify(value))

export const result = (value: object | string): Final => ({ kind: 'result', result: payload(value) })

export function callOf({ params = {}, meta = {}, caller, notify = ignoreNotifications, ...changes }: Changes): Call {
  const controller = new AbortController()
  const log: CallLog = { note() {}, warn() {} }
  return {
    method: 'tools/list',
    params: payload(params),
    meta: payload(meta),
    progress: false,
    caller: { revision: '2026-07-28', capabilities: '{}', ...caller },
    principal: 'alice',
    notify,
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    log,
    ...changes,
  }
}

export const toolCall = (name: string, changes: Changes = {}): Call =>
  callOf({ method: 'tools/call', params: { name, arguments: {} }, ...changes })

/** A server that notes what it has seen. */
export class Played {
  readonly seen: Call[] = []
  answer: (call: Call) => Reply | Reply[] | Promise<Reply | Reply[]>

  constructor(answer: Played['answer']) {
    this.answer = answer
  }

  readonly handle: Handler = async (call) => {
    this.seen.push(call)
    const replies = await this.answer(call)
    return answerFrom(Array.isArray(replies) ? replies : [replies], call.notify)
  }

  get methods(): string[] {
    return this.seen.map(({ method }) => method)
  }

  /** The tools that were called. */
  get called(): unknown[] {
    const calls = this.seen.filter(({ method }) => method === 'tools/call')
    return calls.map(({ params }) => (JSON.parse(write(params)) as { name: unknown }).name)
  }
}

/** Tells the notifications of a scripted server, and gives its answer. */
export async function answerFrom(replies: AsyncIterable<Reply> | Iterable<Reply>, notify: Notify): Promise<Final> {
  for await (const reply of replies) {
    if (reply.kind !== 'notification') return reply
    await notify(reply)
  }
  throw new Error('There is no answer')
}

/** What is told during a call, and its answer. */
export async function repliesOf(policy: Policy, handler: Handler, call: Call): Promise<Reply[]> {
  const told: Reply[] = []
  const notify: Notify = (one) => {
    told.push(one)
    return undefined
  }
  const last = await policy(handler)({ ...call, notify })
  return [...told, last]
}

/** What a call ends with. */
export async function outcomeOf(policy: Policy, handler: Handler, call: Call): Promise<Outcome> {
  const last = (await repliesOf(policy, handler, call)).at(-1)
  if (last?.kind === 'result')
    return { kind: 'result', result: JSON.parse(write(last.result)) as Record<string, unknown> }
  if (last?.kind === 'input') return { kind: 'input', result: JSON.parse(write(last.result)) as object }
  if (last?.kind !== 'error') throw new TypeError('A call ends with a result or an error')
  const { code, message, data } = last.error
  return { kind: 'error', code, message, data: data === undefined ? undefined : JSON.parse(data) }
}
