/** Nothing is left running: a server that the bridge has started ends with the bridge, however that ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { environmentFlags, main } from '../support/cli.js'
import { PATIENCE } from '../support/eventually.js'
import { combinations, type Part } from '../support/part.js'
import { EVERYTHING, end, type Named } from './legacy-servers.js'
import { clients } from './modern-clients.js'
import { openTether, type Tether, TIED } from './tether.js'

const servers = [
  { server: 'a server that ends with its input', holds: 'no' },
  { server: 'a server that runs on without input', holds: 'yes' },
]

/** Ways in which the use of a bridge ends. Each brings its bridge to an end before it resolves. */
const endings = [
  ...clients.map(({ name, connect }) => ({
    ending: `${name} that disconnects`,
    bringAbout: (t: Test, named: Named) =>
      t.test('the client uses the server', async (t) => {
        const { client } = await connect(t, named)
        t.ok((await client.listTools()).tools.length > 0)
      }),
  })),
  ...(['SIGTERM', 'SIGINT'] as const).map((signal) => ({
    ending: `a bridge that gets ${signal}`,
    bringAbout: async (t: Test, { upstream, env = {} }: Named) => {
      const bridge = start(t, ['--listen', 'http://127.0.0.1:0/mcp', '--upstream', upstream, ...environmentFlags(env)])
      await logged(bridge, 'server_ready')
      const exit = once(bridge, 'exit')
      bridge.kill(signal)
      t.strictSame(await exit, [0, null])
    },
  })),
]

/** Tests a part of all combinations of servers and endings. */
export async function testEndings(part: Part): Promise<void> {
  const cases = combinations(servers, endings, part)
  t.jobs = cases.length
  await Promise.all(
    cases.map(([{ server, holds }, { ending, bringAbout }]) =>
      t.test(`${ending} leaves no process of ${server}`, { buffered: true }, async (t) => {
        const tether = await openTether(t)
        await bringAbout(t, tied(tether, holds))
        t.ok(tether.tied.length > 0)
        t.equal(await runningOf(tether.tied), 0, `of ${tether.tied.length} servers none runs on`)
      }),
    ),
  )
}

function tied({ port }: Tether, holds: string): Named {
  const env = { TETHER_PORT: String(port), TETHER_HOLDS: holds }
  return { upstream: `stdio:node ${TIED} ${EVERYTHING}`, env }
}

/** Starts the bridge as the program that it is. */
function start(t: Test, args: string[]): ChildProcess {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.teardown(() => end(child))
  return child
}

/** Waits for a line of the bridge's log. */
async function logged({ stderr }: ChildProcess, event: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    createInterface(stderr as Readable)
      .on('line', (line) => {
        if (line.includes(`"event":"${event}"`)) resolve()
      })
      .on('close', () => reject(new Error(`The bridge ended without logging "${event}"`)))
  })
}

/** How many of these servers have not ended. */
async function runningOf(sockets: readonly Socket[]): Promise<number> {
  const signal = AbortSignal.timeout(PATIENCE)
  const open = sockets.filter((socket) => !socket.closed)
  const ends = await Promise.allSettled(open.map((socket) => once(socket, 'close', { signal })))
  return ends.filter(({ status }) => status === 'rejected').length
}
