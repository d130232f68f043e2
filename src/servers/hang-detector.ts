/**
 * Detects programs that may hang, and HTTP+SSE streams that may be dead: several calls in a row were cancelled, and no
 * message has arrived since they were sent.
 */
import { type Exchange, TIMED_OUT } from './exchange.js'
import type { Channel } from './transport/channel.js'

interface Limits {
  /** Number of such calls in a row after which the server should be tested. */
  calls: number
  /** A call that its client cancelled counts if it ran for this many milliseconds and no other call is open. */
  patience: number
  /** Milliseconds that the server has to answer the test. */
  answer: number
}

/** A program that fails the test is killed. A dead stream is reopened, which costs less. */
const LIMITS: Readonly<Partial<Record<Channel['transport'], Limits>>> = {
  stdio: { calls: 2, patience: 30_000, answer: 10_000 },
  // A connection can be dead without a FIN: the machine slept, or a load balancer has dropped it.
  sse: { calls: 1, patience: 2_000, answer: 5_000 },
}

export class HangDetector {
  readonly #limits: Limits | undefined
  /** Calls cancelled in a row, without a message since they were sent. */
  #inARow = 0
  /** Functions that send the requests that wait while the server is tested. Undefined without a test. */
  held: (() => void)[] | undefined
  /** The number of received messages when the last of them was cancelled. */
  #received = 0

  constructor(transport: Channel['transport']) {
    this.#limits = LIMITS[transport]
  }

  /**
   * Notes that a call was cancelled. Returns whether to test if the server still answers. `received`: the number of
   * messages received so far. `alone`: no other call is open with which the server may be busy.
   */
  cancelled({ sentAt, receivedBefore }: Exchange, reason: string, received: number, alone: boolean): boolean {
    if (!this.#limits || receivedBefore !== received) return false
    if (received !== this.#received) this.#inARow = 0
    this.#received = received
    const { calls, patience } = this.#limits
    const counts = reason === TIMED_OUT || (alone && performance.now() - sentAt >= patience)
    return counts && ++this.#inARow >= calls
  }

  /**
   * Tests whether the server still answers: `ask` asks it, and `received` is the number of messages received so far. Calls `hangs`
   * with what it has not answered if no message of any kind arrives. Requests wait for the result, so that they are not lost on a
   * dead channel.
   */
  async test(
    ask: (within: number) => Promise<unknown>,
    received: () => number,
    hangs: (calls: string) => void,
  ): Promise<void> {
    if (this.held) return
    const before = received()
    const calls = this.#inARow === 1 ? 'the last call' : `${this.#inARow} calls in a row`
    const asking = ask(this.#limits?.answer ?? Number.POSITIVE_INFINITY)
    this.held = []
    await asking.catch(() => {})
    if (received() === before) hangs(calls)
    const { held } = this
    this.held = undefined
    for (const send of held ?? []) send()
  }
}
