/** Clients that leave at the worst of moments leave nothing behind. Names begin with the number of the hole. */
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { modernRequest } from '../support/attack.js'
import { startBridge } from '../support/bridge.js'
import { type EventStream, openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call, envelope, headersFor } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { sendText } from '../support/plain-http.js'
import { raw } from '../support/raw.js'

const ROUNDS = 240

t.test('ends a subscription that is acknowledged after its client left', async (t) => {
  let agree = () => {}
  const http = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['method'] !== 'resources/subscribe') return false
      agree = () => sendText(response, JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: {} }))
      return true
    },
  })
  const { url, open, connections } = await counting(t, { url: http.url })
  const leave = listen(url, { resourceSubscriptions: ['test://a'] })
  await until(() => http.of('resources/subscribe').length === 1, 'the subscription at the server')
  leave()
  await until(async () => (await connections()) <= 1, 'the bridge to notice')
  agree()
  await until(async () => (await open()) === 0, 'the end of the subscription')
  await until(() => http.of('resources/unsubscribe').length === 1, 'the server to be told')
})

t.test('ends a subscription whose client leaves before or during the acknowledgement', async (t) => {
  const http = await LegacyHttp.start(t)
  const servers = {
    'a legacy server': legacyStdio(t).server,
    'a modern one': modernStdio(t).server,
    HTTP: { url: http.url },
  }
  for (const [name, server] of Object.entries(servers)) {
    const { url, bridge, log, open } = await counting(t, server)
    t.equal((await call(url, 'tools/list')).status, 200)
    let left = 0
    for (let round = 0; round < ROUNDS; round++) {
      const leave = listen(
        url,
        { toolsListChanged: true },
        {
          sent: () => setTimeout(() => leave(), (round % 60) / 2),
          left: () => left++,
        },
      )
    }
    await until(() => left === ROUNDS, 'all of them to leave')
    await until(async () => (await open()) === 0, `the end of all subscriptions with ${name}`)
    t.equal(await open(), 0, name)
    const lines = () => log.filter(({ event, method }) => event === 'call' && method === 'subscriptions/listen')
    t.ok(lines().length > 0, `${name}: some came that far`)
    t.equal(bridge.mounts.get('test')?.busy.calls, 0, name)
  }
})

t.test('a subscription that ends for lack of memory holds nothing', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url, log, open, memory } = await counting(t, { url: http.url }, { limits: { memory: 1024 * 1024 } })
  t.equal((await call(url, 'tools/list')).status, 200)
  const uris = (count: number) => Array.from({ length: count }, (_, at) => `test://${at}/${'x'.repeat(2_000)}`)
  const connections: EventStream[] = []
  const noRoom = () => log.some(({ event, fault }) => event === 'call' && fault === 'answerLost')
  // Smaller and smaller ones fill the memory, until one has room for itself and none for its acknowledgement.
  for (let count = 20; count > 0 && !noRoom(); ) {
    const notifications = { resourceSubscriptions: uris(count) }
    const { headers, body } = modernRequest('subscriptions/listen', { notifications })
    const connection = await openStream('POST', url, headers, body)
    connections.push(connection)
    if (connection.status !== 200) count--
  }
  t.ok(noRoom(), 'one was taken that could not be acknowledged')
  for (const connection of connections) connection.leave()
  await until(async () => (await open()) === 0, 'the end of all subscriptions')
  await until(async () => (await memory()) === 0, 'no memory in use')
})

/** A bridge, and how many subscriptions are open with it. */
async function counting(t: Test, server: object, settings: object = {}) {
  const started = await startBridge(t, server, settings, { metrics: new Metrics({ version: '0' }) })
  const used = async (bound: string) => {
    const asked = `GET /metrics HTTP/1.0\r\nhost: ${new URL(started.url).host}\r\n\r\n`
    const { body } = await raw(started.url, [asked])
    return Number(new RegExp(`bound_used\\{bound="${bound}",server=""\\} (\\d+)`).exec(body)?.[1])
  }
  return {
    ...started,
    open: () => used('subscriptions'),
    connections: () => used('connections'),
    memory: () => used('memory'),
  }
}

/** Opens a subscription. `sent` is called when it is on its way. Gives what leaves it. */
function listen(url: string, notifications: object, { sent = () => {}, left = () => {} } = {}): () => void {
  const params = { notifications, _meta: envelope() }
  const listening = request(url, { method: 'POST', headers: headersFor('subscriptions/listen'), agent: false })
  listening.on('error', () => {}).on('close', left)
  listening.on('response', (response) => response.on('error', () => {}).resume())
  listening.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params }), sent)
  return () => listening.destroy()
}
