/** Large requests, and small ones in large requests: nothing of them stays in memory. The bridge has a heap of 512 MB. */
import t from 'tap'
import { inParallel, LARGE, ledgerEmpty, MIDDLE, overHttp, statusesOf } from '../support/attack.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Answer, call } from '../support/modern.js'
import { besideHealthy, startSmall } from '../support/small-heap.js'

t.test('refuses capabilities of 3.9 MB, and keeps none of 133 different ones', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'legacy'))
  const answers: Answer[] = []
  await besideHealthy(t, attacked, async () => {
    const capabilities = (at: number) => ({ experimental: { [`x${at}`]: { text: 'x'.repeat(LARGE) } } })
    const meta = (at: number) => ({ 'io.modelcontextprotocol/clientCapabilities': capabilities(at) })
    const sent = await inParallel(133, 4, (at) => call(attacked.url, 'tools/list', {}, { meta: meta(at) }))
    answers.push(...sent)
  })
  t.same(statusesOf(answers), { 400: 133 })
  t.match(answers[0]?.message.error, { code: -32602, message: /clientCapabilities.*64 KiB/ })
  await ledgerEmpty(attacked)
})

t.test('small capabilities in large requests keep no request in memory', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'legacy'))
  await besideHealthy(t, attacked, async () => {
    const meta = (at: number) => ({
      'io.modelcontextprotocol/clientInfo': { name: `client ${at}`, version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': { experimental: { [`a capability ${at}`]: {} } },
    })
    const params = { name: 'echo', arguments: { text: 'x'.repeat(MIDDLE) } }
    const answers = await inParallel(800, 4, (at) => call(attacked.url, 'tools/call', params, { meta: meta(at) }))
    t.ok(
      answers.every(({ status }) => status === 200 || status === 503),
      JSON.stringify(statusesOf(answers)),
    )
  })
  await ledgerEmpty(attacked)
})

t.test('a translated session refuses a legacy client with capabilities of 3.9 MB', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  const capabilities = { experimental: { text: { x: 'x'.repeat(LARGE) } } }
  const answers: Answer[] = []
  await besideHealthy(t, attacked, async () => {
    answers.push(
      ...(await inParallel(133, 4, async () => (await LegacyClient.open(attacked.url, { capabilities })).opened)),
    )
  })
  t.ok(answers.every(({ message }) => message.error?.code === -32602))
  t.match(answers[0]?.message.error?.message, /capabilities.*64 KiB/)
  await ledgerEmpty(attacked)
})

t.test('refuses names of 3.9 MB that would become headers, and keeps none', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  const client = await LegacyClient.open(attacked.url)
  const answers: Answer[] = []
  await besideHealthy(t, attacked, async () => {
    const text = (at: number) => `${at}${'x'.repeat(LARGE)}`
    answers.push(...(await inParallel(100, 4, (at) => client.request('tools/call', { name: text(at), arguments: {} }))))
    answers.push(...(await inParallel(100, 4, (at) => client.request('resources/read', { uri: `x:${text(at)}` }))))
  })
  t.ok(answers.every(({ message }) => message.error?.code === -32602))
  t.match(answers[0]?.message.error?.message, /params\.name .*too long/)
  await ledgerEmpty(attacked)
})

t.test('short names in large requests keep no request in memory', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  const client = await LegacyClient.open(attacked.url)
  await besideHealthy(t, attacked, async () => {
    const args = { text: 'x'.repeat(MIDDLE) }
    await inParallel(800, 4, (at) =>
      client.request('prompts/get', { name: `a prompt of some name ${at}`, arguments: args }),
    )
  })
  await ledgerEmpty(attacked)
})
