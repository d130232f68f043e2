/** How a call ends, for the log, metrics and the recorder. */
import type { BridgeEvent } from './events.js'

/** How a call ended. */
export type Outcome = Extract<BridgeEvent, { kind: 'call' }>['outcome']

/** The outcomes of calls that succeeded, or that the client ended. */
const WELL: ReadonlySet<Outcome> = new Set(['ok', 'asks', 'cancelled'])

/** Whether a call failed: the tool, the server or the bridge reported an error. */
export function isFailure(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && !WELL.has(outcome)
}

/**
 * Why a call was cancelled: by `notifications/cancelled` of the client, because its connection was closed before the
 * answer, because its session ended, or because the bridge answers it as another call or elsewhere.
 */
export type Cancelled = 'notification' | 'disconnected' | 'session' | 'bridge'
