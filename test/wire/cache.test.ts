/** What is kept of results, through a bridge in front of real servers. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { ADA, all, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { hears, listen } from '../support/listening.js'
import { type Answer, CAPABILITIES, call, SERVER_INFO } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'

type Json = Record<string, unknown>

const TOKENS = { alice: 'canary-of-alice-0123456789', bob: 'canary-of-bob-0123456789' }
const auth = { tokens: TOKENS }
const headersOf = (who: keyof typeof TOKENS) => ({ authorization: `Bearer ${TOKENS[who]}` })
const STATIC = 'test://static'
const HINTS = { ttlMs: 60_000, cacheScope: 'private' as const }
const PUBLIC = { ttlMs: 60_000, cacheScope: 'public' as const }

/** A server, and how often it has been asked. */
interface Asked {
  server: object
  times(method: string): number
  /** Nothing that has reached it was other than it has to be. */
  violations(): unknown[]
}

const MODERN: Record<string, (t: Test, hints: typeof HINTS | typeof PUBLIC) => Promise<Asked>> = {
  'a modern server over HTTP': async (t, hints) => {
    const modern = await ModernHttp.start(t, { pages: 1, ...hints })
    const server = { url: modern.url }
    return { server, times: (method) => modern.of(method).length, violations: () => modern.violations() }
  },
  'a modern server on stdio': async (t, hints) => {
    const modern = modernStdio(t, { pages: 1, ...hints })
    return { server: modern.server, times: timesIn(modern), violations: () => modern.violations() }
  },
}

const LEGACY: Record<string, (t: Test) => Promise<Asked>> = {
  'a legacy server over HTTP': async (t) => {
    const legacy = await LegacyHttp.start(t)
    return { server: { url: legacy.url }, times: (method) => legacy.of(method).length, violations: () => [] }
  },
  'a legacy server on stdio': async (t) => {
    const legacy = legacyStdio(t)
    return { server: legacy.server, times: timesIn(legacy), violations: () => [] }
  },
}

const timesIn =
  ({ messages }: { messages(): Json[] }) =>
  (method: string) =>
    messages().filter((message) => message['method'] === method).length

/** What clients ask for that may be kept. */
const READS: [method: string, params: Json][] = [
  ['server/discover', {}],
  ['tools/list', {}],
  ['prompts/list', {}],
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['resources/read', { uri: STATIC }],
]

async function start(
  t: Test,
  { server, times }: Pick<Asked, 'server' | 'times'>,
  cache: object,
  settings: object = { auth },
) {
  const { url, log } = await startBridge(t, { ...server, ...cache }, settings)
  /** Asks, and gives the answer with whether the server was asked. */
  const ask = async (who: keyof typeof TOKENS, method: string, params: Json = {}, meta: Json = {}) => {
    const before = times(method)
    const answer = await call(url, method, params, { headers: headersOf(who), meta })
    return { answer, result: answer.message.result as Json, reached: times(method) > before }
  }
  return { url, log, ask, times }
}

/** A result without what changes as time goes by. */
function lasting({ message }: Answer): Json {
  const { ttlMs, ...rest } = message.result as Json
  return rest
}

