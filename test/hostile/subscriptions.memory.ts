/** Subscriptions keep what they need and no more. The bridge has a heap of 512 MB. */
import t from 'tap'
import { inParallel, LARGE, ledgerEmpty, modernRequest, overHttp } from '../support/attack.js'
import { type EventStream, openStream } from '../support/events.js'
import { type Answer, call, post } from '../support/modern.js'
import { besideHealthy, bulkyStdio, startSmall } from '../support/small-heap.js'

for (const era of ['legacy', 'modern'] as const) {
  t.test(
    `refuses subscriptions to 3.9 MB of addresses, and open ones keep no request in memory (${era} server)`,
    async (t) => {
      const attacked = await startSmall(t, bulkyStdio(era))
      const refused: Answer[] = []
      const streams: EventStream[] = []
      await besideHealthy(t, attacked, async () => {
        const uris = Array.from({ length: 256 }, (_, at) => `test://${at}/${'x'.repeat(15_000)}`)
        const filter = { notifications: { resourceSubscriptions: uris } }
        refused.push(...(await inParallel(16, 4, () => call(attacked.url, 'subscriptions/listen', filter))))
        const large = { notifications: { toolsListChanged: true }, ignored: 'x'.repeat(LARGE) }
        refused.push(...(await inParallel(16, 4, () => call(attacked.url, 'subscriptions/listen', large))))
        // Those that are as large as they may be are taken as long as there is memory for them.
        const allowed = Array.from({ length: 30 }, (_, at) => `test://${at}/${'x'.repeat(2_000)}`)
        const open = modernRequest('subscriptions/listen', { notifications: { resourceSubscriptions: allowed } })
        const statuses = await inParallel(900, 8, () =>
          openStream('POST', attacked.url, open.headers, open.body).then((stream) => {
            t.teardown(() => stream.leave())
            streams.push(stream)
            return stream.status
          }),
        )
        t.same(
          statuses.filter((status) => status !== 200 && status !== 503),
          [],
        )
      })
      t.ok(
        refused.every(({ message }) => message.error?.code === -32602),
        'all of them are refused',
      )
      for (const stream of streams) stream.leave()
      await ledgerEmpty(attacked)
    },
  )
}

t.test('subscriptions that pass unchanged keep no large request in memory', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  await besideHealthy(t, attacked, async () => {
    const uris = Array.from({ length: 256 }, (_, at) => `test://${at}/${'x'.repeat(15_000)}`)
    const { headers, body } = modernRequest('subscriptions/listen', { notifications: { resourceSubscriptions: uris } })
    const answers = await inParallel(60, 4, () => post(attacked.url, body, headers))
    t.ok(answers.every(({ message }) => message.error?.code === -32602))
  })
  await ledgerEmpty(attacked)
})
