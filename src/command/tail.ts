/** Runs `mcp-bridge tail`: follows the inspector of a running bridge, and prints a line for each call. */
import type { IncomingMessage } from 'node:http'
import type { Writable } from 'node:stream'
import { painterFor } from '../base/log/paint.js'
import { SseDecoder } from '../base/rpc/sse.js'
import { printable, printableJson } from '../base/texts/printable.js'
import type { CopyFormName } from '../config/copy-forms.js'
import { eventIn } from '../inspector/event.js'
import { readFilter } from '../inspector/filter.js'
import type { RecordedEvent } from '../inspector/recorder/events.js'
import { Views } from '../inspector/views.js'
import { shown } from '../inspector/words.js'
import { connect, type Environment, type InspectorTarget, refusalOf, unreachable } from './tail-connection.js'
import { MatchingEvents } from './tail-events.js'
import { adviceFor, copyOf, lineOf, messageIn, otherLine, Sides } from './tail-lines.js'
import { targetOf, type WantedBridge } from './tail-target.js'
import { UsageError } from './usage-error.js'

export interface TailOptions extends WantedBridge {
  filter: string
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
  env: Environment
}

/** Follows a bridge until it ends or the output is closed. Resolves to whether it could be followed. Throws a UsageError. */
export async function tail(options: TailOptions, { stdout, err, env }: TailOutput): Promise<boolean> {
  const filter = readFilter(options.filter)
  const { matches, isEmpty, problem, hint } = filter
  if (problem !== undefined) throw new UsageError(`the filter is wrong: ${problem}`, 'tail')
  if (filter.isByText)
    throw new UsageError('text: works only on the page of the inspector: tail does not search texts', 'tail')
  if (hint !== undefined) err(`mcp-bridge tail: ${printable(hint, 400)}\n`)
  const target = await targetOf(options)
  let response: IncomingMessage
  try {
    response = await connect(target, options.json || options.both || options.as !== undefined, env)
  } catch (error) {
    err(`mcp-bridge tail: ${unreachable(target, error)}\n`)
    return false
  }
  const status = response.statusCode ?? 0
  if (status !== 200) {
    response.destroy()
    err(`mcp-bridge tail: ${refusalOf(status, target)}\n`)
    return false
  }
  const paint = painterFor(stdout, env)
  if (stdout.isTTY === true && !options.json) stdout.write(paint('dim', greeting(target)))
  const views = new Views()
  const sides = new Sides(paint)
  const matching = new MatchingEvents(filter)
  let lost = 0
  const told = (given: RecordedEvent) => {
    const seen = options.json ? given : withNeededText(given, options.as !== undefined)
    views.add(seen)
    if (views.lost > lost) err(`mcp-bridge tail: ${views.lost - lost} events are missing here\n`)
    lost = views.lost
    const call = seen.call === undefined ? undefined : views.call(seen.call)
    if (options.json) {
      for (const one of matching.of(seen, call)) stdout.write(`${printableJson(JSON.stringify(one))}\n`)
    } else if (options.as !== undefined) {
      if (!call || seen.kind !== 'call' || seen.what !== 'ended' || seen.outcome === 'asks' || !matches(call)) return
      const text = copyOf(call, options.as)
      if (text === undefined)
        err(`mcp-bridge tail: ${shown(call.id)} cannot be printed in this form, or its texts are not kept\n`)
      else stdout.write(`${text}\n`)
    } else if (call && seen.kind === 'call' && seen.what === 'ended' && matches(call)) {
      stdout.write(lineOf(call, paint))
      if (options.both) stdout.write(`${adviceFor(call)}${messageIn(call)}${sides.of(call)}`)
    } else if (isEmpty) stdout.write(otherLine(seen, paint))
  }
  const decoder = new SseDecoder()
  for await (const chunk of untilItEnds(response))
    for (const { event, data } of decoder.push(chunk)) {
      if (event === 'message') {
        const seen = eventIn(Buffer.concat(data).toString())
        if (seen) told(seen)
        else err('mcp-bridge tail: skipped an event that this version of mcp-bridge does not know\n')
      }
      if (event === 'hello') views.first = firstIn(Buffer.concat(data).toString())
      if (event === 'dropped') err('mcp-bridge tail: this terminal reads too slowly, and was disconnected\n')
    }
  err('mcp-bridge tail: the bridge has ended the connection\n')
  return true
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

function greeting({ url, socketPath }: InspectorTarget): string {
  return `Following ${socketPath ?? url.origin}: a line for each call that has ended or ends. M is the modern era, L the legacy era. Press Ctrl-C to stop.\n`
}
