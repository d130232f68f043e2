/** Advice for the operator about an unusable server: for errors and the log, never for clients. */

import { withoutCredentials } from '../base/credentials/credentials.js'
import {
  ITS_LOG,
  MESSAGES,
  nextIn,
  OUTPUTS,
  PORT_TAKEN,
  SIGN_IN,
  SLOW,
  STATUSES,
  TAKEN,
} from '../base/fault/failures.js'
import type { Fault } from '../base/fault/fault.js'
import { printable, publicAddress } from '../base/texts/printable.js'
import { type HttpRefusal, saidIn } from '../mcp/protocol/refusal.js'
import { causeOf } from './transport/causes.js'
import { ChannelError } from './transport/channel.js'
import { lastWordsIn } from './transport/stdio/stderr-tail.js'

export interface OperatorAdvice {
  status?: number
  /** The address it redirects to, without the query. */
  location?: string
  /** The server's refusal, in one line. */
  said?: string
  /** A few lines of the stderr of a program, first its probable reason. */
  stderr?: readonly string[]
  next?: string
}

/** What operators are told, by messages. */
const TOLD = Object.entries(MESSAGES).flatMap(([text, [, next, told]]) => (told ? [[text, next] as const] : []))
/** Most characters of the last words of a program. */
const WORDS = 300

/** The known facts of a failure, and the next step. `login`: what comes after "mcp-bridge login" for its server, if one can sign in there. */
export function adviceOn(fault: Fault, login?: string): OperatorAdvice {
  const refusal = refusalIn(fault)
  if (!refusal) {
    const next = nextByCause(fault) ?? nextByStderr(fault) ?? nextByMessage(fault)
    const stderr = (programIn(fault)?.stderr ?? []).map(withoutCredentials)
    return { ...(stderr.length > 0 && { stderr }), ...(next !== undefined && { next }) }
  }
  const { status } = refusal
  const location = status >= 300 && status < 400 ? address(refusal.location) : undefined
  if (location !== undefined)
    return { status, location, next: `The server redirects: use the address ${location} instead.` }
  const signIn = login === undefined ? '' : `, or sign in with mcp-bridge login ${login}`
  const next = STATUSES[status]?.replace(SIGN_IN, () => signIn) ?? (status >= 500 ? ITS_LOG : undefined)
  const said = saidIn(refusal)
  return { status, ...(said !== undefined && { said }), ...(next !== undefined && { next }) }
}

/** Why a server is unavailable, in one line: the message, and the last words of a program on stderr. */
export function whyInLine(fault: Fault): string {
  const { message } = fault
  const words = lastWordsIn(programIn(fault)?.allStderr ?? [])
  if (words === undefined || message.includes(words)) return message
  return `${message}: ${printable(withoutCredentials(words), WORDS)}`
}

/** The failure with what a program wrote to stderr; undefined if there is none. */
function programIn(fault: Fault): ChannelError | undefined {
  return causesOf(fault).find((cause) => cause instanceof ChannelError && cause.allStderr.length > 0) as
    | ChannelError
    | undefined
}

function causesOf(fault: Fault): Error[] {
  const causes: Error[] = []
  for (let cause = fault.cause; cause instanceof Error && causes.length < 8; cause = cause.cause) causes.push(cause)
  return causes
}

function refusalIn(fault: Fault): HttpRefusal | undefined {
  return causesOf(fault)
    .flatMap((cause) => (cause instanceof ChannelError ? (cause.refusal ?? []) : []))
    .at(-1)
}

function nextByCause(fault: Fault): string | undefined {
  return causesOf(fault)
    .flatMap((cause) => (cause instanceof ChannelError && cause.late ? SLOW : (causeOf(cause)?.next ?? [])))
    .at(-1)
}

function nextByStderr(fault: Fault): string | undefined {
  const lines = programIn(fault)?.allStderr ?? []
  const words = lastWordsIn(lines)
  if (words === undefined) return undefined
  return (
    OUTPUTS.find(([pattern]) => pattern.test(words))?.[1] ??
    (lines.some((line) => TAKEN.test(line)) ? PORT_TAKEN : undefined)
  )
}

function nextByMessage({ cause }: Fault): string | undefined {
  if (!(cause instanceof ChannelError)) return undefined
  return nextIn(cause.message, TOLD)
}

/** A query may be secret. */
function address(location: string | undefined): string | undefined {
  return location === undefined ? undefined : printable(publicAddress(location), 200)
}
