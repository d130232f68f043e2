/** The state of recorded calls: their numbers, and which call continues which. */
import { BoundedMap } from '../../base/limits/bounded.js'
import { MAX_LOGGED_NAME } from '../../base/limits/constants.js'
import { memoize } from '../../base/rpc/memoize.js'
import type { Request } from '../../base/rpc/message.js'
import { detach } from '../../base/rpc/source.js'
import { type Json, keys, objectIn, parseObject, raw, value } from '../../base/rpc/splice.js'
import { CLIENT_INFO } from '../../mcp/protocol/meta.js'
import { CallNumbers } from './call-numbers.js'
import type { RecordEvent } from './events.js'

/** Most remembered calls that wait for answers of their clients. */
const MAX_ASKING = 1_000
/** Characters of a `requestState`, or of the keys of questions, that identify them, together with their length. */
const ENOUGH = 256
/** Most sessions whose clients' names are remembered. */
const MAX_NAMED = 1_000

/** The calls of all clients of a bridge. */
export class Calls {
  readonly record: RecordEvent
  readonly numbers: CallNumbers
  /** Calls that ended with a question, by their `whose` and what the client must send back. */
  readonly #asking = new BoundedMap<string, number>(MAX_ASKING)
  /** The names that clients declare, by session. */
  readonly #names = new BoundedMap<string, string>(MAX_NAMED)

  /** Records at most `callsPerSecond` calls per second. */
  constructor(record: RecordEvent, callsPerSecond: number) {
    this.record = record
    this.numbers = new CallNumbers(callsPerSecond, (count) => {
      const text = `Calls were not recorded, because more than ${callsPerSecond} began within a second`
      record({ kind: 'lost', what: 'calls', text, count })
    })
  }

  /**
   * The name that the client declares: modern clients in the `_meta` of each request, legacy ones once in a session, in
   * `initialize`. `clientInfo` is given if it was read before.
   */
  clientOf(request: Request, session: string | undefined, clientInfo?: Json): string | undefined {
    if (clientInfo !== undefined && session === undefined) return nameIn(clientInfo)
    const { method, params } = request
    if (typeof params === 'string') return session === undefined ? undefined : this.#names.get(session)
    const meta = objectIn(params, '_meta')
    const info = (meta && raw(meta, CLIENT_INFO)) ?? (method === 'initialize' ? raw(params, 'clientInfo') : undefined)
    const name = info === undefined ? undefined : nameIn(info)
    if (session === undefined) return name
    if (method !== 'initialize' || name === undefined) return name ?? this.#names.get(session)
    this.#names.set(session, name)
    return name
  }

  /** Notes that a call was answered with a question. `whose` identifies server, principal, method and name. */
  asks(call: number, whose: string, round: Round): void {
    const key = keyOf(whose, round)
    if (key !== undefined) this.#asking.set(key, call)
  }

  /** The call that a call with these answers continues; undefined if unknown. */
  continued(whose: string, round: Round): number | undefined {
    const key = keyOf(whose, round)
    return key === undefined ? undefined : this.#asking.get(key)
  }
}

/** The key that links a round of questions to its answers: the state, or else the keys of the questions. */
interface Round {
  state: Json | undefined
  /** An object with a member for each question, or each answer. */
  entries: Json | undefined
}

/** The name in a clientInfo. */
const nameIn = memoize((info): string | undefined => {
  try {
    const name = value(parseObject(info), 'name')
    return typeof name === 'string' ? detach(name.slice(0, MAX_LOGGED_NAME)) : undefined
  } catch {
    return undefined
  }
})

function keyOf(whose: string, { state, entries }: Round): string | undefined {
  const what = state ?? (entries === undefined ? undefined : keysIn(entries))
  return what === undefined ? undefined : detach(`${whose} ${what.length} ${what.slice(-ENOUGH)}`)
}

function keysIn(entries: Json): string | undefined {
  try {
    return JSON.stringify(keys(parseObject(entries)).sort())
  } catch {
    return undefined
  }
}
