/** Formats calls and other events as lines of `mcp-bridge tail`. */

import type { Colour, Paint } from '../../base/log/paint.js'
import { printableJson } from '../../base/texts/printable.js'
import type { CopyFormName } from '../../config/copy-forms.js'
import { adviceOn } from '../advice.js'
import { errorMessage } from '../call-failure.js'
import { plainOf } from '../markdown.js'
import { type Change, isMessage, type RecordedEvent } from '../recorder/events.js'
import { COPY_FORMS } from '../replay/copies.js'
import { httpStatus, type MessageRow, rowsOf } from '../rows.js'
import type { CallView } from '../views.js'
import {
  brief,
  briefServer,
  clock,
  duration,
  lossOf,
  pathOf,
  ruleAddress,
  ruleWords,
  shown,
  shownInLine,
  statusOf,
  whereOf,
} from '../words.js'

/** Most characters of the message of an error. */
const MESSAGE = 1_000

/** A call in one line. */
export function lineOf(call: CallView, paint: Paint): string {
  const { sign, words } = statusOf(call)
  const colour =
    call.status === 'ok' ? 'green' : call.status === 'asks' || call.status === 'cancelled' ? 'yellow' : 'red'
  const why = call.why ?? call.fault
  const parts = [
    paint('dim', clock(call.at)),
    paint(colour, `${sign} ${words}`),
    `${shown(call.method)} ${paint('bold', shown(call.name))}`.trim(),
    whereOf(call),
    `${brief(call.client)} → ${briefServer(call)}`,
    duration(call.ms),
    ...refusedWith(call),
    ...(why === undefined ? [] : [paint(colour, shown(why, 200))]),
    ...(call.blame === undefined ? [] : [`blame: ${shown(call.blame)}`]),
    paint('dim', shown(call.id)),
  ]
  return lineWith(parts)
}

/** The HTTP status of the last answer to the client, unless it is 200. */
function refusedWith(call: CallView): string[] {
  const answers = call.events.filter((seen) => isMessage(seen, 'client', 'out'))
  const status = answers.flatMap((answer) => httpStatus(answer, call) ?? []).at(-1) ?? 200
  return status === 200 ? [] : [`HTTP ${status}`]
}

/** Advice about a failed call, under its line. */
export function adviceFor({ status: outcome, fault, why: message }: CallView): string {
  const advice = adviceOn({ outcome, fault, message })
  return advice ? `    ${plainOf(advice.what)} What to do: ${plainOf(advice.next)}\n` : ''
}

/** The error message of a call, under its line, if known. */
export function messageIn(call: CallView): string {
  const message = errorMessage(call)
  return message === undefined ? '' : `    Error message: ${shownInLine(message, MESSAGE)}\n`
}

/** A call in a form that repeats it; undefined if that is not possible. Characters that a terminal acts on are escaped. */
export function copyOf(call: CallView, form: CopyFormName): string | undefined {
  return COPY_FORMS[form].of(call)?.command.split('\n').map(printableJson).join('\n').concat('\n')
}

/** A request that became no call, or a change of the bridge itself, in one line. Nothing for other events. */
export function otherLine(seen: RecordedEvent, paint: Paint): string {
  const time = paint('dim', clock(seen.at))
  if (seen.kind === 'refused') {
    const { status, why, said, path, from } = seen
    const reason = said === undefined ? shown(why) : `${shown(why)}: ${shown(said, 200)}`
    return lineWith([time, paint('red', `refused ${status}`), reason, shown(path), from && `from ${shown(from)}`])
  }
  if (seen.kind === 'lost') return lineWith([time, paint('yellow', 'missing'), shown(seen.server), lossOf(seen)])
  if (seen.kind !== 'config' && seen.kind !== 'trust') return ''
  const what = seen.kind === 'config' ? 'configuration changed' : 'trust changed'
  return lineWith([time, paint('yellow', what), shown(seen.server), shown(seen.text, 300)])
}

function lineWith(parts: readonly (string | undefined)[]): string {
  return `${parts.filter(Boolean).join('  ')}\n`
}

const WIDTH = 44
const SIGNS: Readonly<Record<Change['op'], readonly [sign: string, colour: Colour]>> = {
  add: ['+', 'green'],
  remove: ['−', 'red'],
  replace: ['~', 'yellow'],
}

/** Formats the two sides of calls, under their lines. */
export class Sides {
  readonly #paint: Paint
  /** Rules that were already explained. */
  readonly #explained = new Set<string>()
  /** The last printed event per call, because a call that asks its client has several lines. */
  readonly #written = new WeakMap<CallView, number>()

  constructor(paint: Paint) {
    this.#paint = paint
  }

  /** The messages of a call since its last line, with the bridge's changes. */
  of(call: CallView): string {
    const paint = this.#paint
    const written = this.#written.get(call) ?? 0
    this.#written.set(call, call.events.at(-1)?.seq ?? 0)
    let text = ''
    for (const { client, server } of rowsOf(call)) {
      if (Math.max(client?.seq ?? 0, server?.seq ?? 0) <= written) continue
      const left = sideOf(client, 'client').padEnd(WIDTH)
      text += `    ${left} ${paint('dim', '│')} ${sideOf(server, 'server')}\n`
      for (const change of [...(client?.changes ?? []), ...(server?.changes ?? [])]) {
        const { op, rule } = change
        const [sign, colour] = SIGNS[op]
        text += `      ${paint(colour, `${sign} ${pathOf(change)}`)}  ${paint('dim', this.#ruleIn(rule))}\n`
      }
      const more = (client?.more ?? 0) + (server?.more ?? 0)
      if (more > 0) text += `      ${paint('dim', `and ${more} more changes`)}\n`
    }
    return text
  }

  /** A rule; the first time with its explanation and address. */
  #ruleIn(rule: string): string {
    const words = ruleWords(rule)
    if (words === undefined || this.#explained.has(rule)) return shown(rule)
    this.#explained.add(rule)
    return `${shown(rule)}: ${plainOf(words)} ${ruleAddress(rule)}`
  }
}

function sideOf(message: MessageRow | undefined, hop: MessageRow['hop']): string {
  if (!message) return ''
  const arrow = message.dir === (hop === 'client' ? 'in' : 'out') ? '→' : '←'
  const what = message.method === undefined ? message.form : shown(message.method)
  const id = message.id === undefined ? '' : ` id ${shown(JSON.stringify(message.id), 20)}`
  return `${arrow} ${what}${id}`
}
