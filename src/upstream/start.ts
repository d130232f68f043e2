/** How long a program may take to start: longer than others take to answer, while it shows that it is at work. */
import { type Channel, ChannelError } from './transport/channel.js'

/** Milliseconds for which a program may write nothing, and from its start until it must have answered. */
export interface StartLimits {
  silence: number
  start: number
}

/** Milliseconds that a program is still given to start; 0 if it is given none. */
export function leftToStart(channel: Channel, { silence, start }: StartLimits): number {
  return Math.max(0, (channel.startingUntil?.(silence, start) ?? 0) - performance.now())
}

/** The failure of a program that has not answered its first request in time. It names the option. Nothing but that request was sent. */
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
