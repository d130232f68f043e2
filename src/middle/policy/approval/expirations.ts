/** Reports questions that nobody has answered in time: the client may never come back. */
import type { Observe } from '../../../mcp/ports/events.js'
import type { AuditedCall } from '../../../mcp/protocol/call.js'
import type { AuditLog } from '../audit.js'

/** A question of a server. `audited`: what the audit log says of its call; undefined without one. */
interface Expired {
  server: string
  audited: AuditedCall | undefined
}

/** Is told that a question has expired. */
export type Expirations = (question: Expired) => void

export function expirations(log: Pick<AuditLog, 'write'> | undefined, observe: Observe | undefined): Expirations {
  return ({ server, audited }) => {
    observe?.({ kind: 'approval', server, what: 'expired' })
    const line = { approval: 'expired', outcome: 'refused', reason: 'approval_expired' }
    if (audited) log?.write({ ...audited, ...line }).catch(() => {})
  }
}
