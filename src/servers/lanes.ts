/**
 * Keeps the way to a server free. A server writes one answer after the other, so a call waits for the answers to all calls that were
 * sent before it. The calls of one principal to one tool, prompt or method are a *lane*: it has few calls at the server until their
 * answers are known to be small, and one while they are very large. Its other calls wait here, and not at the server: calls with
 * large answers also while the principal's clients do not read their answers.
 *
 * Any answer shows that the server is free of what was sent before the call that it answers. If calls wait and nothing comes, the
 * server is asked something small.
 */
import { BoundedMap } from '../base/limits/bounded.js'
import type { Memory } from '../base/limits/memory.js'
import { Recent } from '../base/rpc/memoize.js'
import { detach } from '../base/rpc/source.js'
import {
  type AskServer,
  FIRST,
  FIRST_ALONE,
  type Go,
  grow,
  hasRoom,
  keyOf,
  type Lane,
  type LaneCall,
  type LaneName,
  learn,
  mayGrow,
  nameIn,
  newLane,
  nextIn,
  ROOM,
  type Turn,
} from './lane.js'

/** Milliseconds of silence after which the server is asked something. */
const SILENCE = 250
/** Milliseconds after which one more call of a lane is sent all the same: without an answer, and while earlier answers are not read. */
const PATIENCE = 10_000
const READING = 1_000
/** Milliseconds that the server has to answer when it is asked. */
export const ASK_WITHIN = 60_000
/** Milliseconds for which a lane counts as a neighbour after a call, and the lanes that are remembered for that. */
const NEIGHBOUR = 10_000
const MAX_RECENT = 4
/** Most lanes that are remembered, in each generation. */
const MAX_LANES = 500

export class Lanes {
  /** Calls at the server, and calls that wait. */
  calls = 0
  /** The only call at the server, as most are. It has no turn. */
  lone: LaneCall | undefined
  /** The lane of the last call that was alone. */
  last: LaneName = { principal: '', method: undefined, name: undefined }
  readonly #lanes = new Recent<Lane>({ max: MAX_LANES })
  /** When lanes had their last calls, by their keys: the latest is the last one. */
  readonly #recent = new BoundedMap<string, number>(MAX_RECENT)
  readonly #waiting = new Set<Lane>()
  /** Calls that may hold up the server, in the order in which they were sent. */
  readonly #blocking = new Set<Turn>()
  /** When the server has answered, or got a call. */
  #active = 0
  /** The server has been asked something and has not answered. */
  #asks = false
  #timer: NodeJS.Timeout | undefined
  readonly #memory: Memory

  /** `memory` is where answers are kept until their clients have read them. */
  constructor(memory: Memory) {
    this.#memory = memory
  }

  /**
   * Takes a place for a call beside others. Returns whether it can be sent now; otherwise calls `go` when it can be sent.
   */
  enter(call: LaneCall, go: Go, ask: AskServer): boolean {
    const { lone } = this
    this.lone = undefined
    if (lone) this.#send(this.#turnOf(lone))
    const turn = this.#turnOf(call)
    const { lane } = turn
    lane.waiting.push(turn)
    if (nextIn(lane) === turn && this.#maySend(turn)) {
      lane.waiting.pop()
      this.#send(turn)
      return true
    }
    turn.waits = { go, ask }
    this.#waiting.add(lane)
    this.#timer ??= setInterval(this.#look, SILENCE).unref()
    return false
  }

  /** Notes the lane of a call that is alone, if it is not that of the last one. */
  isAlone({ principal, method, name }: LaneName): void {
    if (this.last.method !== undefined) this.#recent.set(keyOf(this.last), performance.now())
    this.last = { principal, method: detach(method), name: detach(name) }
    this.#recent.set(keyOf(this.last), performance.now())
  }

  /** Ends a call. `bytes` is the length of its answer; undefined without an answer. */
  leave(turn: Turn, bytes: number | undefined): void {
    const { lane } = turn
    if (turn.hasEnded) return
    if (turn.waits) {
      turn.hasEnded = true
      turn.waits = undefined
      lane.waiting.splice(lane.waiting.indexOf(turn), 1)
      if (lane.waiting.length === 0) this.#over(lane)
      return
    }
    const isBlocking = this.#blocking.has(turn)
    if (bytes !== undefined) {
      this.#active = performance.now()
      lane.activeAt = this.#active
      learn(lane, bytes)
      if (isBlocking) this.#freeUpTo(turn)
    }
    if (bytes !== undefined || !isBlocking) lane.open--
    turn.hasEnded = true
    this.#sendNext()
  }