for (const [name, serve] of Object.entries(MODERN)) {
  t.test(`a private result of ${name} is never served to another token`, async (t) => {
    const asked = await serve(t, HINTS)
    const { ask } = await start(t, asked, { cache: 'hints', cacheFor: 'public' })
    for (const [method, params] of READS) {
      const first = await ask('alice', method, params)
      t.ok(first.reached, `${method}: nobody has asked`)
      t.same([first.result['ttlMs'], first.result['cacheScope']], [60_000, 'private'], method)
      const again = await ask('alice', method, params)
      t.notOk(again.reached, `${method}: it is kept`)
      t.same(lasting(again.answer), lasting(first.answer), `${method}: all else is the same`)
      t.ok(Number(again.result['ttlMs']) <= 60_000 && Number(again.result['ttlMs']) > 0, method)
      const other = await ask('bob', method, params)
      t.ok(other.reached, `${method}: it is not another's`)
      t.notOk((await ask('bob', method, params)).reached, method)
    }
    t.same(asked.violations(), [])
  })

  t.test(`serves a public result of ${name} to everybody, with its remaining time`, async (t) => {
    const { ask } = await start(t, await serve(t, PUBLIC), { cache: 'hints' })
    for (const [method, params] of READS) {
      const first = await ask('alice', method, params)
      const other = await ask('bob', method, params)
      t.same([first.reached, other.reached], [true, false], method)
      t.same(lasting(other.answer), lasting(first.answer), method)
      t.equal(other.result['cacheScope'], 'public', method)
      const capable = await ask('bob', method, params, { [CAPABILITIES]: { roots: {} } })
      t.ok(capable.reached, `${method}: who can do other things may get something else`)
    }
  })

  t.test(`neither serves nor caches results of retries from ${name}`, async (t) => {
    const asked = await serve(t, PUBLIC)
    const { url } = await startBridge(t, { ...asked.server, cache: 'hints' })
    const { call: read, again } = talk(url)
    for (let n = 0; n < 2; n++) {
      const before = asked.times('resources/read')
      const first = await read('resources/read', { uri: 'test://ask' })
      t.equal(first.message.result?.['resultType'], 'input_required', 'what came of the answers is not kept')
      const last = await again(first, all(first, ADA))
      t.match(last.message.result, { resultType: 'complete', contents: [{ uri: 'test://ask' }] })
      t.equal(asked.times('resources/read'), before + 2, 'every one of them reaches the server')
    }
    t.same(asked.violations(), [])
  })
}

t.test('requests a resource each time from a legacy server that asks before reading', async (t) => {
  for (const way of ['over stdio', 'on the stream of the call over HTTP'] as const) {
    const asker = await startAsker(t, way)
    const { url } = await startBridge(t, { ...asker.server, cache: 60_000, cacheFor: 'public' })
    const { call: read, again } = talk(url, asker)
    const times = timesIn(asker)
    for (let n = 1; n <= 2; n++) {
      const question = { steps: [{ ask: [{ method: 'roots/list' }] }] }
      const first = await read('resources/read', { uri: 'test://ask', arguments: question })
      t.equal(first.message.result?.['resultType'], 'input_required', way)
      const last = await again(first, all(first, { roots: [] }))
      t.equal(last.message.result?.['resultType'], 'complete', way)
      t.equal(times('resources/read'), n, way)
    }
  }
})

t.test('invalid hints count as private and expired', async (t) => {
  for (const ttlMs of [-1, 1.5, '60000', null, {}]) {
    const modern = await ModernHttp.start(t, { cacheScope: 'public', ttlMs: ttlMs as number })
    const asked = { server: { url: modern.url }, times: (method: string) => modern.of(method).length }
    const byHints = await start(t, asked, { cache: 'hints', cacheFor: 'public' })
    // The scripted server takes null for nothing said, and says that it holds for no time.
    const sound = ttlMs === null
    for (let n = 0; n < 2; n++) {
      const { reached, result } = await byHints.ask('alice', 'tools/list')
      t.ok(reached, JSON.stringify(ttlMs))
      t.same([result['ttlMs'], result['cacheScope']], [0, sound ? 'public' : 'private'], JSON.stringify(ttlMs))
    }
    const byTime = await start(t, asked, { cache: 60_000, cacheFor: 'public' })
    const reached = []
    for (const who of ['alice', 'alice', 'bob'] as const) reached.push((await byTime.ask(who, 'tools/list')).reached)
    t.same(reached, [true, false, !sound], JSON.stringify(ttlMs))
  }
})

