/** Gives up calls that take too long. Progress is a sign of life, but not for ever. */
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'

export interface Timeouts {
  /** Milliseconds of silence. */
  idle: number
  /** Milliseconds in all. */
  total: number
}

export function timeout({ idle, total }: Timeouts): Policy {
  return (next) =>
    async function* timedCall(call) {
      if (methodTraits(call.method).endless) return yield* next(call)
      const started = performance.now()
      const giveUp = (why: string) => {
        const outcome = 'whether it acted on the call is unknown'
        call.abort(new Fault('upstreamTimeout', `The server ${why}; ${outcome}`))
      }
      const silence = setTimeout(() => giveUp(`was silent for ${idle / 1000} s`), idle)
      try {
        for await (const reply of next(call)) {
          if (performance.now() - started > total) giveUp(`did not answer in ${total / 1000} s`)
          silence.refresh()
          yield reply
        }
      } finally {
        clearTimeout(silence)
      }
    }
}
