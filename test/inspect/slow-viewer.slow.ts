/** A viewer of the inspector that does not read: it costs the bridge nothing, and the others nothing. */
import { connect } from 'node:net'
import t from 'tap'
import { MAX_BEHIND } from '../../src/inspector/viewer.js'
import { until } from '../support/eventually.js'
import { follow, startInspector, TOKEN } from '../support/inspector.js'
import { tellCall, tickingRing } from '../support/sights.js'

const authorization = `Bearer ${TOKEN}`

t.test('disconnects a viewer that does not read, with the reason; others see everything', async (t) => {
  const ring = tickingRing({ bounds: { calls: 1e6, messages: 1e6, bytes: 64 * 1024 * 1024 } })
  const base = await startInspector(t, ring)
  const deaf = connect(Number(new URL(base).port), '127.0.0.1')
  t.teardown(() => deaf.destroy())
  let closed = false
  deaf.on('close', () => {
    closed = true
  })
  deaf.pause()
  deaf.write(
    `GET /inspect/events HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nauthorization: ${authorization}\r\n\r\n`,
  )
  const good = follow(t, `${base}/inspect/events`)
  let calls = 0
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  // The system takes some megabytes before the bridge notices that nobody reads.
  while (ring.recorded < 18 * MAX_BEHIND) {
    tellCall(ring.record, { id: calls++ })
    while (ring.last - good.events.length > 1_000) await turn()
  }
  await until(() => good.events.length === ring.last, 'a viewer that reads has got everything')
  for (const [i, seen] of good.events.entries()) if (seen.seq !== i + 1) t.fail(`event ${i} is ${seen.seq}`)
  let text = ''
  deaf.setEncoding('utf8')
  deaf.on('data', (chunk) => {
    text = (text + chunk).slice(-2_000)
  })
  deaf.resume()
  await until(() => closed, 'the connection is closed')
  t.match(text, /event: dropped\ndata: \{"why":"This viewer reads too slowly/)
})
