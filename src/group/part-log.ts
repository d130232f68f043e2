/** The log for the parts of a call that is sent to several servers: notes about one part do not describe the whole call. */
import type { CallLog, UpstreamSpan } from '../protocol/call.js'

/** The log for all parts, and a function that ends their common span. */
export function partLog(log: CallLog): { log: CallLog; over(): void } {
  let span: UpstreamSpan | undefined
  const handedOver = (): UpstreamSpan => {
    span ??= log.handedOver?.()
    return { trace: span?.trace, over() {} }
  }
  return {
    log: { recorder: log.recorder, note() {}, warn: (fields, message) => log.warn(fields, message), handedOver },
    over: () => span?.over(),
  }
}
