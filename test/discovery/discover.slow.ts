/** All of discovery, with real parts: hosts with TLS, a registry, servers of both SDKs, a trust store. */
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { Findings } from '../../src/services/discovery/candidate.js'
import { failure } from '../../src/services/discovery/failure.js'
import type { Progress } from '../../src/services/discovery/progress.js'
import { type Discovered, type DiscoveryParts, discover, type Examined } from '../../src/services/discovery/steps.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyServer, makeWorld, manifestFor, modernServer, offers, serveFound, type World } from '../support/found.js'
import { call } from '../support/modern.js'
import { bytesOf, publisherWith } from '../support/trust.js'

const only = ({ servers }: Discovered): Examined => {
  if (servers.length !== 1) throw new Error(`there are ${servers.length}`)
  return servers[0] as Examined
}
const find = async (world: World, targets = [world.origin], settings: object = {}) => {
  const discovery = world.discovery(settings)
  return discover(targets, discovery.parts, undefined, await discovery.own())
}
const acme = await publisherWith('ed25519')

/** Puts a manifest where it is looked for, signed. */
async function publish({ pages }: World, manifest: object, sign = acme.sign): Promise<void> {
  const bytes = bytesOf(manifest)
  pages['/.well-known/mcp.json'] = bytes
  pages['/.well-known/mcp.json.jws'] = await sign(bytes)
}

for (const [sdk, serverOf] of Object.entries({ 'SDK v1': legacyServer, 'SDK v2': modernServer })) {
  t.test(`${sdk}: from a host to a verdict`, async (t) => {
    const world = await makeWorld(t)
    const offered = offers()
    world.pages['/mcp'] = serverOf(offered)
    t.same((await find(world)).servers, [], 'a host that says nothing names nothing')

    world.pages['/.well-known/mcp.json'] = manifestFor(world.url)
    const unsigned = only(await find(world))
    t.match(unsigned, {
      candidate: { name: 'weather', source: 'well-known' },
      verdict: {
        state: 'quarantined',
        reason: /approval vouches for it.*not signed/,
        remedy: `mcp-bridge trust approve ${world.url}`,
      },
      introspected: {
        era: sdk === 'SDK v1' ? 'legacy' : 'modern',
        handshake: { name: 'weather', version: '1.2.0', revision: sdk === 'SDK v1' ? '2025-11-25' : '2026-07-28' },
      },
    })
    t.same([...(unsigned.introspected?.tools.tools.keys() ?? [])], ['read', 'delete_all'])
    t.same(
      unsigned.steps.map(({ step }) => step),
      ['manifest', 'signature', 'handshake', 'trust'],
    )

    await publish(world, manifestFor(world.url))
    t.match(
      only(await find(world)).verdict,
      { state: 'quarantined', by: undefined },
      'a key that is not in the store is none',
    )
    await world.discovery().store.addKey('acme.test', acme.key)
    t.match(only(await find(world)).verdict, { state: 'trusted', by: 'signature' })

    const byHand = only(await find(world, [world.url]))
    t.match(
      byHand,
      { candidate: { source: 'address' }, verdict: { state: 'trusted', by: 'signature' } },
      'by its address as well',
    )
    t.same(offered.called, [], 'no tool was called')
  })
}