t.test("does not share results that were requested with the caller's credentials", async (t) => {
  const modern = await ModernHttp.start(t, PUBLIC)
  const asked = { server: { url: modern.url }, times: (method: string) => modern.of(method).length }
  for (const cache of [{ cache: 'hints' }, { cache: 60_000, cacheFor: 'public' }]) {
    const { ask } = await start(t, asked, cache, { auth: { passthrough: true } })
    for (const [method, params] of READS.slice(1)) {
      const reached = []
      for (const who of ['alice', 'alice', 'bob', 'bob'] as const)
        reached.push((await ask(who, method, params)).reached)
      t.same(reached, [true, false, true, false], `${method}, ${JSON.stringify(cache)}`)
    }
  }
})

for (const [name, serve] of Object.entries(LEGACY)) {
  t.test(`caches results of ${name} for the configured time, and only for the caller`, async (t) => {
    const { ask } = await start(t, await serve(t), { cache: 60_000 })
    for (const [method, params] of READS.slice(1)) {
      const first = await ask('alice', method, params)
      const again = await ask('alice', method, params)
      const other = await ask('bob', method, params)
      t.same([first.reached, again.reached, other.reached], [true, false, true], method)
      t.same(again.result, first.result, `${method}: to the client it is as it ever was`)
      t.same([again.result['ttlMs'], again.result['cacheScope']], [0, 'private'], method)
      t.match(again.result['_meta'], { [SERVER_INFO]: { name: 'scripted' } }, method)
    }
  })

  t.test(`shares results of ${name} if configured, and never marks them public`, async (t) => {
    const { ask } = await start(t, await serve(t), { cache: 60_000, cacheFor: 'public' })
    for (const [method, params] of READS.slice(1)) {
      const first = await ask('alice', method, params)
      const other = await ask('bob', method, params)
      t.same([first.reached, other.reached], [true, false], method)
      t.same([other.result['ttlMs'], other.result['cacheScope']], [0, 'private'], method)
    }
  })

  t.test(`caches nothing of ${name} without hints, or if disabled`, async (t) => {
    for (const cache of [{ cache: 'hints' }, { cache: 'hints', cacheFor: 'public' }, { cache: 'off' }, {}]) {
      const { ask } = await start(t, await serve(t), cache)
      for (const [method, params] of READS.slice(1)) {
        for (let n = 0; n < 2; n++)
          t.ok((await ask('alice', method, params)).reached, `${method} ${JSON.stringify(cache)}`)
      }
    }
  })

  t.test(`requests a result again that ${name} reported as changed, though no client listens`, async (t) => {
    const { ask } = await start(t, await serve(t), { cache: 3_600_000 })
    const touch = (change: Json) => ask('alice', 'tools/call', { name: 'touch', arguments: change })
    const rows: [change: Json, method: string, params: Json][] = [
      [{ tools: true }, 'tools/list', {}],
      [{ prompts: true }, 'prompts/list', {}],
      [{ resources: true }, 'resources/list', {}],
      [{ resources: true }, 'resources/templates/list', {}],
      [{ uris: [STATIC] }, 'resources/read', { uri: STATIC }],
    ]
    for (const [change, method, params] of rows) {
      // The server may still tell of the changes before.
      await until(async () => !(await ask('alice', method, params)).reached, `${method} from the cache`)
      // Since when the server tells of it, nobody but the bridge knows.
      await until(async () => {
        await touch(change)
        return (await ask('alice', method, params)).reached
      }, method)
    }
  })
}

