/** Scripted servers of a group, and calls of clients. */

import { Fault } from '../../src/base/fault/fault.js'
import { unlimited } from '../../src/base/limits/memory.js'
import type { Log } from '../../src/base/log/events.js'
import { EMPTY, parseObject, value, write } from '../../src/base/rpc/splice.js'
import { HangUp } from '../../src/base/time/hang-up.js'
import type { AskedClient, Call, Final, Handler, Notice, ServerNotification } from '../../src/mcp/protocol/call.js'
import { ACKNOWLEDGED } from '../../src/mcp/protocol/subscriptions.js'
import type { Upstream } from '../../src/mcp/protocol/upstream.js'
import { Group, type GroupOptions } from '../../src/middle/group/group.js'
import type { GroupPlan, Member } from '../../src/middle/group/member.js'

type Json = Record<string, unknown>
/** The answer to a method: a result, or a function that returns the reply. */
type Answer = Json | ((call: Call) => Final | Promise<Final>)

export const resultOf = (result: Json, more: Partial<Final & { kind: 'result' }> = {}): Final => ({
  kind: 'result',
  result: parseObject(JSON.stringify(result)),
  ...more,
})
export const inputOf = (result: Json): Final => ({ kind: 'input', result: parseObject(JSON.stringify(result)) })
export const errorOf = (code: number, message: string, data?: Json): Final => ({
  kind: 'error',
  error: { code, message, data: data && JSON.stringify(data) },
})
export const paramsOf = ({ params }: { params: Call['params'] }): Json => JSON.parse(write(params)) as Json

/** A scripted server. A test may change `answers` at any time. */
export class FakeServer implements Upstream {
  readonly answers: Record<string, Answer>
  /** All calls that it received, in order. */
  readonly calls: Call[] = []
  readonly notices: Notice[] = []
  /** Why it is unreachable. */
  down: Fault | undefined
  connections = 0
  /** Connected clients that it may ask. */
  readonly clients: AskedClient[] = []
  /** Open subscriptions. */
  readonly listening = new Set<Call>()

  constructor(answers: Record<string, Answer> = {}) {
    this.answers = answers
  }

  readonly handle: Handler = async (call) => {
    this.calls.push(call)
    if (this.down) throw this.down
    const answer = this.answers[call.method]
    if (call.method === 'subscriptions/listen' && answer === undefined) return this.#listen(call)
    if (answer === undefined) return errorOf(-32601, 'Method not found')
    return typeof answer === 'function' ? answer(call) : resultOf(answer)
  }

  notify(notice: Notice): undefined {
    this.notices.push(notice)
  }

  legacyRoute(): Promise<'translate'> {
    return Promise.resolve('translate')
  }

  connected(_principal: string, client?: AskedClient): () => void {
    this.connections++
    if (client) this.clients.push(client)
    return () => this.connections--
  }

  /** Sends a notification in all open subscriptions. */
  tell(method: string, params: Json = {}): void {
    for (const call of this.listening)
      call.notify({ kind: 'notification', method, params: parseObject(JSON.stringify(params)) })?.catch(() => {})
  }

  /** Breaks all open subscriptions. */
  breakOff(why: Fault = new Fault('upstreamClosed', 'gone')): void {
    for (const call of [...this.listening]) {
      this.listening.delete(call)
      this.#ends.get(call)?.(why)
    }
  }

  /** The received calls of this method, by their params. */
  got(method: string): Json[] {
    return this.calls.filter((call) => call.method === method).map(paramsOf)
  }

  readonly #ends = new Map<Call, (why: unknown) => void>()

  async #listen(call: Call): Promise<Final> {
    const notifications = value(call.params, 'notifications')
    this.listening.add(call)
    await call.notify({
      kind: 'notification',
      method: ACKNOWLEDGED,
      params: parseObject(JSON.stringify({ notifications })),
    })
    return new Promise((_resolve, reject) => {
      this.#ends.set(call, reject)
      call.signal.addEventListener('abort', () => {
        this.listening.delete(call)
        reject(call.signal.reason as Error)
      })
    })
  }
}

export const named = (...names: string[]) => names.map((name) => ({ name, inputSchema: { type: 'object' } }))

export interface Line {
  event: string
  [field: string]: unknown
}

/** A group of these servers, in this order. */
export function groupOf(
  servers: Readonly<Record<string, FakeServer>>,
  plan: Partial<GroupPlan> = {},
  more: Partial<GroupOptions> = {},
): {
  group: Group
  log: Line[]
  planOf(others: Readonly<Record<string, FakeServer>>, changed?: Partial<GroupPlan>): GroupPlan
} {
  const log: Line[] = []
  const write = (fields: object) => log.push(fields as Line)
  const planOf = (all: Readonly<Record<string, FakeServer>>, changed: Partial<GroupPlan> = {}): GroupPlan => ({
    members: Object.entries(all).map(([server, upstream]) => memberOf(server, upstream)),
    name: 'team',
    title: 'Team',
    instructions: undefined,
    instructionBytes: 10_000,
    bareNames: false,
    bareUris: false,
    wait: { known: 60_000, first: 60_000 },
    required: new Set(),
    search: undefined,
    ...plan,
    ...changed,
  })
  const group = new Group({
    name: 'team',
    plan: planOf(servers),
    keys: [],
    version: '1.2.3',
    memory: unlimited(),
    log: { info: write, warn: write } as unknown as Log,
    ...more,
  })
  return { group, log, planOf }
}

const members = new WeakMap<FakeServer, Member>()
function memberOf(server: string, upstream: FakeServer): Member {
  const known = members.get(upstream) ?? { server, prefix: server, upstream, takesPart: () => true }
  members.set(upstream, known)
  return known
}

/** A call of a client, and the notifications that it got. */
export function callOf(
  method: string,
  params: Json = {},
  more: Partial<Call> = {},
): Call & { told: ServerNotification[]; noted: Json; end: HangUp } {
  const told: ServerNotification[] = []
  const noted: Json = {}
  const end = new HangUp()
  const call: Call = {
    method,
    params: Object.keys(params).length === 0 ? EMPTY : parseObject(JSON.stringify(params)),
    meta: EMPTY,
    progress: false,
    caller: { revision: '2026-07-28', capabilities: '{}' },
    principal: 'alice',
    notify: (one) => {
      told.push(one)
      return undefined
    },
    signal: end,
    abort: (reason) => end.abort(reason),
    log: { note: (fields) => Object.assign(noted, fields), warn() {} },
    ...more,
  }
  return Object.assign(call, { told, noted, end })
}

/** The result of a call; throws if there is none. */
export async function ask(group: Group, method: string, params: Json = {}, more: Partial<Call> = {}): Promise<Json> {
  const reply = await group.handle(callOf(method, params, more))
  if (reply.kind === 'error') throw new Error(`${reply.error.code} ${reply.error.message}`)
  return JSON.parse(write(reply.result)) as Json
}

/** The Fault with which a call fails. */
export async function faultOf(
  group: Group,
  method: string,
  params: Json = {},
  more: Partial<Call> = {},
): Promise<Fault> {
  try {
    await group.handle(callOf(method, params, more))
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error(`${method} did not fail`)
}