t.test('the order of four sources resolves their contradictions', async (t) => {
  const world = await makeWorld(t)
  const { url, origin, pages } = world
  pages['/mcp'] = modernServer(offers())
  pages['/.well-known/mcp.json'] = manifestFor(url, {}, { name: 'as-the-host-says' })
  const packaged = {
    registryType: 'npm',
    identifier: 'evil',
    version: '1.0.0',
    transport: { type: 'stdio' },
  }
  pages['/v0.1/servers'] = {
    servers: [
      {
        server: {
          name: 'com.example/as-the-registry-says',
          version: '9.9.9',
          remotes: [{ type: 'streamable-http', url: url.replace('mcp.acme', 'MCP.ACME') }],
          packages: [packaged],
        },
      },
    ],
  }
  const file = join(temporaryFolder(t), 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { 'as-i-say': { url: `${url}/`, headers: { 'x-key': 'mine' } } } }))
  const all = await find(world, [`${url}#x`.replace('#x', ''), origin, 'registry:x', file], { registry: origin })
  t.equal(all.servers.length, 2)
  const [one, shown] = all.servers as [Examined, Examined]
  t.match(one.candidate, { name: 'as-i-say', source: 'config', from: file, entry: { headers: { 'x-key': 'mine' } } })
  t.same(
    one.candidate.alsoFrom.map(({ source }) => source),
    ['registry', 'well-known', 'address'],
  )
  t.match(one.verdict, { state: 'trusted', by: 'configuration' })
  t.match(shown, {
    candidate: { runnable: false, entry: { command: 'npx', args: ['-y', 'evil@1.0.0'] } },
    verdict: { state: 'refused', reason: /nobody at this machine has chosen to run it/ },
    introspected: undefined,
  })
  t.same(
    shown.steps.map(({ step }) => step),
    ['trust'],
    'what the network names as a program is not even started',
  )
})

t.test('a manifest that alternates between valid and invalid', async (t) => {
  const world = await makeWorld(t)
  const evil = await publisherWith('ed25519')
  const offered = offers()
  world.pages['/mcp'] = modernServer(offered)
  world.pages['/other'] = modernServer(offers({ name: 'other' }))
  await world.discovery().store.addKey('acme.test', acme.key)
  const good = bytesOf(manifestFor(world.url))
  const bads = [
    bytesOf(manifestFor(world.url, { serial: 8 })),
    bytesOf(manifestFor(`${world.origin}/other`)),
    bytesOf(
      manifestFor(
        world.url,
        {},
        { tools: [{ name: 'read' }, { name: 'delete_all', annotations: { readOnlyHint: true } }] },
      ),
    ),
    Buffer.concat([good, Buffer.from(' ')]),
  ]
  const signed = await acme.sign(good)
  const byEvil = await evil.sign(bads[0] as Uint8Array)
  for (const bad of bads) {
    for (const first of [0, 1]) {
      for (const jws of [signed, byEvil]) {
        let asked = first
        const alternate =
          (even: Uint8Array, odd: Uint8Array) => (_request: unknown, response: { end(b: Uint8Array): void }) =>
            response.end(asked++ % 2 === 0 ? even : odd)
        world.pages['/.well-known/mcp.json'] = alternate(good, bad) as never
        world.pages['/.well-known/mcp.json.jws'] = Buffer.from(jws)
        for (let time = 0; time < 3; time++) {
          for (const { candidate, facts, manifest, verdict } of (await find(world)).servers) {
            if (verdict.state !== 'trusted') continue
            t.equal(facts.endpoint, world.url, 'what is trusted is what was signed')
            t.equal(manifest?.verification.manifest?.serial, 7)
            t.equal(candidate.from, `${world.origin}/.well-known/mcp.json`)
          }
        }
      }
    }
  }
  t.same(offered.called, [])
})

t.test('quarantines a server that contradicts its manifest, and drops the manifest', async (t) => {
  const world = await makeWorld(t)
  await world.discovery().store.addKey('acme.test', acme.key)
  await publish(world, manifestFor(world.url))
  const cases: [what: string, offered: Parameters<typeof offers>[0], manifest: object, said: RegExp][] = [
    ['another name', { name: 'whether' }, {}, /its name is "whether" and not "weather"/],
    ['another version', { version: '6.6.6' }, {}, /its version is "6.6.6"/],
    ['other capabilities', {}, { capabilities: { prompts: {} } }, /list of capabilities/],
    ['another revision', {}, { protocolRevisions: ['2025-06-18'] }, /its revision/],
    ['another tool', {}, { tools: [{ name: 'read', annotations: { readOnlyHint: true } }] }, /"delete_all"/],
    [
      'another hint',
      {},
      { tools: [{ name: 'read', annotations: { readOnlyHint: false } }, { name: 'delete_all' }] },
      /another readOnlyHint/,
    ],
  ]
  let serial = 10
  for (const [what, offered, server, said] of cases) {
    world.pages['/mcp'] = modernServer(offers(offered))
    await publish(world, manifestFor(world.url, { serial: serial++ }, server))
    const discovery = world.discovery()
    const { verdict } = only(await discover([world.origin], discovery.parts))
    t.match(verdict, { state: 'quarantined', reason: said, remedy: '' }, what)
    const before = world.server.asked.length
    await discover([world.origin], discovery.parts)
    t.ok(world.server.asked.slice(before).includes('/.well-known/mcp.json'), `${what}: the manifest is fetched again`)
  }
})

