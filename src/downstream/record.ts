/** What is told of a call when it is over: one line, without secrets, header values or arguments. */
import type { CallLog, Reply } from '../protocol/call.js'
import type { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'
import { type Payload, value } from '../rpc/splice.js'

/** The methods of a pino logger that are used here. */
export interface Logger {
  isLevelEnabled(level: string): boolean
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const MAX_NAME = 120

export class CallRecord implements CallLog {
  readonly #logger: Logger
  readonly #started = performance.now()
  readonly #fields: Record<string, unknown>

  constructor(logger: Logger, fields: Record<string, unknown>) {
    this.#logger = logger
    this.#fields = fields
  }

  note(fields: Record<string, string | number | boolean>): void {
    Object.assign(this.#fields, fields)
  }

  debug(fields: object, message: string): void {
    this.#logger.debug(fields, message)
  }

  warn(fields: object, message: string): void {
    this.#logger.warn(fields, message)
  }

  /** The server has answered, with a result, a question or an error of its own. */
  ended(reply: Exclude<Reply, { kind: 'notification' }>): void {
    if (reply.kind === 'error') this.answered('error', reply.error.code)
    else this.answered(reply.kind === 'input' ? 'asks' : 'ok')
  }

  answered(outcome: 'ok' | 'asks' | 'error', code?: number): void {
    if (this.#logger.isLevelEnabled('info')) this.#logger.info(this.#line({ outcome, code }), 'call')
  }

  /** Nobody waits any more. */
  cancelled(): void {
    this.#logger.info(this.#line({ outcome: 'cancelled' }), 'call')
  }

  failed(fault: Fault): void {
    const line = this.#line({ outcome: 'fault', fault: fault.fault, blame: fault.blame, why: fault.message })
    if (fault.blame === 'caller') this.#logger.info(line, 'call')
    // That there is no room is worth knowing, and nothing is broken.
    else if (fault.fault === 'overloaded') this.#logger.warn(line, 'call')
    else if (fault.blame === 'upstream') this.#logger.warn({ ...line, ...stderrOf(fault) }, 'call')
    else this.#logger.error({ ...line, err: fault.cause ?? fault }, 'call')
  }

  #line(end: Record<string, unknown>): Record<string, unknown> {
    return { ...this.#fields, ...end, ms: Math.round((performance.now() - this.#started) * 10) / 10 }
  }
}

/** What a call is about, fit for a log: the name of the tool or prompt, the address of the resource without its query. */
export function subject(method: string, params: Payload): { name: string } | undefined {
  const { named } = methodTraits(method)
  const name = named === undefined || named === 'taskId' ? undefined : value(params, named)
  if (typeof name !== 'string') return undefined
  const shown = named === 'uri' ? name.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//') : name
  return { name: shown.slice(0, MAX_NAME) }
}

function stderrOf({ cause }: Fault): { stderr?: readonly string[] } {
  const lines = cause instanceof Error && 'stderr' in cause ? (cause.stderr as readonly string[]) : []
  return lines.length === 0 ? {} : { stderr: lines }
}
