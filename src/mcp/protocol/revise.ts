/** Revises answers that pass unchanged otherwise. */
import type { Response } from '../../base/rpc/message.js'
import type { Revise } from './upstream.js'

/** A response with its result revised; the same one if nothing changes, or if it is an error. */
export async function revisedResponse<T extends Response>(response: T, revise: Revise): Promise<T> {
  const { outcome } = response
  const { kind, payload } = outcome
  if (kind !== 'result' || !payload) return response
  const changed = await revise(payload)
  return changed === payload ? response : { ...response, outcome: { ...outcome, payload: changed } }
}
