/** Garbage of messages that are over is collected when so many have passed, and nothing else of V8 changes for that. */
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { collectYoung } from '../../src/cli/garbage.js'
import { startBridge } from '../support/bridge.js'
import { call } from '../support/modern.js'
import { bulkyStdio } from '../support/small-heap.js'

const { NODE_PERFORMANCE_GC_MINOR, NODE_PERFORMANCE_GC_FLAGS_FORCED: FORCED } = constants
const MIB = 1024 * 1024

t.test('collects young garbage, and shows no program how', async (t) => {
  const collected = new Promise<void>((resolve) => {
    const observer = new PerformanceObserver((list) => {
      const entries = list.getEntries() as { detail?: { kind?: number; flags?: number } }[]
      if (entries.some(({ detail }) => detail?.kind === NODE_PERFORMANCE_GC_MINOR && detail.flags === FORCED)) resolve()
    })
    observer.observe({ entryTypes: ['gc'] })
    t.teardown(() => observer.disconnect())
  })
  collectYoung()
  await collected
  t.equal(runInNewContext('typeof gc'), 'undefined')
})

t.test('a bridge asks for it after large answers of a program', async (t) => {
  let asked = 0
  const { url } = await startBridge(t, bulkyStdio('legacy'), {}, { collectYoung: () => asked++ })
  const bulk = (bytes: number) => call(url, 'tools/call', { name: 'bulk', arguments: { bytes } })
  for (let calls = 0; calls < 20; calls++) await bulk(1_000)
  t.equal(asked, 0)
  for (let calls = 0; calls < 20; calls++) t.equal((await bulk(MIB)).status, 200)
  t.equal(asked, 1)
})
