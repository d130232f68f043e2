/** Writes the audit log: a line for each use of a tool, prompt, resource or type of events, before its answer is sent. */

import { shortDigest } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import { canonical } from '../../base/rpc/canonical.js'
import { objectIn, raw, stringUnder, value } from '../../base/rpc/splice.js'
import { personOf } from '../../base/texts/principal.js'
import { printable, publicAddress } from '../../base/texts/printable.js'
import { OwnedByReplica } from '../../mcp/ports/replicas.js'
import type { AuditedCall, Call, Final, Foreign, Policy } from '../../mcp/protocol/call.js'
import { shownName } from '../../mcp/protocol/implementation.js'
import { OF_BRIDGE } from '../../mcp/protocol/meta.js'
import { CALL_TOOL, EVENT_USES } from '../../mcp/protocol/methods.js'

/** What the log says about a call or a refused request. Undefined members are omitted. */
export type AuditLine = AuditedCall

/** The destination of the lines. */
export interface AuditLog {
  /** Resolves when the line is written. Rejects if writing has failed. */
  write(line: AuditLine): Promise<void>
  /** Resolves when it is open, or when that has failed; undefined after that. */
  readonly opening: Promise<void> | undefined
  /** Whether the last line could be written, or, before the first one, whether it could be opened. */
  readonly works: boolean
}

/** Options for what belongs to another principal, at a server or at a group. */
interface ForeignOptions {
  server?: string | undefined
  group?: string | undefined
  log: Pick<AuditLog, 'write'>
  /** Names of arguments whose values are written. */
  named: readonly string[]
}

export interface AuditOptions extends ForeignOptions {
  server: string
  log: AuditLog
  /** Fail calls whose line cannot be written. */
  required: boolean
}

/** By method, the parameter that names what is used, and its member of a line. */
const USES: Readonly<Record<string, { param: 'name' | 'uri'; member: 'tool' | 'prompt' | 'resource' | 'event' }>> = {
  [CALL_TOOL]: { param: 'name', member: 'tool' },
  'prompts/get': { param: 'name', member: 'prompt' },
  'resources/read': { param: 'uri', member: 'resource' },
  ...Object.fromEntries([...EVENT_USES].map((method) => [method, { param: 'name', member: 'event' }])),
}
/** Most characters of a name, and of an argument's value. */
const MAX_AUDITED_TEXT = 256

export function audit(options: AuditOptions): Policy {
  const { log, required } = options
  async function record(call: Call, end: AuditLine, ms: number): Promise<void> {
    await log.write({ ...whoAndWhat(call, options), ...end, ms: Math.round(ms * 10) / 10 })
  }

  return (next) => {
    async function auditedCall(call: Call): Promise<Final> {
      const began = performance.now()
      if (required && log.opening) await log.opening
      if (required && !log.works) {
        // Checks whether lines can be written again.
        await log.write({ outcome: 'resumed' }).catch((error: unknown) => {
          throw new Fault('auditUnavailable', 'The audit log cannot be written, so nothing is called', {
            cause: error,
            retryAfter: 5,
          })
        })
      }
      const foreign = new ForeignUse(call, options)
      let approval: string | undefined
      const approved = (what: string) => {
        approval = what
      }
      const audited = () => whoAndWhat(call, options)
      let last: Final
      try {
        last = await next({ ...call, foreign: foreign.report, approval: approved, audited })
      } catch (error) {
        // The replica that answers the call writes the line.
        if (error instanceof OwnedByReplica) throw error
        if (foreign.line) {
          await foreign.line
          throw error
        }
        const fault = Fault.from(error, true)
        const reason = call.signal.aborted ? 'cancelled' : (fault.row.reason ?? fault.fault)
        const outcome = fault.row.outcome === undefined && fault.blame === 'caller' ? 'refused' : 'failed'
        await record(call, { approval, outcome, reason }, performance.now() - began).catch(() => {})
        throw error
      }
      await record(call, { approval, ...endOf(last) }, performance.now() - began).catch((error: unknown) => {
        if (required)
          throw new Fault('auditLost', 'The server has answered, but the audit log cannot be written', { cause: error })
      })
      return last
    }
    const passed = foreignUses(options)(next)
    return (call) => (Object.hasOwn(USES, call.method) ? auditedCall(call) : passed(call))
  }
}

