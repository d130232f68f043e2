/** The code of services that only some configurations need: it is loaded when one does. */
import type { Settings } from '../config/settings.js'
import type { startAudit } from '../services/telemetry/audit-log.js'

export interface Services {
  /** Starts the audit log. There with the option `audit`. */
  readonly startAudit?: typeof startAudit | undefined
}

/** Loads what these settings need. */
export async function servicesFor({ audit }: Settings): Promise<Services> {
  return audit ? await import('../services/telemetry/audit-log.js') : {}
}
