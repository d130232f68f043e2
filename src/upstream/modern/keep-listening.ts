/**
 * Keeps a subscription with a modern program open. If it ends without a result, because the server has cancelled it or
 * the process has ended, it is opened again, and everything is reported to the client as changed.
 */
import type { Call, Reply } from '../../protocol/call.js'
import { ACKNOWLEDGED, CHANGING_LISTS, UPDATED } from '../../protocol/subscriptions.js'
import { EMPTY, edit, objectIn, type Payload, value } from '../../rpc/splice.js'
import { backoff, pause } from '../../time.js'

/** Milliseconds between attempts: none before the first one, then doubling. */
const WAIT = { first: 1_000, most: 30_000 }
/** Milliseconds after which attempts to open it again end, and after which an open one counts as stable. */
const GIVE_UP = 30_000
const STABLE = 30_000
const ENDED: Reply = { kind: 'result', result: EMPTY }

/** `open` sends the `subscriptions/listen` of the call. */
export async function* keepListening(call: Call, open: () => AsyncIterable<Reply>): AsyncGenerator<Reply, void> {
  /** The filter that the server accepted at first; undefined before that. */
  let agreed: Payload | undefined
  let lostSince = 0
  for (let failures = 0; ; failures++) {
    let openSince: number | undefined
    try {
      for await (const reply of open()) {
        if (reply.kind !== 'notification') {
          yield agreed && openSince === undefined ? ENDED : reply
          return
        }
        if (reply.method !== ACKNOWLEDGED) {
          yield reply
          continue
        }
        openSince = performance.now()
        const honoured = objectIn(reply.params, 'notifications') ?? EMPTY
        if (!agreed) yield reply
        else if (covers(honoured, agreed)) yield* missed(agreed)
        else {
          yield ENDED
          return
        }
        agreed ??= honoured
      }
    } catch (error) {
      if (!agreed || call.signal.aborted) throw error
    }
    const now = performance.now()
    if (openSince !== undefined) {
      lostSince = now
      if (now - openSince >= STABLE) failures = 0
    } else if (now - lostSince >= GIVE_UP) {
      yield ENDED
      return
    }
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

/** Notifications that report everything in the filter as changed. */
function* missed(agreed: Payload): Generator<Reply> {
  for (const { filter, method } of CHANGING_LISTS)
    if (value(agreed, filter) === true) yield { kind: 'notification', method, params: EMPTY }
  for (const uri of textsIn(agreed, 'resourceSubscriptions'))
    yield { kind: 'notification', method: UPDATED, params: edit(EMPTY, { uri: JSON.stringify(uri) }) }
}

function textsIn(filter: Payload, name: string): unknown[] {
  const texts = value(filter, name)
  return Array.isArray(texts) ? texts : []
}

function isSubset(some: readonly unknown[], all: readonly unknown[]): boolean {
  const known = new Set(all)
  return some.every((one) => known.has(one))
}
