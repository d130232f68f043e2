/** Addresses of this machine, in every way in which they can be written. */
import t from 'tap'
import { isLoopback, parseListen } from '../../src/config/addresses.js'
import { examine } from '../../src/config/settings.js'

const OWN = [
  '127.0.0.1',
  '127.9.8.7',
  'localhost',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::FFFF:7f00:1]',
  '[0:0:0:0:0:ffff:127.1.2.3]',
]
const OTHER = [
  '0.0.0.0',
  '128.0.0.1',
  '[::]',
  '[::ffff:128.0.0.1]',
  '[::ffff:7e00:1]',
  '[::7f00:1]',
  '[2001:db8::ffff:7f00:1]',
]

const listensAt = (host: string) => {
  const listen = parseListen(`http://${host}:1/mcp`)
  return listen.kind === 'http' ? listen.host : ''
}

t.test(
  'a bridge that listens at an address of this machine needs no authentication, however it is written',
  async (t) => {
    for (const [hosts, isOwn] of [
      [OWN, true],
      [OTHER, false],
    ] as const)
      for (const host of hosts) {
        t.equal(isLoopback(listensAt(host)), isOwn, host)
        const file = { mcpServers: { a: { command: 'node' } }, listen: `http://${host}:1/mcp` }
        const { issues } = examine(file, { env: {}, read: () => '' })
        t.equal(issues.length === 0, isOwn, `${host}: ${JSON.stringify(issues)}`)
      }
  },
)
