/** Prints the events that a bridge sends to `mcp-bridge tail`: a line for each call, or all as JSON. */
import type { IncomingMessage } from 'node:http'
import type { Writable } from 'node:stream'
import { painterFor } from '../../base/log/paint.js'
import { SseDecoder } from '../../base/rpc/sse.js'
import { printableJson } from '../../base/texts/printable.js'
import type { CopyFormName } from '../../config/copy-forms.js'
import { eventIn } from '../event.js'
import type { CallFilter } from '../filter.js'
import { isRunning } from '../phases.js'
import type { RecordedEvent } from '../recorder/events.js'
import { type CallView, Views } from '../views.js'
import { shown } from '../words.js'
import { adviceFor, copyOf, lineOf, messageIn, otherLine, Sides } from './lines.js'

export interface PrintedForm {
  json: boolean
  both: boolean
  /** Prints each call in this form. */
  as?: CopyFormName | undefined
}

/** The destination of lines. */
export interface TailOutput {
  stdout: Writable & { isTTY?: boolean }
  /** Prints messages for people. */
  err(text: string): void
  env: Readonly<Record<string, string | undefined>>
}

/** Prints the events of an answer until it ends. `filter` is valid. */
export async function printEvents(
  response: IncomingMessage,
  filter: CallFilter,
  { json, both, as }: PrintedForm,
  { stdout, err: say, env }: TailOutput,
): Promise<void> {
  const err = (text: string) => say(`mcp-bridge tail: ${text}\n`)
  const { matches, isEmpty } = filter
  const paint = painterFor(stdout, env)
  const views = new Views()
  const sides = new Sides(paint)
  const matching = new MatchingEvents(filter)
  let lost = 0
  const told = (given: RecordedEvent) => {
    const seen = json ? given : withNeededText(given, as !== undefined)
    views.add(seen)
    if (views.lost > lost) err(`${views.lost - lost} events are missing here`)
    lost = views.lost
    const call = seen.call === undefined ? undefined : views.call(seen.call)
    const isEnd = seen.kind === 'call' && seen.what === 'ended'
    if (json) {
      for (const one of matching.of(seen, call)) stdout.write(`${printableJson(JSON.stringify(one))}\n`)
    } else if (as !== undefined) {
      if (!call || !isEnd || seen.outcome === 'asks' || !matches(call)) return
      const text = copyOf(call, as)
      if (text === undefined) err(`${shown(call.id)} cannot be printed in this form, or its texts are not kept`)
      else stdout.write(`${text}\n`)
    } else if (call && isEnd && matches(call)) {
      stdout.write(lineOf(call, paint))
      if (both) stdout.write(`${adviceFor(call)}${messageIn(call)}${sides.of(call)}`)
    } else if (isEmpty) stdout.write(otherLine(seen, paint))
  }
  const decoder = new SseDecoder()
  for await (const chunk of untilItEnds(response))
    for (const { event, data } of decoder.push(chunk)) {
      const text = Buffer.concat(data).toString()
      if (event === 'message') {
        const seen = eventIn(text)
        if (seen) told(seen)
        else err('skipped an event that this version of mcp-bridge does not know')
      }
      if (event === 'hello') views.first = firstIn(text)
      if (event === 'dropped') err('this terminal reads too slowly, and was disconnected')
    }
  err('the bridge has ended the connection')
}

/** The number of the event from which on a bridge has all. Older bridges do not say it: they have no earlier ones. */
function firstIn(hello: string): number {
  const { first } = JSON.parse(hello) as { first?: unknown }
  return typeof first === 'number' ? first : 0
}

/** An event, with its text only if needed: the text of an answer to the client has its error message. A copy needs those of its client. */
function withNeededText(seen: RecordedEvent, isCopied: boolean): RecordedEvent {
  if (seen.kind !== 'message' || (seen.hop === 'client' && (isCopied || seen.dir === 'out'))) return seen
  return { ...seen, payload: undefined }
}

/** The chunks of an answer until it ends or breaks off. Errors in handling a chunk are not caught. */
async function* untilItEnds(response: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    yield* response
  } catch {
    // The bridge was killed.
  }
}

/** Selects the events of matching calls, including calls that match late. */
class MatchingEvents {
  readonly #filter: CallFilter
  /** The number of the last printed event of a call. */
  readonly #printed = new WeakMap<CallView, number>()

  constructor(filter: CallFilter) {
    this.#filter = filter
  }

  /** The events to print after this one. Until a call matches, its view keeps its events. */
  of(seen: RecordedEvent, call: CallView | undefined): RecordedEvent[] {
    const { matches, isEmpty, isByEnd } = this.#filter
    if (isEmpty) return [seen]
    if (!call || (isByEnd && isRunning(call)) || !matches(call)) return []
    const printed = this.#printed.get(call) ?? 0
    this.#printed.set(call, seen.seq)
    const earlier = call.events.filter(({ seq }) => seq > printed && seq < seen.seq)
    return [...earlier, seen]
  }
}
