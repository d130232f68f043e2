/** Starts the audit log, which goes where the configuration says. The code for OTLP is loaded only if it goes to a collector. */
import { AuditFile } from './audit-file.js'
import { AuditLines } from './audit-lines.js'

/** Where lines go: to a file, a collector, or else to stdout. */
interface AuditDestination {
  file?: string | undefined
  otlp: boolean
}

interface AuditLogOptions {
  env: Readonly<Record<string, string | undefined>>
  version: string
  /** Called with an error when lines can no longer be written, and without one when they can be again. */
  changed: (failure?: unknown) => void
}

export function startAudit({ file, otlp }: AuditDestination, { env, version, changed }: AuditLogOptions): AuditLines {
  if (otlp) {
    const collector = import('./audit-otlp.js').then(({ AuditOtlp }) => new AuditOtlp(env, version))
    return new AuditLines(collector, changed)
  }
  return new AuditLines(new AuditFile(file === undefined ? { fd: 1 } : { file }), changed)
}
