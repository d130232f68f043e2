/** The log for the parts of a call that is sent to several servers: notes about one part do not describe the whole call. */

import { EMPTY } from '../../base/rpc/splice.js'
import type { CallLog, UpstreamSpan } from '../../mcp/protocol/call.js'

type End = Parameters<UpstreamSpan['over']>[0]

/**
 * How the parts end together. `answered`: they make an answer, whatever single ones lack. `failed`: none of them does, so they
 * end as they ended, as a result if one server has sent one. `cancelled`: nobody waits for them any more.
 */
export type PartsEnd = 'answered' | 'failed' | 'cancelled'

/** The log for all parts, and a function that ends their common span. */
export function partLog(log: CallLog): { log: CallLog; over(how: PartsEnd): void } {
  let span: UpstreamSpan | undefined
  let end: End
  const over = (last?: End) => {
    const isResult = last !== undefined && 'kind' in last && last.kind === 'result'
    if (end === undefined || isResult) end = last
  }
  const handedOver = (): UpstreamSpan => {
    span ??= log.handedOver?.()
    return { trace: span?.trace, over }
  }
  return {
    log: { recorder: log.recorder, note() {}, warn: (fields, message) => log.warn(fields, message), handedOver },
    over(how) {
      span?.over(how === 'answered' ? { kind: 'result', result: EMPTY } : how === 'failed' ? end : undefined)
    },
  }
}
