/**
 * Somebody who wants through: a caller without scopes that knows other spellings of a tool's name, between each client
 * and a server (support/scope-pairs.ts), and through groups. None of them reaches a server.
 */
import t from 'tap'
import { startBridge } from './support/bridge.js'
import { startGuarded } from './support/guarded-bridge.js'
import { LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { call } from './support/modern.js'
import { ModernHttp } from './support/modern-http.js'
import { NAMES, RESTRICTED, testScopes } from './support/scope-pairs.js'
import { TokenIssuer } from './support/token-issuer.js'

const encoded = (name: string) => `=?base64?${Buffer.from(name).toString('base64')}?=`

testScopes(t, 'some')

t.test('other spellings pass neither through groups, with prefixes or without, nor through their search', async (t) => {
  const [old, modern] = [await LegacyHttp.start(t), await ModernHttp.start(t)]
  const { url } = await startBridge(
    t,
    {},
    {
      mcpServers: { old: { url: old.url, ...RESTRICTED }, new: { url: modern.url, ...RESTRICTED } },
      groups: {
        all: { servers: ['old', 'new'] },
        bare: { servers: ['old', 'new'], prefix: 'never' },
        found: { servers: ['old', 'new'], search: true },
      },
    },
  )
  for (const group of ['all', 'bare', 'found']) {
    const at = new URL(`/${group}/mcp`, url).href
    const legacy = await LegacyClient.open(at)
    for (const name of NAMES) {
      const params = { name: group === 'bare' ? name : `old__${name}`, arguments: {} }
      const tried = [params, { ...params, name: params.name.replace('old', 'new') }]
      if (group === 'found') tried.push(...tried.map((one) => ({ name: 'call_tool', arguments: one })))
      for (const one of tried) {
        await legacy.request('tools/call', one)
        await call(at, 'tools/call', one, { headers: { 'mcp-name': encoded(one.name) } })
      }
    }
  }
  t.same([old.of('tools/call').length, modern.of('tools/call').length], [0, 0])
})

const namesIn = ({ message }: Awaited<ReturnType<typeof call>>) =>
  (message.result?.['tools'] as { name: string }[]).map(({ name }) => name)

t.test('a caller without a scope gets the tools that the server marks as read-only, with one key', async (t) => {
  const tokens = {
    alice: { token: 'token-of-alice-0123456789', scopes: ['write'] },
    bob: 'token-of-bob-0123456789',
  }
  const { url, seen } = await startGuarded(t, { auth: { tokens } }, { scopes: { '!readOnlyHint': ['write'] } })
  const ask = (who: 'alice' | 'bob', method: string, params = {}) => {
    const token = who === 'alice' ? tokens.alice.token : tokens.bob
    return call(url, method, params, { headers: { authorization: `Bearer ${token}` } })
  }
  t.same(namesIn(await ask('alice', 'tools/list')), ['read', 'write'])
  t.same(namesIn(await ask('bob', 'tools/list')), ['read'])
  t.match((await ask('bob', 'tools/call', { name: 'write', arguments: {} })).message, { result: { isError: true } })
  t.equal(seen.length, 0)
  t.match((await ask('bob', 'tools/call', { name: 'read', arguments: {} })).message.result, {
    content: [{ text: 'read' }],
  })
  t.match((await ask('alice', 'tools/call', { name: 'write', arguments: {} })).message.result, {
    content: [{ text: 'written' }],
  })
})

t.test('a caller hears which scope a tool needs in every form of a group', async (t) => {
  const tokens = { bob: 'token-of-bob-0123456789' }
  const groups = {
    all: {},
    bare: { prefix: 'never' },
    found: { search: true },
    both: { prefix: 'never', search: true },
  }
  for (const unscoped of ['show', 'hide']) {
    const settings = { auth: { tokens, unscoped }, groups }
    const { url, seen } = await startGuarded(t, settings, { scopes: { write: ['write'] } }, ['one', 'two'])
    for (const [group, options] of Object.entries(groups)) {
      const named = { name: 'prefix' in options ? 'write' : 'one__write', arguments: {} }
      const forms = 'search' in options ? [named, { name: 'call_tool', arguments: named }] : [named]
      for (const params of forms) {
        const { message } = await call(new URL(`/${group}/mcp`, url).href, 'tools/call', params, {
          headers: { authorization: `Bearer ${tokens.bob}` },
        })
        const said = JSON.stringify(message)
        t.match(said, unscoped === 'hide' ? /Unknown tool/ : /without the scope write/, `${group} ${params.name}`)
      }
    }
    t.equal(seen.length, 0)
  }
})

for (const [where, auth, entry, isHidden] of [
  ['nowhere', {}, {}, false],
  ['for all servers', { unscoped: 'hide' }, {}, true],
  ['for a server', {}, { unscoped: 'hide' }, true],
  ['for all servers but one', { unscoped: 'hide' }, { unscoped: 'show' }, false],
] as const)
  t.test(`tools that somebody with an identity provider lacks scopes for, hidden ${where}`, async (t) => {
    const issuer = await TokenIssuer.start(t)
    const settings = { auth: { issuers: [{ issuer: issuer.url }], ...auth } }
    const { url, seen } = await startGuarded(t, settings, { scopes: { write: ['files:write'] }, ...entry })
    const ask = async (claims: object, method: string, params = {}) => {
      const token = await issuer.token({ aud: url, ...claims })
      return call(url, method, params, { headers: { authorization: `Bearer ${token}` } })
    }
    const write = ['tools/call', { name: 'write', arguments: {} }] as const
    t.same(namesIn(await ask({}, 'tools/list')), isHidden ? ['read'] : ['read', 'write'])
    const { status, message } = await ask({}, ...write)
    if (isHidden) t.match(message, { error: { code: -32602, message: 'Unknown tool: write' } })
    else t.equal(status, 403)
    t.equal(seen.length, 0)
    t.same(namesIn(await ask({ scope: 'files:write' }, 'tools/list')), ['read', 'write'])
    t.match((await ask({ scope: 'files:write' }, ...write)).message, { result: {} })
  })

t.test('all keys that fit a tool count, in any order', async (t) => {
  for (const scopes of [
    { '*': ['use'], 'wri*': ['write'] },
    { 'wri*': ['write'], '*': ['use'] },
  ]) {
    const tokens = { carol: { token: 'token-of-carol-0123456789', scopes: ['use'] } }
    const { url } = await startGuarded(t, { auth: { tokens } }, { scopes })
    const headers = { authorization: `Bearer ${tokens.carol.token}` }
    t.same(namesIn(await call(url, 'tools/list', {}, { headers })), ['read'])
  }
})

for (const [where, entry, group] of [
  ['a group without prefixes', {}, { prefix: 'never' }],
  ['a server with chosen tools', { tools: { allow: ['*'] } }, undefined],
] as const)
  t.test(`a caller whose scopes grow calls at once what it may call then: ${where}`, async (t) => {
    const issuer = await TokenIssuer.start(t)
    const groups = group && { groups: { all: { servers: ['test', 'other'], ...group } } }
    const settings = { auth: { issuers: [{ issuer: issuer.url }], unscoped: 'hide' }, ...groups }
    const guarded = { scopes: { write: ['files:write'] }, ...entry }
    const { url } = await startGuarded(t, settings, guarded, group ? ['test', 'other'] : ['test'])
    const at = group ? new URL('/all/mcp', url).href : url
    const write = async (claims: object) => {
      const headers = { authorization: `Bearer ${await issuer.token({ aud: at, ...claims })}` }
      return (await call(at, 'tools/call', { name: 'write', arguments: {} }, { headers })).message
    }
    t.match(await write({}), { error: { message: 'Unknown tool: write' } })
    t.match(await write({ scope: 'files:write' }), { result: { content: [{ text: 'written' }] } })
    t.match(await write({}), { error: { message: 'Unknown tool: write' } })
  })
