/**
 * Keeps a subscription (`subscriptions/listen`) of a modern client open while what it is served changes: a client on a pipe
 * could not connect again. After each change everything in it is reported as changed.
 */

import { HangUp } from '../../base/time/hang-up.js'
import { unlessAborted } from '../../base/time/time.js'
import { ENDED, OneAcknowledgement } from '../../mcp/listening/keep-open.js'
import type { Call, Final, Handler } from '../../mcp/protocol/call.js'

type Follower = (what: 'moved' | 'over') => void

/** What happens to all subscriptions of a pipe. `over`: they have to end. */
export class PipeChanges {
  readonly #followers = new Set<Follower>()
  #isOver = false

  /** Calls back with each change, until the returned function is called. */
  follow(changed: Follower): () => void {
    this.#followers.add(changed)
    if (this.#isOver) changed('over')
    return () => this.#followers.delete(changed)
  }

  tell(what: 'moved' | 'over'): void {
    this.#isOver ||= what === 'over'
    for (const changed of [...this.#followers]) changed(what)
  }
}

/** `handle` sends a call to what is served now. */
export async function movingSubscription(call: Call, changes: PipeChanges, handle: Handler): Promise<Final> {
  let changed: Follower
  const nextChange = () =>
    new Promise<'moved' | 'over'>((resolve) => {
      changed = resolve
    })
  let change = nextChange()
  const unfollow = changes.follow((what) => changed(what))
  let hasMoved = false
  const client = new OneAcknowledgement(call.notify)
  try {
    for (;;) {
      // Not the call's own signal: the client has not gone.
      const left = new HangUp(call.signal)
      const listening = handle({ ...call, notify: client.notify, signal: left })
      // What is served now may support no subscriptions: the client has subscribed before, and waits for the next change.
      const ending = hasMoved ? listening.then(unlessError, () => undefined) : listening
      const first = (await Promise.race([ending, change])) ?? (await unlessAborted(change, call.signal))
      if (typeof first === 'object') return first
      left.abort()
      listening.catch(() => {})
      if (first === 'over') return ENDED
      hasMoved = true
      // Telling the client may take a while, in which the next change may come.
      change = nextChange()
      await client.missed()
    }
  } finally {
    unfollow()
  }
}

function unlessError(last: Final): Final | undefined {
  return last.kind === 'error' ? undefined : last
}
