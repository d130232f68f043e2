/** How a call ends, for the log, metrics and the recorder. */
import type { BridgeEvent } from './events.js'

/** How a call ended. */
export type Outcome = Extract<BridgeEvent, { kind: 'call' }>['outcome']

/** The outcomes of calls that did not fail. */
const NO_FAILURES: ReadonlySet<Outcome> = new Set(['ok', 'asks', 'cancelled'])

/** Whether a call failed: the tool, the server or the bridge reported an error. */
export function isFailure(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && !NO_FAILURES.has(outcome)
}

/**
 * Why a call was cancelled: by `notifications/cancelled` of the client, because its connection was closed before the
 * answer, because its session ended, or because another call or another replica answers it.
 */
export type Cancelled = 'notification' | 'disconnected' | 'session' | 'bridge'
