/** The log for the parts of a call that is sent to several servers: notes about one part do not describe the whole call. */
import type { CallLog, UpstreamSpan } from '../protocol/call.js'

type End = Parameters<UpstreamSpan['over']>[0]

/** The log for all parts, and a function that ends their common span: as a result if one server has sent one. */
export function partLog(log: CallLog): { log: CallLog; over(): void } {
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
    over: () => span?.over(end),
  }
}
