/** What clients do not see of a server or group, and why: by choice, scopes, groups and trust. */
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { Inspector } from '../../src/inspector/inspector.js'
import type { HiddenItems } from '../../src/mcp/ports/inspected-bridge.js'
import { whyHidden } from '../../src/middle/policy/choice/hidden.js'
import { settingsOf, startBridge } from '../support/bridge.js'
import { startEventful } from '../support/eventful.js'
import { TOKEN } from '../support/inspector.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ModernHttp } from '../support/modern-http.js'

async function start(t: Test, entry: object, more: { tryToken?: string } = {}) {
  const inspector = new Inspector(
    { token: TOKEN, payloads: 'all', callsPerSecond: 500, hide: [], try: true, ...more },
    { version: '0.0.0', log: pino({ level: 'silent' }), folder: undefined, mayTry: true },
  )
  const { bridge } = await startBridge(t, entry, {}, { inspector, recorder: inspector.recorder })
  const ask = (query: string, token = TOKEN) =>
    fetch(`${bridge.inspectUrl}/catalogue${query}`, { headers: { authorization: `Bearer ${token}` } })
  const hiddenOf = async (name: string) => (await (await ask(`?server=${name}`)).json()) as HiddenItems
  return { bridge, ask, hiddenOf }
}

t.test('each reason for which the configuration hides an item is named', async (t) => {
  const tools = { allow: ['a*', 'x'], deny: ['ab*', 'ac'], override: { x: { name: 'ad' } } }
  const resources = { allow: ['file:///a/*'], deny: ['file:///a/secret/*'] }
  const rows: [option: 'tools' | 'resources', rules: object, name: string, why: RegExp | undefined][] = [
    ['tools', tools, 'a', undefined],
    ['tools', tools, 'x', undefined],
    ['tools', tools, 'abc', /"tools\.deny" of the server has "ab\*"/],
    ['tools', tools, 'ac', /has "ac"/],
    ['tools', tools, 'b', /"tools\.allow" of the server does not have it/],
    ['tools', tools, 'ad', /gives its name to another/],
    ['tools', tools, `a${'b'.repeat(10_000)}`, /longer than/],
    ['resources', resources, 'file:///a/b', undefined],
    ['resources', resources, 'file:///b', /"resources\.allow"/],
    ['resources', resources, 'file:///a/secret/b', /has "file:\/\/\/a\/secret\/\*"/],
    ['resources', resources, 'no address', /read in several ways/],
    ['resources', resources, 'file:///a/x/../../b', /"resources/],
  ]
  for (const [option, rules, name, why] of rows) {
    const said = whyHidden({ option, rules: rules as never })(name)
    if (why === undefined) t.equal(said, undefined, name)
    else t.match(said, why, name.slice(0, 60))
  }
})

t.test('hidden types of events are listed with the reason', async (t) => {
  const { url } = await startEventful(t)
  const scopes = { '*.received': ['mail'] }
  const { hiddenOf } = await start(t, { url, events: { deny: ['*.secret'], scopes, callbacks: ['https://a.example'] } })
  const why = 'Calls from this page have no scopes.'
  t.same(
    (await hiddenOf('test')).hidden.filter(({ kind }) => kind === 'event'),
    [
      { kind: 'event', name: 'mail.received', server: 'test', why: `Callers need the scope mail. ${why}` },
      { kind: 'event', name: 'mail.secret', server: 'test', why: '"events.deny" of the server has "*.secret".' },
      { kind: 'event', name: 'deploy.done', server: 'test', why: `Callers need the scope mail. ${why}` },
    ],
  )
})

t.test('a modern server without events is no problem', async (t) => {
  const { hiddenOf } = await start(t, { url: (await ModernHttp.start(t)).url, scopes: { echo: ['mail'] } })
  const { hidden, problem } = await hiddenOf('test')
  t.match(hidden, [{ kind: 'tool', name: 'echo' }])
  t.equal(problem, undefined)
})

t.test('hidden tools, prompts and resources are listed with the reason, and visible ones are not', async (t) => {
  const entry = {
    ...legacyStdio(t, { pages: 2 }).server,
    tools: { deny: ['progress'] },
    resources: { deny: ['*'] },
    scopes: { 'act*': ['orders:write'] },
  }
  const { hiddenOf } = await start(t, entry)
  const { hidden, problem } = await hiddenOf('test')
  t.equal(problem, undefined)
  t.same(
    hidden.filter(({ kind }) => kind === 'tool'),
    [
      {
        kind: 'tool',
        name: 'act',
        server: 'test',
        why: 'Callers need the scope orders:write. Calls from this page have no scopes.',
      },
      { kind: 'tool', name: 'progress', server: 'test', why: '"tools.deny" of the server has "progress".' },
    ],
  )
  t.ok(hidden.some(({ kind }) => kind === 'resource'))
  t.ok(hidden.some(({ kind }) => kind === 'template'))
  t.notOk(hidden.some(({ kind }) => kind === 'prompt'))
})

t.test('a server that hides nothing is not asked, and one that does not answer is a problem', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const open = await start(t, { url: legacy.url })
  t.same(await open.hiddenOf('test'), { hidden: [] })
  t.same(legacy.received, [], 'no request reached the server')
  const gone = await start(t, { url: 'http://127.0.0.1:1/mcp', tools: ['x'] })
  t.match(await gone.hiddenOf('test'), { hidden: [], problem: /test did not answer tools\/list/ })
})

t.test('lists the hidden items of a group, with their servers', async (t) => {
  const { server } = legacyStdio(t)
  const { bridge, ask, hiddenOf } = await start(t, server)
  const both = { a: server, b: { ...server, tools: { deny: ['progress'] } } }
  const groups = { all: { servers: ['a', 'b'] }, found: { servers: ['a', 'b'], search: true } }
  await bridge.reload(settingsOf({ mcpServers: both, groups }))
  t.match(await hiddenOf('all'), { hidden: [{ kind: 'tool', name: 'progress', server: 'b' }] })
  t.match(await hiddenOf('found'), { problem: /search_tools/ })
  t.equal((await ask('?server=no')).status, 404)
  t.equal((await ask('')).status, 400)
})

t.test('a viewer that may not call cannot list hidden items', async (t) => {
  const { ask } = await start(t, { ...legacyStdio(t).server, tools: ['x'] }, { tryToken: 'a-token-that-may-call' })
  t.equal((await ask('?server=test')).status, 403)
  t.equal((await ask('?server=test', 'another-token-of-16')).status, 401)
  t.equal((await ask('?server=test', 'a-token-that-may-call')).status, 200)
})
