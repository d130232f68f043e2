/** A channel to a server on a pipe that says nothing of itself: a test is the server. */
import { unlimited } from '../../src/base/limits/memory.js'
import type { Channel } from '../../src/servers/transport/channel.js'

/** `more`: what the test looks at. */
export function silentChannel(more: Partial<Channel> = {}): Channel {
  return {
    transport: 'stdio',
    shared: true,
    stateless: false,
    alive: true,
    memory: unlimited(),
    attach() {},
    sendMessage: async () => {},
    abandon() {},
    close: async () => {},
    ...more,
  }
}