  #turnOf(call: LaneCall): Turn {
    const { principal, method, name = nameIn(call.call?.params) } = call
    const key = keyOf({ principal, method, name })
    let lane = this.#lanes.get(key)
    if (!lane) {
      lane = newLane(key, principal, this.#hasNeighbours(key) ? FIRST : FIRST_ALONE)
      this.#lanes.set(key, lane)
    }
    this.#recent.set(lane.key, performance.now())
    const client = call.client ?? call.call?.client ?? call.call?.caller.clientInfo
    call.turn = { lane, client, waits: undefined, hasEnded: false }
    return call.turn
  }

  #send(turn: Turn): void {
    const { lane, client } = turn
    lane.open++
    lane.blocking++
    lane.client = client
    this.#blocking.add(turn)
    this.#active = performance.now()
    lane.activeAt = this.#active
  }

  #hasNeighbours(key: string): boolean {
    const since = performance.now() - NEIGHBOUR
    return [...this.#recent].some(([other, at]) => other !== key && at >= since)
  }

  #maySend({ lane, client }: Turn): boolean {
    const { large, principal } = lane
    if (!hasRoom(lane) || !this.#hasRoomFor(large)) return false
    // Another client may want a small answer, or read faster.
    return large === 0 || client !== lane.client || this.#memory.hasRoom(principal, large)
  }

  /** Whether an answer of this length has room beside other large ones that hold up the server. */
  #hasRoomFor(large: number): boolean {
    if (large === 0) return true
    let bytes = 0
    for (const { lane } of this.#blocking) bytes += lane.large
    return bytes === 0 || bytes + large <= ROOM
  }

  /** Notes that calls up to this one, which holds up the server, do not hold it up. */
  #freeUpTo(last: Turn): void {
    for (const turn of this.#blocking) {
      this.#blocking.delete(turn)
      const { lane } = turn
      lane.blocking--
      if (turn.hasEnded) lane.open--
      if (turn === last) return
    }
  }

  #sendNext(): void {
    for (let isOver = false; !isOver; ) {
      isOver = true
      for (const lane of [...this.#waiting]) {
        const next = nextIn(lane)
        if (!next || !this.#maySend(next)) continue
        this.#sendWaiting(next)
        isOver = false
        // The lane that has had a turn is the last one in the next round.
        if (this.#waiting.delete(lane)) this.#waiting.add(lane)
      }
    }
  }

  #sendWaiting(turn: Turn): void {
    const { lane, waits } = turn
    if (!waits) return
    lane.waiting.splice(lane.waiting.indexOf(turn), 1)
    if (lane.waiting.length === 0) this.#over(lane)
    turn.waits = undefined
    this.#send(turn)
    waits.go()
  }

  /** Notes that no call of a lane waits any more. */
  #over(lane: Lane): void {
    this.#waiting.delete(lane)
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Looks whether the server is free while calls wait. */
  readonly #look = (): void => {
    const now = performance.now()
    for (const lane of [...this.#waiting]) {
      const next = nextIn(lane)
      if (next && now - lane.activeAt >= (hasRoom(lane) ? READING : PATIENCE)) this.#sendWaiting(next)
    }
    // Clients may have read their answers.
    this.#sendNext()
    if (this.#asks || now - this.#active < SILENCE) return
    for (const lane of this.#waiting)
      if (mayGrow(lane, now) || (hasRoom(lane) && !this.#hasRoomFor(lane.large))) return this.#ask(lane)
  }

  /** Asks the server something. Its answer shows that the calls before do not hold it up. */
  #ask({ waiting: [next] }: Lane): void {
    if (!next?.waits) return
    this.#asks = true
    const last = [...this.#blocking].at(-1)
    const answered = () => {
      this.#asks = false
      const now = performance.now()
      this.#active = now
      if (last && this.#blocking.has(last)) this.#freeUpTo(last)
      for (const lane of this.#waiting) if (mayGrow(lane, now)) grow(lane)
      this.#sendNext()
    }
    next.waits.ask().then(answered, answered)
  }
}
