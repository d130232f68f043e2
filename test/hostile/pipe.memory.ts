/** A client on a pipe that asks and does not read. The bridge has a heap of 512 MB. */
import t from 'tap'
import { bulk, MEGA, overHttp } from '../support/attack.js'
import { until } from '../support/eventually.js'
import { startProgramSmall } from '../support/small-heap.js'

const COUNT = 40

t.test('answers each of 40 calls over a pipe that is not read for a while, with 15 MB or an error', async (t) => {
  const program = startProgramSmall(t, await overHttp(t, 'legacy'), { listen: 'stdio' })
  program.child.stdout.pause()
  const ask = (id: number, bytes: number) =>
    program.child.stdin.write(`${JSON.stringify({ ...JSON.parse(bulk({ bytes }).body), id })}\n`)
  for (let id = 1; id <= COUNT; id++) ask(id, 15 * MEGA)
  await until(() => (program.stderr().match(/"event":"call"/g)?.length ?? 0) >= COUNT, 'all calls being over')
  program.child.stdout.resume()
  // What follows the last line feed is a line that has not ended.
  const lines = () => program.stdout().split('\n').slice(0, -1)
  await until(() => lines().length >= COUNT, 'all calls being answered')
  const answers = lines().map((line) => JSON.parse(line))
  t.same(
    answers.map(({ id }) => id).toSorted((a, b) => a - b),
    Array.from({ length: COUNT }, (_, at) => at + 1),
  )
  const whole = answers.filter(({ result }) => result?.content[0].text.length === 15 * MEGA)
  const lost = answers.filter(({ error }) => error?.code === -32603)
  t.comment(`${whole.length} answers, ${lost.length} errors`)
  t.ok(whole.length > 0 && lost.length > 0 && whole.length + lost.length === COUNT)
  t.match(lost[0].error, { message: /limits.memory/, data: { reason: 'overloaded' } })
  ask(COUNT + 1, 1)
  await until(() => lines().length > COUNT, 'one more call being answered')
  t.match(JSON.parse(lines().at(-1) as string), { id: COUNT + 1, result: {} })
  program.child.stdin.end()
  t.equal(await program.ended, 0)
})
