/** Many short clients of all kinds, one after the other, leave nothing behind. */
import t from 'tap'
import { until } from '../support/eventually.js'
import { type Held, isRunning, KEPT, KINDS, startVisited, visitOnStdio } from '../support/short-clients.js'

const CLIENTS = Number(process.env['SHORT_CLIENTS'] ?? 300)
/** Milliseconds after which no more clients come, on a machine that has other things to do. */
const AT_MOST = Math.max(120_000, CLIENTS * 500)
/** Clients before the first look, so that what is only made once is there. */
const WARM_UP = 80
/** Every so many clients, one on stdio starts a bridge of its own. */
const ON_STDIO = 50
/** Bytes of the heap that may come and go, and that a client may leave, far less than what any session takes. */
const HEAP = { all: 2 * 1024 * 1024, each: 1_024 }

t.test(`${CLIENTS} short clients leave nothing behind`, async (t) => {
  const { places, held } = await startVisited(t)
  const kinds = Object.entries(KINDS)
  const failed: string[] = []
  const left: number[] = []
  let clients = 0
  const come = async (count: number, before?: Held) => {
    const deadline = performance.now() + AT_MOST
    for (let n = 0; n < count && performance.now() < deadline; n++) {
      const [kind, visit] = kinds[n % kinds.length] as (typeof kinds)[number]
      const place = places[Math.floor(n / kinds.length) % places.length] as (typeof places)[number]
      await visit(place).catch((error: unknown) => failed.push(`${kind} at ${place.url}: ${String(error)}`))
      if (n % ON_STDIO === ON_STDIO - 1) left.push(...(await visitOnStdio(t)))
      clients++
    }
    return held(before)
  }
  const before = await come(WARM_UP)
  clients = 0
  const after = await come(CLIENTS, before)
  t.comment(JSON.stringify({ clients, before, after }))
  t.same(failed.slice(0, 3), [], 'all were served')
  t.ok(clients > 0)
  t.equal(after.processes, 0)
  t.ok(after.sockets <= before.sockets + KEPT, 'sockets')
  t.ok(after.files <= before.files + KEPT, 'files')
  t.ok(after.heap - before.heap < HEAP.all + clients * HEAP.each, 'heap')
  await until(() => !left.some(isRunning), 'the end of all that was started on stdio')
})
