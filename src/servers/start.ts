/** Computes how long a program may take to start: longer than the usual timeout, as long as it shows activity. */
import { type Channel, ChannelError } from './transport/channel.js'

/** Milliseconds for which a program may write nothing, and from its start until it must have answered. */
export interface StartLimits {
  silence: number
  start: number
}

/** Milliseconds that a program still has to start; 0 if its time is over. */
export function leftToStart(channel: Channel, { silence, start }: StartLimits): number {
  return Math.max(0, (channel.startingUntil?.(silence, start) ?? 0) - performance.now())
}

/** The failure of a program that has not answered its first request in time. It names the option to change. */
export function notStarted(channel: Channel, method: string, { silence, start }: StartLimits): ChannelError {
  const isAtWork = leftToStart(channel, { silence, start: Number.POSITIVE_INFINITY }) > 0
  const options = { late: true, delivered: 'no' } as const
  return isAtWork
    ? new ChannelError(
        `No answer to ${method} in the ${start} ms that the program had to start (timeouts.start)`,
        options,
      )
    : new ChannelError(
        `No answer to ${method} in ${silence} ms, in which the program wrote nothing (timeouts.initialize)`,
        options,
      )
}