/** A policy that writes only the uses of what belongs to another principal. */
export function foreignUses(options: ForeignOptions): Policy {
  return (next) =>
    async function watchedCall(call) {
      const foreign = new ForeignUse(call, options)
      try {
        return await next({ ...call, foreign: foreign.report })
      } finally {
        await foreign.line
      }
    }
}

/** Writes one line if a call uses what belongs to another principal. The call is refused as if there were no such thing. */
class ForeignUse {
  readonly #call: Call
  readonly #options: ForeignOptions
  /** Resolves when the line is written, or when that has failed; undefined without a line. */
  line: Promise<void> | undefined

  constructor(call: Call, options: ForeignOptions) {
    this.#call = call
    this.#options = options
  }

  readonly report = (reason: Foreign): void => {
    if (this.line) return
    const line = { ...whoAndWhat(this.#call, this.#options), outcome: 'refused', reason }
    this.line = this.#options.log.write(line).catch(() => {})
  }
}

function whoAndWhat(call: Call, { server, group = call.group, named }: ForeignOptions): AuditLine {
  const { method, params, principal, grant, caller } = call
  const use = Object.hasOwn(USES, method) ? USES[method] : undefined
  const given = raw(params, 'arguments')
  return {
    ...whoIs(principal, grant),
    // Its id at an identity provider says nothing to people.
    client_name: shownName(caller.clientInfo, MAX_AUDITED_TEXT),
    server,
    group,
    method,
    ...(use && { [use.member]: shortened(stringUnder(params, use.param)) }),
    callback: EVENT_USES.has(method) ? callbackIn(params) : undefined,
    // Arguments may be secret. Their digest still shows which calls had the same ones.
    digest: given === undefined ? undefined : digestOf(given),
    arguments: named.length === 0 ? undefined : valuesOf(call, named),
  }
}

/** Where a client wants its events sent. What follows the path may be secret. */
function callbackIn(params: Call['params']): string | undefined {
  const delivery = objectIn(params, 'delivery')
  const url = delivery && stringUnder(delivery, 'url')
  return typeof url === 'string' ? printable(publicAddress(url), MAX_AUDITED_TEXT) : undefined
}

/** The known identity of a request's sender. */
export function whoIs(principal: string, grant: Call['grant']): AuditLine {
  const { issuer, subject, application } = grant ?? {}
  return { principal: personOf(principal), issuer, subject, application }
}

function endOf(last: Final): AuditLine {
  if (last.kind === 'error') return { outcome: 'error', reason: String(last.error.code) }
  if (last.kind === 'input') return { outcome: 'asks' }
  if (value(last.result, 'isError') !== true) return { outcome: 'ok' }
  // A policy marks its refusal with a reason; without one, the tool itself has failed.
  const meta = objectIn(last.result, '_meta')
  const reason = meta && REASONS.find((one) => raw(meta, OF_BRIDGE + one) !== undefined)
  return reason === undefined ? { outcome: 'tool_error' } : { outcome: 'refused', reason }
}

/** Reasons for which policies refuse calls in their results. */
const REASONS = [
  'approval_expired',
  'approval_refused',
  'approval_required',
  'header_missing',
  'insufficient_scope',
  'rate_limited',
  'quarantined',
  'refused',
  'sign_in_required',
] as const

function valuesOf({ params }: Call, named: readonly string[]): object | undefined {
  const given = objectIn(params, 'arguments')
  const found = named.flatMap((name) => {
    const text = given && raw(given, name)
    return text === undefined ? [] : [[name, shortened(value(given as never, name) ?? text)] as const]
  })
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

function shortened(found: unknown): string | number | undefined {
  if (typeof found === 'number' || found === undefined) return found
  const text = typeof found === 'string' ? found : JSON.stringify(found)
  return text.length > MAX_AUDITED_TEXT ? `${text.slice(0, MAX_AUDITED_TEXT)}…` : text
}

function digestOf(given: string): string {
  let text = given
  try {
    text = canonical(given)
  } catch {
    // Not valid JSON: its text is used unchanged.
  }
  return shortDigest(text)
}
