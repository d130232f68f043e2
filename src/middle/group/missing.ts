/** Handles servers of a group that are missing in an answer: fails if one is required, or names them in the answer. */
import type { Fault } from '../../base/fault/fault.js'
import type { Json } from '../../base/rpc/splice.js'
import type { CallLog } from '../../mcp/protocol/call.js'
import { OF_BRIDGE } from '../../mcp/protocol/meta.js'
import type { GroupPlan, Member } from './member.js'

/** A server that is slow or unreachable. */
export interface Missing {
  kind: 'missing'
  why: Fault
  /** The server may still answer. */
  isLate: boolean
}

/** The part of a server in an answer: missing, or not. */
interface MemberPart {
  member: Member
  missing: Missing | undefined
}

/** Throws a Fault if a required server is missing. */
export function checkRequired({ required }: GroupPlan, parts: readonly MemberPart[]): void {
  for (const { member, missing } of parts) if (missing && required.has(member.server)) throw missing.why
}

/** Members of `_meta` that name the missing servers. */
export function unavailable(missing: readonly MemberPart[]): Record<string, Json> {
  if (missing.length === 0) return {}
  const entries = missing.map(({ member: { server }, missing: { why } = {} }) => ({
    server,
    reason: why?.row.reason ?? 'invalid_params',
    message: why?.message,
  }))
  return { [`${OF_BRIDGE}unavailable`]: JSON.stringify(entries) }
}

/** Names the missing servers in the log of a call. */
export function noteMissing(log: CallLog, missing: readonly MemberPart[]): void {
  if (missing.length > 0) log.note({ missing: missing.map(({ member }) => member.server).join(' ') })
}
