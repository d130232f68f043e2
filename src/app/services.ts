/** The code of services that only some configurations need: it is loaded when one does. */
import { hasSignInPage, parseListen, type Settings } from '../config/settings.js'
import type { Desk } from '../services/oauth/page/desk.js'
import type { startAudit } from '../services/telemetry/audit-log.js'

export interface Services {
  /** Starts the audit log. There with the option `audit`. */
  readonly startAudit?: typeof startAudit | undefined
  /** Sends people to the page where they sign in or approve calls. There if the bridge serves it. */
  readonly Desk?: typeof Desk | undefined
}

/** Loads what these settings need. */
export async function servicesFor(settings: Settings): Promise<Services> {
  const { audit, listen } = settings
  return {
    ...(audit && (await import('../services/telemetry/audit-log.js'))),
    ...(hasSignInPage(settings, parseListen(listen)) && (await import('../services/oauth/page/desk.js'))),
  }
}
