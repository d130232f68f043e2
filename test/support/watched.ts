/** A bridge whose inspector a test looks at: the calls that its events add up to. */
import type { Test } from 'tap'
import { join } from '../../src/base/rpc/source.js'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { type MessageRow, rowsOf } from '../../src/inspector/rows.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { startBridge } from './bridge.js'
import { eventsIn } from './sights.js'

/** What events add up to. */
export function viewsOf(events: Iterable<RecordedEvent>): Views {
  const views = new Views()
  for (const seen of events) views.add(seen)
  return views
}

/** A ring that keeps what a recorder records, and the whole texts of its events by their number. */
export function ringWithTexts(): { ring: Ring; texts: Map<number, string>; recorder: EventRecorder } {
  const ring = new Ring({ payloads: 'all' })
  const texts = new Map<number, string>()
  const recorder = new EventRecorder((trace, text) => {
    const number = ring.record(trace, text)
    if (text !== undefined) texts.set(number, join(text))
    return number
  })
  return { ring, texts, recorder }
}

/** Starts a bridge in front of one server, and gives what its inspector shows. */
export async function startWatched(t: Test, server: object, settings: object = {}) {
  const ring = new Ring()
  const { url } = await startBridge(t, server, settings, { recorder: new EventRecorder(ring.record) })
  const views = () => viewsOf(eventsIn(ring))
  const calls = () => [...views().calls.values()]
  return { url, ring, views, calls }
}

/**
 * The rows of a call in words: what is on the client's wire, what on the server's, and the counterpart that stands in
 * another row. `in` is towards the bridge.
 */
export function rowsIn(call: CallView): (string | undefined)[][] {
  const words = (message: MessageRow | undefined) => message && `${message.dir} ${message.method ?? message.form}`
  return rowsOf(call).map(({ client, server, elsewhere }) => [
    words(client),
    words(server),
    ...(elsewhere === undefined ? [] : [elsewhere === 'unseen' ? elsewhere : words(elsewhere)]),
  ])
}
