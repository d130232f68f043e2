/** A server with several addresses: what goes where, and where it goes when an address fails. */
import type { Test } from 'tap'
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { leaper } from '../support/clock.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Plan } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { type Answer, CAPABILITIES, call } from '../support/modern.js'
import { type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { ownSessions } from '../support/own-sessions.js'
import { openPipe } from '../support/pipe.js'
import { askOn, shakeHands } from '../support/spelled.js'

type Json = Record<string, unknown>

const act = (url: string, key: unknown = '', more: Json = {}): Promise<Answer> =>
  call(url, 'tools/call', { name: 'act', arguments: { key } }, more)

const modern = (t: Test, count = 2, plan: HttpPlan = {}) =>
  Promise.all(Array.from({ length: count }, () => ModernHttp.start(t, plan)))

/** Legacy servers, each with ids of sessions of its own. */
function legacy(t: Test, count = 2, plan: Plan = {}): Promise<LegacyHttp[]> {
  return Promise.all(Array.from({ length: count }, () => LegacyHttp.start(t, { ...plan, override: ownSessions() })))
}

/** Opens sessions, one after the other. */
async function openAll(url: string, count: number): Promise<LegacyClient[]> {
  const clients = []
  while (clients.length < count) clients.push(await LegacyClient.open(url))
  return clients
}

const ECHO = { name: 'echo', arguments: { x: 1 } }
const urlsOf = (servers: readonly { url: string }[]) => servers.map(({ url }) => url)
const callsOf = (servers: readonly { of(method: string): unknown[] }[]) =>
  servers.map((server) => server.of('tools/call').length)

t.test('calls of a modern server spread over its addresses', async (t) => {
  const servers = await modern(t, 3)
  const { url } = await startBridge(t, { url: urlsOf(servers) })
  const answers = await Promise.all(Array.from({ length: 90 }, (_, n) => act(url, n)))
  t.ok(answers.every(({ message }) => message.result))
  for (const { executed } of servers) t.ok(executed > 10, `${executed} calls at an address`)
  t.equal(
    servers.reduce((sum, { executed }) => sum + executed, 0),
    90,
  )
})

t.test(
  'a refused connection, or a 503 that says when to come again, goes to another address; what may have run does not',
  async (t) => {
    let answer: ((key: unknown) => { status: number; headers?: Record<string, string> } | undefined) | undefined
    const runs: unknown[] = []
    const [one, two] = await modern(t, 2, {
      override: ({ message }, response) => {
        if (message?.['method'] !== 'tools/call') return false
        const { arguments: given } = message['params'] as { arguments: Json }
        runs.push(given['key'])
        const instead = answer?.(given['key'])
        if (!instead) return false
        if (instead.status === 0) response.destroy()
        else response.writeHead(instead.status, instead.headers).end()
        return true
      },
    })
    const { url } = await startBridge(t, { url: urlsOf([one, two] as ModernHttp[]) })
    await act(url, 'first')

    let refusals = 0
    const seen = new Set<unknown>()
    /** The first time that a call comes, it is refused. */
    const once = (status: number, headers?: Record<string, string>) => (key: unknown) => {
      if (seen.has(key)) return undefined
      seen.add(key)
      refusals++
      return { status, ...(headers && { headers }) }
    }
    answer = once(503, { 'retry-after': '60' })
    t.ok((await act(url, 'busy')).message.result, '503 with Retry-After')
    t.equal(refusals, 1)

    for (const [what, refuse] of Object.entries({
      '503': once(503),
      '500': once(500),
      'a closed connection': once(0),
    })) {
      answer = refuse
      const { message } = await act(url, what)
      t.match(message.error?.data, { outcome: 'unknown' }, what)
      t.equal(runs.filter((key) => key === what).length, 1, `${what}: sent once`)
    }
    answer = once(429, { 'retry-after': '60' })
    t.match(
      (await act(url, 'often')).message.error,
      { data: { reason: 'upstream_unavailable' } },
      'other addresses do not evade 429',
    )
    answer = undefined

    const back = await (one as ModernHttp).stop()
    for (let n = 0; n < 20; n++) t.ok((await act(url, `alone ${n}`)).message.result)
    await back()
  },
)

t.test('sessions with legacy servers stay at their address, whatever the client', async (t) => {
  const servers = await legacy(t)
  const { url } = await startBridge(t, { url: urlsOf(servers) })
  const clients = await openAll(url, 12)
  const opened = servers.map((server) => server.of('initialize').length)
  t.ok(Math.min(...opened) > 0, `${opened} sessions`)
  for (let n = 0; n < 4; n++) for (const client of clients) t.ok((await client.call('act', { key: n })).message.result)
  const before = callsOf(servers)
  t.equal(
    before.reduce((a, b) => a + b),
    48,
  )
  for (let n = 0; n < 10; n++) t.ok((await act(url, n)).message.result, 'a modern client')
  const after = callsOf(servers).map((count, at) => count - Number(before[at]))
  t.strictSame(
    after.toSorted((a, b) => a - b),
    [0, 10],
  )
})

t.test('"session": "shared" spreads the calls of modern clients over legacy servers', async (t) => {
  const servers = await legacy(t)
  const { url } = await startBridge(t, { url: urlsOf(servers), session: 'shared' })
  for (let n = 0; n < 40; n++) t.ok((await act(url, n)).message.result)
  t.ok(Math.min(...callsOf(servers)) > 5, `${callsOf(servers)}`)
})

t.test('a client on stdio whose address is gone gets a session at another one', async (t) => {
  const servers = await legacy(t)
  const pipe = openPipe(t, { url: urlsOf(servers) })
  await shakeHands(pipe)
  const ask = () => askOn(pipe, 'tools/call', ECHO)
  t.match(await ask(), { result: {} })
  await servers[callsOf(servers).indexOf(1)]?.stop()
  const answers = []
  for (let n = 0; n < 6; n++) answers.push(await ask())
  t.match(answers.at(-1), { result: {} }, 'at the other address')
  t.ok(answers.filter(({ error }) => error).length < 3, 'the third failure is none')
})

t.test(
  'a client over HTTP whose address is gone is told that its session is over, and opens one elsewhere',
  async (t) => {
    const servers = await legacy(t)
    const { url } = await startBridge(t, { url: urlsOf(servers) })
    const client = await LegacyClient.open(url)
    t.ok((await client.request('tools/call', ECHO)).message.result)
    await servers[callsOf(servers).indexOf(1)]?.stop()
    const statuses = []
    for (let n = 0; n < 4; n++) statuses.push((await client.request('tools/call', ECHO)).status)
    t.equal(statuses.at(-1), 404, `${statuses}`)
    for (let n = 0; n < 5; n++) {
      const again = await LegacyClient.open(url)
      t.ok((await again.request('tools/call', ECHO)).message.result)
    }
  },
)

t.test('sessions over HTTP+SSE spread, and stay at their address', async (t) => {
  const servers = [await LegacySse.start(t), await LegacySse.start(t)]
  const { url } = await startBridge(t, { url: urlsOf(servers), type: 'sse' })
  const clients = await openAll(url, 8)
  for (const client of clients)
    for (let n = 0; n < 3; n++) t.ok((await client.request('tools/call', ECHO)).message.result)
  const counts = servers.map(
    ({ received }) => received.filter(({ message }) => message['method'] === 'tools/call').length,
  )
  t.ok(Math.min(...counts) > 0, `${counts}`)
  for (let n = 0; n < 4; n++) t.ok((await call(url, 'tools/call', ECHO)).message.result, 'a modern client')
})

t.test('an address that has failed rests, is tried again, and gets calls as before when it works', async (t) => {
  const leap = leaper(t)
  const [one, two] = (await modern(t)) as [ModernHttp, ModernHttp]
  const { url, bridge, log } = await startBridge(t, { url: urlsOf([one, two]) })
  for (let n = 0; n < 10; n++) await act(url, n)
  const { url: address } = one
  const back = await one.stop()
  for (let n = 0; n < 20; n++) t.ok((await act(url, n)).message.result)
  const health = () => bridge.mounts.get('test')?.health
  t.match(health(), { state: 'ready', addresses: [{ address, state: 'down', why: /refused/ }, { state: 'ready' }] })
  t.equal(log.filter(({ event }) => event === 'address_rests').length, 1)
  await back()
  const before = one.executed
  for (let n = 0; n < 10; n++) await act(url, n)
  t.equal(one.executed, before, 'it rests')
  leap(6_000)
  for (let n = 0; n < 30; n++) await act(url, n)
  t.ok(one.executed > before + 5, 'it has been tried again')
  t.match(health(), { addresses: [{ state: 'ready', era: 'modern', calls: 0 }, { state: 'ready' }] })
  t.equal(log.filter(({ event }) => event === 'address_works').length, 1)
})

t.test('while all addresses fail, the reason is told; the first that works again gets everything', async (t) => {
  const [one, two] = (await modern(t)) as [ModernHttp, ModernHttp]
  const { url, bridge } = await startBridge(t, { url: urlsOf([one, two]) })
  await act(url)
  const backs = [await one.stop(), await two.stop()]
  for (let n = 0; n < 8; n++) t.match((await act(url)).message.error, { data: { outcome: 'not_executed' } })
  t.equal(bridge.mounts.get('test')?.health.state, 'down')
  await backs[1]?.()
  for (let n = 0; n < 8; n++) t.ok((await act(url)).message.result)
  t.equal(two.executed >= 8, true)
})

t.test('addresses may be of different eras, each with its own verdict', async (t) => {
  const [old] = (await legacy(t, 1)) as [LegacyHttp]
  const [young] = (await modern(t, 1)) as [ModernHttp]
  const { url, bridge } = await startBridge(t, { url: urlsOf([old, young]), session: 'shared' })
  await bridge.mounts.get('test')?.server.warmUp()
  const { addresses } = bridge.mounts.get('test')?.health ?? {}
  t.match(addresses, [
    { address: old.url, era: 'legacy' },
    { address: young.url, era: 'modern' },
  ])
  for (let n = 0; n < 40; n++) t.ok((await act(url, n)).message.result)
  t.ok(old.of('tools/call').length > 0 && young.executed > 0, `${old.of('tools/call').length}, ${young.executed}`)
  for (let n = 0; n < 8; n++) {
    const client = await LegacyClient.open(url)
    t.ok((await client.call('act', { key: n })).message.result, 'a legacy client')
    t.ok((await client.call('act', { key: n })).message.result)
  }
})

t.test('answers to a question go to the address that has asked, and tasks stay where they are', async (t) => {
  const servers = await modern(t, 4)
  const { url } = await startBridge(t, { url: urlsOf(servers) })
  const options = { meta: { [CAPABILITIES]: { elicitation: { form: {} } } } }
  for (let n = 0; n < 8; n++) {
    const before = callsOf(servers)
    const params = { name: 'ask-name', arguments: {} }
    const asked = await call(url, 'tools/call', params, options)
    const { inputRequests, requestState } = asked.message.result as { inputRequests: Json; requestState: string }
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests).map((key) => [key, { action: 'accept', content: { name: 'Ada' } }]),
    )
    const answered = await call(url, 'tools/call', { ...params, inputResponses, requestState }, options)
    t.ok(answered.message.result, JSON.stringify(answered.message))
    const changed = callsOf(servers).map((count, at) => count - Number(before[at]))
    t.strictSame(
      changed.toSorted((a, b) => a - b),
      [0, 0, 0, 2],
    )
  }
})

