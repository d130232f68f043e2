/** What to say when the program cannot go on: what happened, what belongs to it, what to do next, and the exit code. */
import { UsageError } from './cli.js'
import { ConfigError } from './config.js'
import { Fault } from './protocol/fault.js'
import { ChannelError } from './upstream/channel.js'

export interface Complaint {
  code: number
  /** The same words for everything of this kind. */
  kind: string
  /** One sentence. */
  why: string
  /** Further lines. */
  details: readonly string[]
  /** What to do next. */
  next?: string | undefined
  /** More for programs, beside `why`. */
  fields: Readonly<Record<string, unknown>>
}

export const EXIT = { ok: 0, failed: 1, usage: 2, config: 78 } as const

/** `probing` says that the person has asked for `probe` already, so that it need not be advised. */
export function complaintOf(error: unknown, { probing = false } = {}): Complaint {
  if (error instanceof UsageError)
    return {
      code: EXIT.usage,
      kind: 'invalid command line',
      why: error.message,
      details: [],
      next: 'mcp-bridge --help shows how to use it.',
      fields: {},
    }
  if (error instanceof ConfigError)
    return {
      code: EXIT.config,
      kind: 'invalid configuration',
      why: 'invalid configuration:',
      details: error.issues.map(({ path, message }) => `${path}${path && ' '}${message}`),
      fields: { issues: error.issues },
    }
  if (error instanceof Fault) return ofServer(error, probing)
  if (error instanceof Error && 'code' in error && 'port' in error) return ofPort(error)
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { code: EXIT.failed, kind: 'unexpected error', why: text, details: [], fields: {} }
}

/** For people, on a terminal. */
export function inWords({ why, details, next }: Complaint): string {
  return [
    `mcp-bridge: ${why}`,
    ...[...details, ...(next === undefined ? [] : [next])].map((line) => `  ${line}`),
    '',
  ].join('\n')
}

/** For the log, where that is for programs. */
export function inFields({ why, next, fields }: Complaint): Record<string, unknown> {
  return { ...('issues' in fields ? {} : { why }), ...fields, ...(next !== undefined && { next }) }
}

function ofServer(fault: Fault, probing: boolean): Complaint {
  const complaint = { code: EXIT.failed, kind: 'server unavailable', why: fault.message, details: [], fields: {} }
  const { cause } = fault
  if (!(cause instanceof ChannelError)) return complaint
  const { stderr } = cause
  const inner = cause.cause instanceof Error ? cause.cause.message : ''
  return {
    ...complaint,
    details: [
      ...(inner === '' || fault.message.includes(inner) ? [] : [inner]),
      ...(stderr.length === 0 ? [] : ['It last wrote to stderr:', ...stderr.map((line) => `  ${line}`)]),
    ],
    next: `${probing ? '' : 'mcp-bridge probe <server> shows how far it gets; '}--log-level debug tells more.`,
    fields: stderr.length === 0 ? {} : { stderr },
  }
}

function ofPort(error: Error & { code?: unknown; port?: unknown }): Complaint {
  const { code, port } = error
  const why = code === 'EADDRINUSE' ? `port ${port} is in use` : `cannot listen on port ${port}: ${error.message}`
  const next = 'Choose another with --listen http://127.0.0.1:8081/mcp'
  return { code: EXIT.failed, kind: 'cannot listen', why, details: [], next, fields: { port } }
}
