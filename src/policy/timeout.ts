/** Gives up calls that take too long. Progress is a sign of life, but not for ever. */
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'

export interface Timeouts {
  /** Milliseconds of silence. */
  idle: number
  /** Milliseconds in all. */
  total: number
}

export function timeout({ idle, total }: Timeouts): Policy {
  return (next) =>
    async function* timedCall(call) {
      const controller = new AbortController()
      let late: Fault | undefined
      const giveUp = (why: string) => () => {
        late = new Fault('upstreamTimeout', `The server ${why}; whether it acted on the call is unknown`)
        controller.abort(late)
      }
      const leave = () => controller.abort(call.signal.reason)
      if (call.signal.aborted) leave()
      else call.signal.addEventListener('abort', leave, { once: true })
      const atMost = setTimeout(giveUp(`did not answer in ${total / 1000} s`), total)
      const silence = setTimeout(giveUp(`was silent for ${idle / 1000} s`), idle)
      try {
        for await (const reply of next({ ...call, signal: controller.signal })) {
          silence.refresh()
          yield reply
        }
      } catch (error) {
        throw late ?? error
      } finally {
        clearTimeout(atMost)
        clearTimeout(silence)
        call.signal.removeEventListener('abort', leave)
      }
    }
}
