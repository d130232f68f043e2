/** Opens a channel to a modern server for a principal. */
import { probe } from '../era/probe.js'
import { Contradiction } from '../failure.js'
import type { Access } from '../half.js'
import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { notStarted } from '../start.js'

/**
 * Opens a channel; probes a new process first, because the program may have changed its era. Rejects with a Fault, or
 * with a Contradiction if the program is legacy now.
 */
export async function connect(
  principal: string,
  server: ServerOptions,
  { detection, capacity }: Access,
): Promise<Peer> {
  const { transport, timeouts, era } = server
  detection.throwIfDown()
  await capacity.mayStart(principal)
  try {
    if (transport.kind === 'http' || era === 'modern' || detection.hasSpare)
      return await detection.channel(transport, { stateless: true })
    // A new process may be slow to start, so the probe may take as long as `initialize`.
    const timeout = Math.max(timeouts.probe, timeouts.initialize)
    const finding = await probe(server, { timeout, start: timeouts.start })
    if (finding.era === 'modern') return finding.peer
    const { peer, unanswered } = finding
    const { start = timeout } = timeouts
    const late = unanswered && peer && notStarted(peer.channel, 'server/discover', { silence: timeout, start })
    await peer?.channel.close()
    if (late) throw late
  } catch (error) {
    throw detection.failed(error)
  }
  throw new Contradiction('modern', 'The server no longer supports 2026-07-28')
}