t.test('without a common revision, reports both lists', async (t) => {
  const world = await makeWorld(t)
  world.pages['/.well-known/mcp.json'] = manifestFor(world.url, {}, { protocolRevisions: ['2030-01-01', '2029-01-01'] })
  let reached = 0
  world.pages['/mcp'] = () => reached++
  const { failure, verdict } = only(await find(world))
  t.match(failure, { phase: 'handshake', reason: 'no-common-revision' })
  t.match(failure?.message, /2030-01-01, 2029-01-01.*2026-07-28, 2025-11-25, 2025-06-18/)
  t.equal(verdict.state, 'quarantined')
  t.equal(reached, 0, 'by the manifest alone')

  delete world.pages['/.well-known/mcp.json']
  world.pages['/mcp'] = ((
    request: AsyncIterable<Buffer>,
    response: { writeHead(n: number, h: object): { end(t: string): void } },
  ) => {
    const take = async () => {
      let body = ''
      for await (const piece of request) body += String(piece)
      const { id, method } = JSON.parse(body || '{}') as { id: unknown; method: string }
      const result = { protocolVersion: '2030-01-01', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
      const answer = method === 'initialize' ? { result } : { error: { code: -32601, message: 'no' } }
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    }
    take().catch(() => {})
  }) as never
  const live = only(await find(world, [world.url]))
  t.match(live.failure, {
    phase: 'handshake',
    reason: 'no-common-revision',
    message: /2030-01-01[\s\S]*2026-07-28, 2025-11-25/,
  })
})

t.test('guards connections to servers like those to documents', async (t) => {
  const world = await makeWorld(t)
  world.pages['/mcp'] = modernServer(offers())
  world.pages['/.well-known/mcp.json'] = manifestFor(world.url)
  let accepted = 0
  const trap = createServer((socket) => {
    accepted++
    socket.destroy()
  })
  await new Promise<void>((resolve) => trap.listen(world.server.port, '127.0.0.3', resolve))
  t.teardown(() => trap.close())

  t.ok(only(await find(world)).introspected, 'it can be met')
  const discovery = world.discovery()
  let asked = 0
  // The manifest comes from where it may; the connection after that would lead elsewhere.
  world.resolve.current = () => [asked++ < 5 ? '127.0.0.1' : '127.0.0.3']
  const turned = only(await discover([world.origin], discovery.parts))
  for (let time = 0; time < 5 && !turned.failure; time++) {
    discovery.forgetMeeting(turned.facts.endpoint)
    Object.assign(turned, await discover([world.origin], discovery.parts).then(only))
  }
  t.match(turned.failure, { phase: 'guard', reason: 'internal-address' })
  world.resolve.current = () => ['127.0.0.1', '127.0.0.3']
  t.match(
    only(await find(world, [world.url])).failure,
    { phase: 'guard' },
    'one address that may not be reached is enough',
  )
  for (const url of [
    'https://10.0.0.1/mcp',
    'https://[::ffff:127.0.0.3]/mcp',
    `https://2130706435:${world.server.port}/mcp`,
  ])
    t.match(only(await find(world, [url])).failure, { phase: 'guard' }, url)
  t.equal(accepted, 0, 'nobody has come to the trap')
})

t.test('checks a pin on the connection to the server', async (t) => {
  const world = await makeWorld(t)
  world.pages['/mcp'] = modernServer(offers())
  const { store } = world.discovery()
  const { pin } = await world.discovery().lookAt(world.origin)
  await store.pin(world.origin, [pin])
  t.match(only(await find(world, [world.url])).verdict, { state: 'trusted', by: 'pin' })
  await store.pin(world.origin, ['AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='])
  const { verdict, introspected, failure } = only(await find(world, [world.url]))
  t.match(verdict, { state: 'refused', reason: /another key than the pinned one/, remedy: /^mcp-bridge trust pin / })
  t.equal(introspected, undefined)
  t.match(failure, { phase: 'tls', reason: 'pin' })
})

t.test('a running bridge serves the servers it discovers', async (t) => {
  const world = await makeWorld(t)
  const offered = offers()
  world.pages['/mcp'] = modernServer(offered)
  world.pages['/.well-known/mcp.json'] = manifestFor(
    world.url,
    {},
    { tools: [{ name: 'read', annotations: { readOnlyHint: true }, scopes: ['weather'] }, { name: 'delete_all' }] },
  )
  let now = Date.now()
  const timing = { sleep: async () => {}, now: () => now }
  const options = world.options({}, { timing })
  const { store } = world.discovery({}, { timing })
  const served = await serveFound(t, options)
  const url = served.url('weather')
  const calls = (name: string) => call(url, 'tools/call', { name, arguments: {} }).then(({ message }) => message)

  t.match(await calls('delete_all'), { result: { isError: true } })
  t.same(offered.called, [])
  await world.discovery().store.addKey('acme.test', acme.key)
  const list = { serial: 8 }
  await publish(world, { ...manifestFor(world.url), ...list })
  now += 300_001
  await served.look()
  t.match(
    await calls('delete_all'),
    { result: { content: [{ text: 'delete_all done' }] } },
    'a signature that has come is enough',
  )

  offered.version = '6.6.6'
  await calls('delete_all')
  const differs = await calls('delete_all')
  t.match(
    differs.result,
    { isError: true, content: [{ text: /its version is "6.6.6" and not "1.2.0"/ }] },
    'what it says now counts at once',
  )
  t.equal(offered.called.length, 2)
  offered.version = '1.2.0'
  now += 300_001
  await served.look()
  t.notOk((await calls('delete_all')).result?.['isError'], 'and it is forgiven when it is what it says')

  offered.tools.push({ name: 'exfiltrate' })
  await call(url, 'tools/list', {})
  const before = offered.called.length
  t.match((await calls('delete_all')).result, {
    isError: true,
    content: [{ text: /its tools have changed[\s\S]*added "exfiltrate"/ }],
  })
  t.equal(offered.called.length, before)
  offered.tools.pop()
  await call(url, 'tools/list', {})
  t.match((await calls('delete_all')).result, { isError: true }, 'it takes a person to make up for it')
  const met = only(await find(world, [world.url]))
  await store.approve({
    endpoint: world.url,
    name: 'weather',
    bound: met.verdict.bound,
    tools: ['*'],
    until: now + 86_400_000,
    list: met.introspected?.tools as never,
  })
  t.notOk((await calls('delete_all')).result?.['isError'])

  await call(url, 'tools/list', {})
  const mcp = world.pages['/mcp'] as object
  world.pages['/mcp'] = ((_request: unknown, response: { destroy(): void }) => response.destroy()) as never
  for (let cycle = 0; cycle < 3; cycle++) {
    now += 300_001
    await served.look()
  }
  const gone = served.log.filter(({ event, phase }) => event === 'discovery_failed' && phase === 'handshake')
  t.equal(gone.length, 3, 'each cycle that failed is one line')
  t.match(gone[2], { phase: 'handshake', endpoint: world.url, error: /./, leftAlone: true })
  t.match(await served.metrics.text([]), /mcp_bridge_discovery_failures_total\{phase="handshake",reason="\w+"\} 3/)
  t.match((await calls('read')).error, { data: { reason: 'upstream_unavailable', outcome: 'not_executed' } })
  t.match(JSON.stringify((await call(url, 'tools/list', {})).message), /delete_all \(unavailable\)/)
  delete world.pages['/.well-known/mcp.json']
  world.pages['/mcp'] = mcp
  now += 300_001
  await served.look()
  t.ok(served.found.with(options.settings).mcpServers['weather'], 'what nobody names any more stays')
  t.notMatch(JSON.stringify((await call(url, 'tools/list', {})).message), /unavailable/, 'one trial is enough')
})

t.test('a trust store that cannot be written is one line of the log, and is written when it can be', async (t) => {
  const world = await makeWorld(t)
  world.pages['/mcp'] = modernServer(offers())
  const { store } = world.discovery()
  await store.addKey('acme.test', acme.key)
  await publish(world, manifestFor(world.url))
  mkdirSync(`${store.path}.lock`)
  const served = await serveFound(t, world.options())
  await served.look()
  const lines = (event: string) => served.log.filter((line) => line['event'] === event)
  t.match(lines('trust_store_failed'), [{ path: store.path, err: { message: /trust\.json\.lock/ } }])
  t.equal(lines('trust_store_failed').length, 1)
  t.same(lines('trust_store_resumed'), [])
  rmdirSync(`${store.path}.lock`)
  await served.look()
  await served.look()
  t.match(lines('trust_store_resumed'), [{ path: store.path }])
  t.equal(lines('trust_store_resumed').length, 1)
  const restarted = world.discovery().store
  t.match(restarted.lastOf('acme.test', `${world.origin}/.well-known/mcp.json`), { serial: 7 })
})

t.test('steps run in their order', async (t) => {
  let now = 0
  const found = new Findings()
  const finding = { source: 'well-known', from: 'x', entry: {}, runnable: true } as const
  found.findings.push(
    { ...finding, name: 'a', endpoint: { kind: 'http', url: 'https://a.test/mcp' } },
    { ...finding, name: 'b', endpoint: { kind: 'http', url: 'https://b.test/mcp' } },
  )
  const parts: DiscoveryParts = {
    locate: async (target) => {
      now += 5
      if (target === 'nowhere') throw failure('resolve', 'unknown-host', 'No address is known of nowhere')
      return found
    },
    fetch: async () => undefined,
    forget() {},
    verify: () => Promise.reject(new Error('there is nothing to verify')),
    pinsOf: () => undefined,
    meet: async ({ name }) => {
      if (name === 'b') throw failure('connect', 'refused', 'b cannot be connected to')
      now += 7
      const handshake = { name, version: '1', revision: '2026-07-28', capabilities: [] }
      return {
        era: 'modern',
        transport: 'http',
        why: '',
        handshake,
        tools: { digest: '', tools: new Map() },
        listing: [],
      }
    },
    explainSignIn: () => Promise.reject(new Error('no server requires a sign-in')),
    judge: () => ({
      state: 'quarantined',
      by: undefined,
      bound: 'none',
      dependsOnTools: false,
      reason: 'so',
      missing: '',
      remedy: '',
    }),
    now: () => now,
  }
  const told: Progress[] = []
  const { servers, failures } = await discover(['somewhere', 'nowhere'], parts, (one) => told.push(one))
  t.same(
    failures.map(({ place }) => place),
    ['nowhere'],
  )
  t.same(
    servers.map(({ candidate, introspected, failure }) => [candidate.name, introspected !== undefined, failure?.phase]),
    [
      ['a', true, undefined],
      ['b', false, 'connect'],
    ],
  )
  t.match(told, [
    { about: 'somewhere', step: 'locate', ok: true },
    { about: 'nowhere', step: 'locate', ok: false, message: 'No address is known of nowhere' },
  ])
  t.match(
    told.find(({ about, step }) => about === 'a' && step === 'handshake'),
    { ms: 7, ok: true },
  )
  t.match(
    told.find(({ about, step }) => about === 'b' && step === 'handshake'),
    { ok: false },
  )
})
