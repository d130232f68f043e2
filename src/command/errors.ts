/** Errors that end the program, such as a port in use: what happened, details, and what to do next. */

import { ListenError, type ListenOption, optionOf } from '../app/listen-error.js'
import { Fault, isOfSignIn } from '../base/fault/fault.js'
import type { LogFields } from '../base/log/events.js'
import { printable } from '../base/texts/printable.js'
import { ConfigError } from '../config/settings.js'
import { adviceOn, type OperatorAdvice } from '../servers/advice.js'
import { ChannelError } from '../servers/transport/channel.js'
import { lastWordsIn } from '../servers/transport/stdio/stderr-tail.js'
import { inLine } from './check.js'
import type { EndEvent } from './ends.js'
import { ownerOf, whoHas } from './port-owner.js'
import { UsageError } from './usage-error.js'

export interface CliError {
  event: EndEvent
  /** One sentence. */
  why: string
  /** Further lines. */
  details: readonly string[]
  /** What to do next. */
  next?: string | undefined
  /** Further fields for programs, besides `why`. */
  fields: Readonly<Record<string, unknown>>
}

/** What the program was doing. */
export interface Circumstances {
  /** The command is `probe`, so `probe` is not suggested. */
  probing: boolean
  /** The address of the only server. Undefined for programs, because their arguments may be secret. */
  target?: string | undefined
  platform?: NodeJS.Platform
  /** The command that probes the same server; undefined if it may have secrets. */
  probe?(): string | undefined
}

/** Most characters of a foreign line. */
const LINE = 1_000

export function cliErrorOf(error: unknown, circumstances: Circumstances): CliError {
  if (error instanceof UsageError)
    return {
      event: 'command_line_invalid',
      why: error.message,
      details: [],
      next: `Run "mcp-bridge ${error.command === undefined ? '' : `${error.command} `}--help" for help.`,
      fields: {},
    }
  if (error instanceof ConfigError)
    return {
      event: 'config_invalid',
      why: 'invalid configuration:',
      details: error.issues.map(inLine),
      fields: { issues: error.issues },
    }
  if (error instanceof Fault) return ofServer(error, circumstances)
  if (error instanceof ListenError)
    return {
      event: 'listen_failed',
      why: error.message,
      details: [],
      next: error.next.replace('--listen', `--${optionOf(error)}`),
      fields: {},
    }
  if (error instanceof Error && 'syscall' in error && /^(?:listen|getaddrinfo)$/.test(String(error.syscall)))
    return ofListening(error, circumstances)
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { event: 'unexpected_error', why: text, details: [], fields: {} }
}

/** For people, on a terminal. */
export function inWords({ why, details, next }: CliError): string {
  return [
    `mcp-bridge: ${why}`,
    ...[...details, ...(next === undefined ? [] : [next])].map((line) => `  ${line}`),
    '',
  ].join('\n')
}

/** For the log, if that is for programs. */
export function inFields({ event, why, next, fields }: CliError): LogFields {
  return { event, ...('issues' in fields ? {} : { why }), ...(next !== undefined && { next }), ...fields }
}

function ofServer(fault: Fault, { probing, target, probe }: Circumstances): CliError {
  const { next, ...known } = failureFields(fault, probing)
  const shown = isOfSignIn(fault) ? 'what the server requires' : 'which step fails'
  // The words of a program may be secret, so they are not repeated.
  const again = probing ? '' : `${probe?.() ?? 'mcp-bridge probe with the same words'} shows ${shown}. `
  const further = `${again}--log-level debug shows more.`
  return {
    event: 'server_unavailable',
    why: fault.message,
    details: failureLines(fault, { probing, target }),
    next: further,
    fields: {
      ...(target !== undefined && { target }),
      ...known,
      next: next ?? further,
    },
  }
}

/** What is known about an unusable server, for programs. `all`: all lines of stderr, which logs do not include. */
export function failureFields(fault: Fault, all: boolean): OperatorAdvice {
  const { cause } = fault
  const allStderr = cause instanceof ChannelError ? cause.allStderr : []
  return { ...adviceOn(fault), ...(all && allStderr.length > 0 && { stderr: allStderr }) }
}

/** The same for people, beside the message: what it said, what it wrote to stderr, and what to do next. */
export function failureLines(fault: Fault, { probing, target }: Circumstances): string[] {
  const { cause, message } = fault
  const { status, said, stderr = [], next } = failureFields(fault, probing)
  const reason = probing ? lastWordsIn(stderr) : undefined
  const inner = cause instanceof ChannelError && cause.cause instanceof ChannelError ? cause.cause.message : ''
  return [
    ...(target === undefined ? [] : [`${target}${status === undefined ? '' : ` answered with HTTP ${status}.`}`]),
    ...(said === undefined || message.includes(said) ? [] : [`The server said: ${said}`]),
    ...(inner === '' || status !== undefined || message.includes(inner) ? [] : [printable(inner, LINE)]),
    ...(reason === undefined ? [] : [`Probable reason: ${printable(reason, LINE)}`]),
    ...(stderr.length === 0
      ? []
      : ['The server wrote to stderr:', ...stderr.map((line) => `  ${printable(line, LINE)}`)]),
    ...(next === undefined ? [] : [next]),
  ]
}

/** An error of `server.listen`. */
type ListeningError = Error & { code?: unknown; address?: unknown; port?: unknown; hostname?: unknown }

const OWN_ADDRESS = 'Listen on 127.0.0.1, on an address of this machine, or on [::] for all of them.'
/** The addresses with another port. */
const OTHER: Readonly<Record<ListenOption, string>> = {
  listen: '--listen http://127.0.0.1:8081/mcp',
  admin: '--admin http://127.0.0.1:9092',
  'replicas.address': '"replicas": { "address": "http://[::]:8091" }',
}
const otherPort = (at: ListeningError) => `Choose another port with ${OTHER[optionOf(at)]}.`

/** Why the bridge cannot listen, by the code of the error: what is wrong, and what to do. */
const LISTENING: Readonly<
  Record<string, (at: ListeningError, platform: NodeJS.Platform) => readonly [string, string]>
> = {
  EADDRINUSE: (at, platform) => {
    const port = Number(at.port)
    const owner = ownerOf(port)
    const who = owner === undefined ? `To see who has it: ${whoHas(port, platform)}` : `Or end ${owner}.`
    return [`port ${port} is in use${owner === undefined ? '' : ` by ${owner}`}`, `${otherPort(at)} ${who}`]
  },
  EACCES: (at) => [
    `cannot listen on port ${at.port}: this user may not`,
    `Choose a port above 1023, as in ${OTHER[optionOf(at)]}.`,
  ],
  EADDRNOTAVAIL: ({ address, port }) => [
    `cannot listen on port ${port}: this machine does not have the address ${address}`,
    OWN_ADDRESS,
  ],
  ENOTFOUND: ({ hostname }) => [`cannot listen on ${hostname}: the host name could not be resolved`, OWN_ADDRESS],
}

function ofListening(error: ListeningError, { platform = 'linux' }: Circumstances): CliError {
  const { port } = error
  const [why, next] = LISTENING[String(error.code)]?.(error, platform) ?? [
    `cannot listen on port ${port}: ${error.message}`,
    otherPort(error),
  ]
  return { event: 'listen_failed', why, details: [], next, fields: { port } }
}
