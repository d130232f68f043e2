/** Clients of each kind leave nothing behind: no processes, sockets, files or memory, when their time is over. */
import t from 'tap'
import { until } from '../support/eventually.js'
import { isRunning, KEPT, KINDS, startVisited, visitOnStdio } from '../support/short-clients.js'

/** Visits of a kind at each place. */
const VISITS = 2
/** Bytes of the heap that may come and go: compiled code, and what is kept for the next call. */
const HEAP = 3 * 1024 * 1024

t.test('clients of each kind leave nothing behind', async (t) => {
  const { places, held } = await startVisited(t)
  const visitAll = (kind: string) =>
    Promise.all(
      places.map((place) =>
        KINDS[kind]?.(place).catch((cause: unknown) => {
          throw new Error(`${kind} at ${place.url}`, { cause })
        }),
      ),
    )
  // What is only made once is there afterwards.
  for (const kind of Object.keys(KINDS)) await visitAll(kind)
  let before = await held()
  for (const kind of Object.keys(KINDS)) {
    for (let n = 0; n < VISITS; n++) await visitAll(kind)
    const after = await held(before)
    t.equal(after.processes, 0, kind)
    t.ok(after.sockets <= before.sockets + KEPT, `${kind}: sockets, ${before.sockets} before, ${after.sockets} after`)
    t.ok(after.files <= before.files + KEPT, `${kind}: files, ${before.files} before, ${after.files} after`)
    t.ok(after.heap - before.heap < HEAP, `${kind}: heap, ${before.heap} before, ${after.heap} after`)
    before = after
  }
})

t.test('a client on stdio leaves no bridge and no program behind', async (t) => {
  const pids = await visitOnStdio(t)
  t.equal(pids.length, 2)
  await until(() => !pids.some(isRunning), 'the end of all processes')
})
