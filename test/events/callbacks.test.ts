/** Where a server may send its events: addresses of the operator's list that are public. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseSettings } from '../../src/config/settings.js'
import { startBridge } from '../support/bridge.js'
import { SECRET, startEventful, webhook } from '../support/eventful.js'
import { temporaryFolder } from '../support/folder.js'
import { call, envelope, headersFor, post } from '../support/modern.js'

type Json = Record<string, unknown>

const HOOKS = 'https://hooks.example.com/mcp'
const ADDRESSES: Record<string, string[]> = {
  'hooks.example.com': ['93.184.216.34'],
  'rebound.example.com': ['10.1.2.3'],
  'half.example.com': ['93.184.216.34', '127.0.0.1'],
  'mapped.example.com': ['::ffff:169.254.169.254'],
}
const resolve = async (host: string) => ADDRESSES[host] ?? []

async function start(t: Test, callbacks?: string[], settings: Json = {}) {
  const server = await startEventful(t)
  const own = { url: server.url, ...(callbacks && { events: { callbacks } }) }
  const { url } = await startBridge(t, own, settings, { resolve })
  return { url, server, subscribe: async (to: string) => (await call(url, 'events/subscribe', webhook(to))).message }
}

t.test('without a list, no callback is allowed and none is offered', async (t) => {
  const { url, server, subscribe } = await start(t)
  t.match(await subscribe(`${HOOKS}/1`), {
    error: {
      code: -32024,
      message: /the operator lists them in "events.callbacks"/,
      data: { reason: 'callback_refused' },
    },
  })
  const { events } = (await call(url, 'events/list')).message.result as { events: Json[] }
  t.match(events, [
    { name: 'mail.received', delivery: ['poll', 'push'] },
    { name: 'mail.secret', delivery: ['poll'] },
  ])
  t.equal(events.length, 2, 'a type that is sent to addresses alone is left out')
  t.same(
    server.asked.map(({ method }) => method),
    ['events/list'],
  )
})

t.test('a callback on the list reaches the server as the client gave it', async (t) => {
  const { url, server, subscribe } = await start(t, [HOOKS])
  t.match(await subscribe(`${HOOKS}/1?for=me`), { result: { id: 'sub_one', cursor: 'one-1' } })
  t.match(server.asked.at(-1), webhook(`${HOOKS}/1?for=me`))
  const { events } = (await call(url, 'events/list')).message.result as { events: Json[] }
  t.match(events[0], { delivery: ['poll', 'push', 'webhook'] })
})

const REFUSED = [
  ...[
    'https://evil.example.com/mcp',
    'https://hooks.example.com.evil.example/mcp',
    'https://hooks.example.com:8443/mcp',
  ],
  ...['https://hooks.example.com/', 'https://hooks.example.com/mcpx', 'https://hooks.example.com/mcp/%2e%2e%2fadmin'],
  ...['https://rebound.example.com/mcp', 'https://half.example.com/mcp', 'https://mapped.example.com/mcp'],
  ...['https://unknown.example.com/', 'https://127.0.0.1/mcp', 'https://10.0.0.1/', 'https://169.254.169.254/latest'],
  ...['https://[::1]/', 'https://[::ffff:7f00:1]/', 'https://localhost/mcp'],
]
const MALFORMED = [
  ...['http://hooks.example.com/mcp', 'ftp://hooks.example.com/mcp', 'hooks.example.com/mcp', ''],
  ...['https://hooks.example.com@evil.example/mcp', 'https://hooks.example.com\\@evil.example/mcp'],
  ...['https://2130706433/mcp', 'https://0x7f.1/mcp', 'https://127.1/mcp', 'https://[::ffff:127.0.0.1]/mcp'],
  ...['https://hooks.example.com/mcp/../admin', 'https://HOOKS.example.com/mcp', 'https://hooks.example.com./mcp'],
  ...['https://hooks.example.com/mcp#x', ' https://hooks.example.com/mcp', 'https://hooks.example.com/m\ncp'],
]

t.test('no other callback reaches the server, in any spelling', async (t) => {
  const listed = ['rebound', 'half', 'mapped', 'unknown'].map((name) => `https://${name}.example.com`)
  const here = [
    'https://127.0.0.1',
    'https://10.0.0.1',
    'https://169.254.169.254',
    'https://[::1]',
    'https://localhost',
  ]
  const { server, subscribe } = await start(t, [HOOKS, ...listed, ...here, 'https://[::ffff:7f00:1]'])
  for (const url of REFUSED) t.match(await subscribe(url), { error: { code: -32024 } }, url)
  for (const url of MALFORMED) t.match(await subscribe(url), { error: { code: -32602 } }, JSON.stringify(url))
  t.same(server.asked, [])
})

t.test('a subscription that names two addresses is refused', async (t) => {
  const { url, server } = await start(t, [HOOKS])
  const good = `{"mode":"webhook","url":"${HOOKS}","secret":"${SECRET}"}`
  const bad = good.replace(HOOKS, 'https://10.0.0.1/')
  const twice = [
    `"delivery":${bad},"delivery":${good}`,
    `"delivery":${good},"Delivery":${bad}`,
    `"delivery":${good.replace('"mode"', '"url":"https://10.0.0.1/","mode"')}`,
    `"delivery":${good.replace('"mode"', '"URL":"https://10.0.0.1/","mode"')}`,
  ]
  for (const delivery of twice) {
    const meta = JSON.stringify(envelope())
    const body = `{"jsonrpc":"2.0","id":1,"method":"events/subscribe","params":{"name":"mail.received",${delivery},"_meta":${meta}}}`
    const { error } = (await post(url, body, headersFor('events/subscribe'))).message
    t.ok([-32600, -32602].includes(error?.code ?? 0), delivery)
  }
  t.same(server.asked, [])
})

t.test('the audit log says who wanted events, and where to', async (t) => {
  const file = join(temporaryFolder(t), 'audit.jsonl')
  const { url, subscribe } = await start(t, [HOOKS], { audit: { file } })
  await subscribe(`${HOOKS}/1?key=hidden`)
  await subscribe('https://10.0.0.1/')
  await call(url, 'events/poll', { name: 'mail.received' })
  const text = readFileSync(file, 'utf8')
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json)
  t.match(lines, [
    { method: 'events/subscribe', event: 'mail.received', callback: `${HOOKS}/1`, outcome: 'ok' },
    {
      method: 'events/subscribe',
      event: 'mail.received',
      callback: 'https://10.0.0.1/',
      outcome: 'refused',
      reason: 'callback_refused',
    },
    { method: 'events/poll', event: 'mail.received', outcome: 'ok' },
  ])
  t.notMatch(text, /hidden|whsec_/)
})

t.test('an entry of the list has to be an https:// address without user, query and fragment', async (t) => {
  for (const callback of [
    'http://hooks.example.com',
    'https://a@hooks.example.com',
    'https://hooks.example.com/?a',
    'hooks',
  ])
    t.throws(
      () =>
        parseSettings(
          { mcpServers: { s: { url: 'https://s.example', events: { callbacks: [callback] } } } },
          { env: {}, read: () => '' },
        ),
      callback,
    )
})
