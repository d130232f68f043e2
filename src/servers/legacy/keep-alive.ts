/** Pings in a session without calls, so that neither the server nor a load balancer before it ends the session. */
import type { Peer } from '../peer.js'

/** Milliseconds for the answer. */
const WITHIN = 5_000

/** Pings at this interval, in milliseconds, until the channel has ended; never if it is undefined. */
export function keepAlive(peer: Peer, every: number | undefined): void {
  if (every === undefined) return
  const timer = setInterval(() => {
    if (peer.end !== undefined || !peer.channel.alive) clearInterval(timer)
    else if (peer.size === 0) ping(peer)
  }, every).unref()
}

/** What the answer is does not matter: the next call finds out whether the session is lost. */
function ping(peer: Peer): void {
  const { lastUsed } = peer
  const over = () => {
    // For the bounds of idle sessions, the session is as idle as before.
    if (peer.size === 0) peer.lastUsed = lastUsed
  }
  peer.call('ping', undefined, WITHIN).then(over, over)
}
