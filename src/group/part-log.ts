/** The log of a call that is sent to several servers: what one of them notes is not about the call as a whole. */
import type { CallLog, UpstreamSpan } from '../protocol/call.js'

/** The log for the parts of a call, and what ends the time that all of them take together. */
export function partLog(log: CallLog): { log: CallLog; over(): void } {
  let span: UpstreamSpan | undefined
  const handedOver = (): UpstreamSpan => {
    span ??= log.handedOver?.()
    return { trace: span?.trace, over() {} }
  }
  return {
    log: { call: log.call, note() {}, warn: (fields, message) => log.warn(fields, message), handedOver },
    over: () => span?.over(),
  }
}
