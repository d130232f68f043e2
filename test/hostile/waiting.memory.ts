/** Calls that wait for their clients, and results that do. The bridge has a heap of 512 MB. */
import t from 'tap'
import { inParallel, LARGE, ledgerEmpty, overHttp } from '../support/attack.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'
import { besideHealthy, bulkyStdio, startSmall } from '../support/small-heap.js'

t.test('stored answers of 4 MB for Last-Event-ID make room for each other', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  await besideHealthy(t, attacked, async () => {
    await inParallel(160, 4, async () => {
      const client = await LegacyClient.open(attacked.url, { revision: '2025-06-18' })
      const args = { bytes: 4_000_000, notes: 1 }
      const answer = await client.call('bulk', args, { meta: { progressToken: 'p' } })
      t.equal(answer.messages.length, 2)
    })
  })
  const { used, limit } = await attacked.gauge()
  t.ok(used > limit / 2 && used <= limit, `${used} of ${limit} is kept`)
})

t.test('calls with an open question keep no large request in memory', async (t) => {
  const limits = { parkedPerPrincipal: 200 }
  const attacked = await startSmall(t, bulkyStdio('legacy'), { limits })
  await besideHealthy(t, attacked, async () => {
    const params = { name: 'bulk', arguments: { ask: true, text: 'x'.repeat(LARGE) } }
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
    const answers = await inParallel(60, 2, () => call(attacked.url, 'tools/call', params, { meta }))
    t.ok(answers.every(({ message }) => message.result?.['resultType'] === 'input_required'))
  })
  const { used, limit } = await attacked.gauge()
  t.ok(used > 0 && used < limit / 20, `${used} of ${limit} is reserved for them`)
})

t.test('stores results of tasks that are not fetched while there is memory', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'), { compat: { emulateTasks: true } })
  await besideHealthy(t, attacked, async () => {
    const clients = await inParallel(2, 1, () => LegacyClient.open(attacked.url, { revision: '2025-11-25' }))
    const params = { name: 'bulk', arguments: { bytes: 4_000_000 }, task: { ttl: 600_000 } }
    const begun = await inParallel(80, 4, (at) => (clients[at % 2] as LegacyClient).request('tools/call', params))
    const tasks = begun.flatMap(({ message }) => (message.result?.['task'] as { taskId: string } | undefined) ?? [])
    t.equal(tasks.length, 80)
    const listed = async () => {
      const answers = await Promise.all(clients.map((client) => client.request('tasks/list')))
      return answers.flatMap(({ message }) => message.result?.['tasks'] as { status: string }[])
    }
    await until(async () => (await listed()).every(({ status }) => status !== 'working'), 'all tasks having ended')
    const statuses = (await listed()).map(({ status }) => status)
    t.ok(statuses.includes('completed') && statuses.includes('failed'), JSON.stringify(statuses))
    for (const client of clients) await client.end()
  })
  await ledgerEmpty(attacked)
})
