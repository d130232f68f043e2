/** Opens a channel to a modern server for a principal. */
import { probe } from '../era/probe.js'
import { Contradiction } from '../failure.js'
import type { Access } from '../half.js'
import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { ChannelError } from '../transport/channel.js'

/**
 * Opens a channel; probes a new process first, because the program may have changed its era. Rejects with a Fault, or
 * with a Contradiction if the program is legacy now.
 */
export async function connect(
  principal: string,
  { transport, timeouts, clientInfo, era, log }: ServerOptions,
  { detection, capacity }: Access,
): Promise<Peer> {
  detection.throwIfDown()
  await capacity.mayStart(principal)
  try {
    if (transport.kind === 'http' || era === 'modern' || detection.hasSpare)
      return await detection.channel(transport, { stateless: true })
    // A new process may be slow to start, so the probe may take as long as `initialize`.
    const timeout = Math.max(timeouts.probe, timeouts.initialize)
    const finding = await probe({ transport, clientInfo, timeout, log })
    if (finding.era === 'modern') return finding.peer
    await finding.peer?.channel.close()
    if (finding.unanswered) throw new ChannelError(`No answer to server/discover in ${timeout} ms`, { delivered: 'no' })
  } catch (error) {
    throw detection.failed(error)
  }
  throw new Contradiction('modern', 'The server no longer supports 2026-07-28')
}
