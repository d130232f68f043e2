/** Asks a person whether a tool may run, and reads the answer. */

import { type Json, objectIn, type Payload, parseObject } from '../../../base/rpc/splice.js'
import { visibleJson } from '../../../base/texts/printable.js'
import type { Call } from '../../../mcp/protocol/call.js'
import { uncovered } from '../../../mcp/protocol/input.js'
import { stringIn } from '../unambiguous.js'

/** What a person decides on. */
export interface Decided {
  server: string
  /** The name of the tool at the server. */
  tool: string
  arguments: { lines: readonly string[]; more: number }
}

const MODES = { form: parseObject('{"mode":"form"}'), url: parseObject('{"mode":"url"}') } as const

/** Whether the client of a call can be asked in this way. */
export function canAsk({ caller }: Call, mode: keyof typeof MODES): boolean {
  return !uncovered('elicitation/create', MODES[mode], parseObject(caller.capabilities))
}

/** What the person has said. */
export type Decision = 'run' | 'window' | 'refused' | 'cancelled'

/** Name of the question. */
export const QUESTION = 'approval'
const RUN = 'Run'
const NOT = 'Do not run'
const MAX_ASKED_NAME = 128

/** What is asked, as text. What the server says of the tool is not part of it. */
export function askedText(decided: Decided): string {
  return `${askedOf(decided)}\n\n${argumentText(decided)}`
}

/** The arguments, as text. */
export function argumentText({ arguments: { lines, more } }: Pick<Decided, 'arguments'>): string {
  const rest = more > 0 ? [`… and ${more} more values, which are not shown`] : []
  return lines.length === 0 && more === 0 ? 'It gets no arguments.' : [...lines, ...rest].join('\n')
}

function askedOf({ server, tool }: Decided): string {
  return `Run the tool "${named(tool)}" of the server "${named(server)}"?`
}

/** The form that asks, as `inputRequests`. `window`: milliseconds for which the person may allow the tool. */
export function formOf(decided: Decided, window: number | undefined): Json {
  const message = [
    askedText(decided),
    ...(window === undefined ? [] : ['', `"${runFor(window)}" is for this tool with any arguments.`]),
  ].join('\n')
  const answers = [RUN, NOT, ...(window === undefined ? [] : [runFor(window)])]
  const answer = { type: 'string', title: 'Answer', enum: answers }
  const requestedSchema = { type: 'object', properties: { answer }, required: ['answer'] }
  const params = { mode: 'form', message, requestedSchema }
  return JSON.stringify({ [QUESTION]: { method: 'elicitation/create', params } })
}

/** The address where the person decides, as `inputRequests`. */
export function urlOf(decided: Decided, url: string): Json {
  const message = `${askedOf(decided)} Decide on this page.`
  return JSON.stringify({ [QUESTION]: { method: 'elicitation/create', params: { mode: 'url', message, url } } })
}

/** The decision in the answers of a client. What is not understood approves nothing. */
export function decisionIn(responses: Json | undefined, window: number | undefined): Decision {
  const answer = objectIn(parseObject(responses ?? '{}'), QUESTION)
  const action = answer && stringIn(answer, 'action')
  if (!answer || (action !== 'accept' && action !== 'decline')) return 'cancelled'
  const said = action === 'accept' ? saidIn(answer) : undefined
  if (said === RUN) return 'run'
  return window !== undefined && said === runFor(window) ? 'window' : 'refused'
}

function saidIn(answer: Payload): string | undefined {
  const content = objectIn(answer, 'content')
  return content && stringIn(content, 'answer')
}

/** The answer that allows the tool for so many milliseconds. */
export function runFor(window: number): string {
  return `Run, and ask no more for ${inWords(window)}`
}

/** Milliseconds in words. */
function inWords(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000)
  const [count, unit] =
    seconds % 3_600 === 0
      ? [seconds / 3_600, 'hour']
      : seconds % 60 === 0
        ? [seconds / 60, 'minute']
        : [seconds, 'second']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** A name in one line, in which everything can be seen, and nothing looks like its end. */
export function named(name: string): string {
  const shown = visibleJson(JSON.stringify(name.slice(0, MAX_ASKED_NAME))).slice(1, -1)
  return name.length > MAX_ASKED_NAME ? `${shown}…` : shown
}
