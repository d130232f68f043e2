/**
 * Keeps a subscription with a modern program open. If it ends without a result, because the server has cancelled it or
 * the process has ended, opens it again, and reports everything as changed.
 */
import type { Call, Final, Handler, Told } from '../../protocol/call.js'
import { ACKNOWLEDGED, CHANGING_LISTS, everythingIn } from '../../protocol/subscriptions.js'
import { EMPTY, objectIn, type Payload, value } from '../../rpc/splice.js'
import { backoff, pause } from '../../time/pause.js'

/** Milliseconds between attempts: none before the first one, then doubling. */
const WAIT = { first: 1_000, most: 30_000 }
/** Milliseconds after which to stop opening it again, and after which an open subscription counts as stable. */
const GIVE_UP = 30_000
const STABLE = 30_000
const ENDED: Final = { kind: 'result', result: EMPTY }

/** Thrown by `tell` to end a subscription that reports less than the first one. */
class ReportsLess extends Error {}

/** `listen` sends the `subscriptions/listen` of the call. */
export async function keepListening(call: Call, listen: Handler): Promise<Final> {
  /** The filter that the server accepted at first; undefined before that. */
  let agreed = undefined as Payload | undefined
  let lostSince = 0
  let openSince = undefined as number | undefined
  let reportsLess = false
  const tell = (told: Told) => {
    if (told.method !== ACKNOWLEDGED) return call.tell(told)
    openSince = performance.now()
    const honoured = objectIn(told.params, 'notifications') ?? EMPTY
    if (!agreed) {
      agreed = honoured
      return call.tell(told)
    }
    reportsLess = !covers(honoured, agreed)
    if (reportsLess) throw new ReportsLess()
    return tellMissed(call, agreed)
  }
  for (let failures = 0; ; failures++) {
    openSince = undefined as number | undefined
    try {
      const last = await listen({ ...call, tell })
      return agreed && openSince === undefined ? ENDED : last
    } catch (error) {
      if (reportsLess) return ENDED
      if (!agreed || call.signal.aborted) throw error
    }
    const now = performance.now()
    if (openSince !== undefined) {
      lostSince = now
      if (now - openSince >= STABLE) failures = 0
    } else if (now - lostSince >= GIVE_UP) return ENDED
    await pause(failures === 0 ? 0 : backoff(failures - 1, WAIT), call.signal)
  }
}

/** Whether the server accepts everything that it accepted before. */
function covers(honoured: Payload, agreed: Payload): boolean {
  const lists = CHANGING_LISTS.every(({ filter }) => value(agreed, filter) !== true || value(honoured, filter) === true)
  return (
    lists &&
    ['resourceSubscriptions', 'taskIds'].every((name) => isSubset(textsIn(agreed, name), textsIn(honoured, name)))
  )
}

/** Reports everything in the filter as changed. */
async function tellMissed({ tell }: Call, agreed: Payload): Promise<void> {
  for (const told of everythingIn(agreed)) await tell(told)
}

function textsIn(filter: Payload, name: string): unknown[] {
  const texts = value(filter, name)
  return Array.isArray(texts) ? texts : []
}

function isSubset(some: readonly unknown[], all: readonly unknown[]): boolean {
  const known = new Set(all)
  return some.every((one) => known.has(one))
}
