/** A lane: the calls of one principal to one tool, prompt or method, and how many of them may be at the server. */

import { MAX_KEY } from '../base/rpc/memoize.js'
import type { Params } from '../base/rpc/message.js'
import { detach } from '../base/rpc/source.js'
import { value } from '../base/rpc/splice.js'
import type { Call } from '../mcp/protocol/call.js'
import { methodTraits } from '../mcp/protocol/methods.js'

export interface LaneName {
  readonly principal: string
  readonly method: string | undefined
  /** The tool or prompt, for methods that have one. */
  readonly name?: string | undefined
}

/** A call at a server, or one that waits to be sent. */
export interface LaneCall extends LaneName {
  /** Has the name and the client; undefined if they are given, or if there are none. */
  readonly call?: Pick<Call, 'params' | 'caller' | 'client'> | undefined
  /** Tells clients of one principal apart. */
  readonly client?: Client | undefined
  /** Its turn in a lane; undefined if it is alone at the server. */
  turn: Turn | undefined
}

/** A legacy client with a session; of others, what they call themselves. */
type Client = object | string

export type Go = () => void
/** Asks the server something small. Resolves when it has answered. */
export type AskServer = () => Promise<unknown>

export interface Turn {
  readonly lane: Lane
  readonly client: Client | undefined
  /** Set while it waits. */
  waits: { go: Go; ask: AskServer } | undefined
  /** Its call has ended without an answer: the server may still be busy with it. */
  hasEnded: boolean
}

export interface Lane {
  readonly key: string
  readonly principal: string
  readonly waiting: Turn[]
  /** Calls at the server, and those of them that may hold it up. */
  open: number
  blocking: number
  /** Most calls of each kind. */
  mostOpen: number
  mostBlocking: number
  /** The bytes of its last answer, if that was large; else 0. */
  large: number
  /** When a call was sent or answered last, and the client of the last one that was sent. */
  activeAt: number
  client: Client | undefined
}

/** Bytes from which an answer is large, and bytes of large answers that a server may have to send. */
const LARGE = 64 * 1024
export const ROOM = 8 * 1024 * 1024
/** Most calls at the server: of a lane of which nothing is known, and of any. */
const UNPROVEN = 8
const PROVEN = 1_024
/** Most of them that may hold it up, in a lane of which nothing is known: if others have called lately, and if nobody has. */
export const FIRST = 1
export const FIRST_ALONE = 6
/** Milliseconds without an answer in a lane after which it may have one more call if the server answers others: its answers may take long. */
const SLOW = 1_000
/** Characters of a name that count. */
const MAX_LANE_NAME = 200

export function newLane(key: string, principal: string, mostBlocking: number): Lane {
  const start = { open: 0, blocking: 0, mostOpen: UNPROVEN, large: 0, activeAt: 0, client: undefined }
  return { ...start, key: detach(key), principal: detach(principal), waiting: [], mostBlocking }
}

export function hasRoom({ open, blocking, mostOpen, mostBlocking }: Lane): boolean {
  return open < mostOpen && blocking < mostBlocking
}

/** The call that is sent next: of another client than the last one, if there is one. */
export function nextIn({ waiting, client }: Lane): Turn | undefined {
  return waiting.find((turn) => turn.client !== client) ?? waiting[0]
}

/** Whether a lane may have more calls at the server if the server turns out to be free. */
export function mayGrow({ large, open, mostOpen, activeAt }: Lane, now: number): boolean {
  return large === 0 && (open < mostOpen || now - activeAt >= SLOW)
}

/** Notes that the server is free although calls of the lane are open. */
export function grow(lane: Lane): void {
  if (lane.open >= lane.mostOpen) lane.mostOpen++
  lane.mostBlocking = Math.min(2 * lane.mostBlocking, lane.mostOpen)
}

function isLarge(bytes: number): boolean {
  return bytes > LARGE
}

/** How many large answers of this length a server may have to send. */
function mostOf(bytes: number): number {
  return Math.max(1, Math.floor(ROOM / bytes))
}

export function learn(lane: Lane, bytes: number): void {
  lane.large = isLarge(bytes) ? bytes : 0
  if (lane.large > 0) {
    lane.mostOpen = mostOf(bytes)
    lane.mostBlocking = lane.mostOpen
    return
  }
  // A lane in which no call waits shows nothing about many at once.
  if (lane.waiting.length === 0) return
  lane.mostOpen = Math.min(2 * lane.mostOpen, PROVEN)
  lane.mostBlocking = Math.min(2 * lane.mostBlocking, PROVEN)
}

/** Notes how long an answer is that is still arriving: at least so long. */
export function learnArriving(lane: Lane, bytes: number): void {
  if (!isLarge(bytes) || bytes <= lane.large) return
  lane.large = bytes
  lane.mostOpen = Math.min(lane.mostOpen, mostOf(bytes))
  lane.mostBlocking = Math.min(lane.mostBlocking, lane.mostOpen)
}

/** The name of the tool or prompt. Names alone make lanes, because there may be any number of URIs and tasks. */
export function nameIn(params: Params | undefined): string | undefined {
  const name = typeof params === 'object' ? value(params, 'name') : undefined
  return typeof name === 'string' ? name : undefined
}

/** What the lane of a call is called. */
export function keyOf({ principal, method = '', name = '' }: LaneName): string {
  const of = methodTraits(method).named === 'name' ? name.slice(0, MAX_LANE_NAME) : ''
  return `${principal} ${method.slice(0, MAX_LANE_NAME)} ${of}`.slice(0, MAX_KEY)
}