t.test('listens to a modern server while it caches a result of it', async (t) => {
  const modern = await ModernHttp.start(t, { ...HINTS, pages: 1 })
  const asked = { server: { url: modern.url }, times: (method: string) => modern.of(method).length }
  const { ask, log } = await start(t, asked, { cache: 'hints' })
  for (const [method, params] of READS) await ask('alice', method, params)
  await until(
    () => modern.subscriptions === 1 && modern.of('subscriptions/listen').length === 2,
    'a subscription for all',
  )
  t.match(modern.of('subscriptions/listen').at(-1)?.message, {
    params: { notifications: { toolsListChanged: true, resourceSubscriptions: [STATIC] } },
  })
  const rows: [change: object, dropped: string[]][] = [
    [{ tools: true }, ['server/discover', 'tools/list']],
    [{ prompts: true }, ['server/discover', 'prompts/list']],
    [{ resources: true }, ['server/discover', 'resources/list', 'resources/templates/list']],
    [{ uris: ['test://item/a', STATIC] }, ['resources/read']],
  ]
  for (const [change, dropped] of rows) {
    const reached = new Set<string>()
    modern.touch(change)
    await until(async () => {
      for (const [method, params] of READS) if ((await ask('alice', method, params)).reached) reached.add(method)
      return reached.size >= dropped.length
    }, JSON.stringify(change))
    t.same(reached, new Set(dropped), JSON.stringify(change))
  }
  t.same(modern.violations(), [])
  t.ok(
    log.some(({ event, method, cached }) => event === 'call' && method === 'tools/list' && cached === true),
    'and the log says what was not asked',
  )
  t.notOk(log.some(({ method }) => method === 'subscriptions/listen'))
})

t.test('drops all cached results when the server ends the subscription', async (t) => {
  const modern = await ModernHttp.start(t, { ...HINTS })
  const asked = { server: { url: modern.url }, times: (method: string) => modern.of(method).length }
  const { ask } = await start(t, asked, { cache: 'hints' })
  await ask('alice', 'tools/list')
  await until(() => modern.subscriptions === 1)
  t.notOk((await ask('alice', 'tools/list')).reached)
  modern.cut()
  await until(async () => (await ask('alice', 'tools/list')).reached, 'the end of what is kept')
  await until(() => modern.subscriptions === 1, 'another subscription')
})

t.test('a client that hears of a change and asks at once gets the new result', async (t) => {
  const modern = await ModernHttp.start(t, { ...PUBLIC })
  const asked = { server: { url: modern.url }, times: (method: string) => modern.of(method).length }
  const { ask, url } = await start(t, asked, { cache: 'hints' })
  const stream = await listen(url, { toolsListChanged: true }, { headers: headersOf('bob') })
  await stream.has(1)
  for (let n = 1; n <= 10; n++) {
    await ask('bob', 'tools/list')
    modern.touch({ tools: true })
    await hears(stream, n)
    t.ok((await ask('bob', 'tools/list')).reached)
  }
  stream.leave()
})

t.test('legacy clients are answered from the cache, too, in their form', async (t) => {
  const modern = await ModernHttp.start(t, { pages: 1, ...PUBLIC })
  const { url } = await startBridge(t, { url: modern.url, cache: 'hints' }, { auth })
  const times = () => modern.of('tools/list').length
  const results: unknown[] = []
  for (const who of ['alice', 'bob'] as const) {
    const client = await LegacyClient.open(url, { headers: headersOf(who) })
    for (let n = 0; n < 2; n++) results.push((await client.request('tools/list')).message.result)
  }
  t.equal(times(), 1)
  for (const result of results) {
    t.same(result, results[0])
    for (const member of ['resultType', 'ttlMs', 'cacheScope', '_meta']) t.notOk(member in (result as Json), member)
  }
  await call(url, 'tools/list', {}, { headers: headersOf('alice') })
  t.equal(times(), 2, 'who can send headers may be shown other tools')
})

t.test('calls other than lists and resources bypass the cache', async (t) => {
  const modern = await ModernHttp.start(t, { ...PUBLIC })
  const { url, log } = await startBridge(t, { url: modern.url, cache: 'hints' }, { auth })
  const headers = headersOf('alice')
  for (let n = 0; n < 2; n++) await call(url, 'tools/list', {}, { headers })
  await call(url, 'tools/call', { name: 'echo', arguments: {} }, { headers })
  await call(url, 'tools/call', { name: 'echo', arguments: {} }, { headers })
  t.equal(modern.of('tools/call').length, 2)
  const cached = (method: string) => log.flatMap((line) => (line['method'] === method ? [line['cached'] === true] : []))
  await until(() => cached('tools/call').length === 2, 'the lines of both calls')
  t.same(cached('tools/call'), [false, false])
  t.same(cached('tools/list'), [false, true])
})