t.test('sessions at two addresses share no cookie', async (t) => {
  const cookies = new Map<string, Set<string | undefined>>()
  const servers = await Promise.all(
    ['one', 'two'].map((name) => {
      const own = ownSessions()
      return LegacyHttp.start(t, {
        override: (received, response) => {
          const { cookie } = received.headers
          cookies.set(name, (cookies.get(name) ?? new Set()).add(cookie))
          response.setHeader('set-cookie', `at=${name}; Path=/`)
          return own(received, response)
        },
      })
    }),
  )
  const { url } = await startBridge(t, { url: urlsOf(servers) })
  for (let n = 0; n < 12; n++) {
    const client = await LegacyClient.open(url)
    await client.call('act', { key: n })
  }
  for (const [name, seen] of cookies) t.strictSame([...seen].filter(Boolean), [`at=${name}`])
  t.equal(cookies.size, 2)
})

t.test('a group, and a bridge with other servers, use each address of a member', async (t) => {
  const servers = await modern(t)
  const others = await legacy(t)
  const { bridge } = await startBridge(
    t,
    { url: urlsOf(servers) },
    { mcpServers: { a: { url: urlsOf(servers) }, b: { url: urlsOf(others) } }, groups: { both: {} } },
  )
  const url = [...bridge.groupUrls.values()][0] as string
  for (let n = 0; n < 20; n++) {
    t.ok((await call(url, 'tools/call', { name: 'a__act', arguments: { key: n } })).message.result)
    t.ok((await call(url, 'tools/call', { name: 'b__act', arguments: { key: n } })).message.result)
  }
  t.ok(servers.every(({ executed }) => executed > 0))
  t.strictSame(
    callsOf(others).toSorted((a, b) => a - b),
    [0, 20],
    'sessions stay',
  )
})
