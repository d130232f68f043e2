/** Reports what people decide at the page when they do: the client may never come for it. */
import type { Observe } from '../../../mcp/ports/events.js'
import type { AuditLog } from '../audit.js'
import type { PageChoice, PageQuestion } from './page-questions.js'

/** Is told a decision. Resolves when the audit log has its line, or when that has failed. */
export type Decisions = (question: PageQuestion, choice: PageChoice) => Promise<void>

export function decisions(log: Pick<AuditLog, 'write'> | undefined, observe: Observe | undefined): Decisions {
  return async ({ server, audited }, choice) => {
    observe?.({ kind: 'approval', server, what: choice === 'refused' ? 'refused' : 'approved' })
    const approval = choice === 'run' ? 'page' : choice
    if (audited) await log?.write({ ...audited, approval, outcome: 'decided' }).catch(() => {})
  }
}
