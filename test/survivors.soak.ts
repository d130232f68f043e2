/** What short garbage collections find alive while calls come and go, as V8 itself reports it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { execPath } from 'node:process'
import t from 'tap'
import { type Candidate, candidates } from './bench/candidates.js'
import { jobFor, load, withPeers } from './bench/measure.js'
import { urlAt } from './bench/questions.js'
import { smallCall } from './bench/scenarios.js'
import { main } from './support/cli.js'
import { PATIENCE } from './support/eventually.js'
import { freePort } from './support/free-port.js'

const LANES = ['legacy-modern-http', 'modern-legacy-http', 'legacy-legacy-http', 'legacy-modern-stdio']
/** So many calls at a time make V8 replace the tables of Maps and Sets again and again. */
const CONNECTIONS = 64
const CALLS = 4_000
/** The share of all bytes that may survive a collection: the calls that are running are about 5 %. */
const SHARE = 0.3

for (const name of LANES)
  t.test(`ended calls do not survive short collections: ${name}`, async (t) => {
    const lane = candidates.find((one) => one.name === name) as Candidate
    const collections = await withPeers([lane], async (generator, ports, started) => {
      const [port, admin] = [await freePort(), await freePort()]
      const server = urlAt(ports.get(lane.server) as number)
      const args = lane.proxy?.({ port, admin, server, url: urlAt(port), bridge: main, redis: undefined }) ?? []
      const bridge = spawn(execPath, ['--trace-gc', '--trace-gc-nvp', ...args], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      started.unshift(bridge)
      let told = ''
      bridge.stdout.setEncoding('utf8').on('data', (text: string) => {
        told += text
      })
      const running = { candidate: lane, port, process: bridge }
      const ready = { ...running, job: await jobFor(running, smallCall), windows: [] }
      const amount = { connections: CONNECTIONS, milliseconds: PATIENCE, requests: CALLS }
      await load(generator, ready, amount)
      told = ''
      await load(generator, ready, amount)
      bridge.kill()
      await once(bridge, 'close')
      return told.split('\n').filter((line) => line.includes(' gc=s '))
    })
    const sum = (field: string) =>
      collections.reduce((all, line) => all + Number(new RegExp(` ${field}=(\\d+)`).exec(line)?.[1]), 0)
    t.ok(collections.length > 0, 'V8 has reported short collections')
    const share = (sum('promoted') + sum('new_space_survived')) / sum('allocated')
    t.ok(share < SHARE, `${Math.round(100 * share)} % of the bytes survive`)
  })
