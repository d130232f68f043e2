/** What a proxy says about the scopes and groups of a user: names with spaces stay whole, and groups are no scopes. */
import type { FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { sha256 } from '../../src/base/crypto/digest.js'
import { forwardedUser } from '../../src/clients/plugins/forwarded.js'
import { settingsOf } from '../support/bridge.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { call } from '../support/modern.js'

type Json = Record<string, unknown>

const secret = 'proxy-0123456789-0123456789-0123456789'
const PROXY = { user: 'X-User', secretHeader: 'X-Secret', secret }

/** Returns whether a user with such headers may call a tool that requires the scope `write`. */
async function behind(t: Test, forwarded: Json) {
  const auth = { forwarded: { ...PROXY, ...forwarded } }
  const { url, seen } = await startGuarded(t, { publicUrl: undefined, auth }, { scopes: { write: ['write'] } })
  const mayWrite = async (own: Record<string, string | string[]>) => {
    const headers = { 'x-user': 'alice', 'x-secret': secret, ...own }
    const { status, text } = await call(url, 'tools/call', { name: 'write' }, { headers })
    return status === 200 ? text.includes('written') : status
  }
  return { mayWrite, seen }
}

const lists: [name: string, settings: Json, yes: string[], no: string[]][] = [
  [
    'a comma',
    {},
    ['write', 'read,write', 'read, write ,x', ',write,'],
    ['not allowed to write', 'Everyone,No write access', 'read write', 'Write', 'read;write', 'writes', '', '"write"'],
  ],
  ['a space', { separator: ' ' }, ['write', 'read write', ' read \t write '], ['read,write', 'read|write', '']],
  ['a bar', { separator: '|' }, ['write', 'read|write', 'a b | write'], ['a,write', 'not allowed to write']],
  ['several characters', { separator: '::' }, ['a::write', 'write'], ['a:write', 'a,write']],
]
for (const [name, settings, yes, no] of lists)
  t.test(`scopes are separated by ${name}, and by nothing else`, async (t) => {
    const { mayWrite } = await behind(t, { scopes: 'X-Groups', ...settings })
    for (const list of yes) t.equal(await mayWrite({ 'x-groups': list }), true, list)
    for (const list of no) t.equal(await mayWrite({ 'x-groups': list }), false, list)
    t.equal(await mayWrite({ 'x-groups': ['a', 'write'] }), 401, 'one of two headers may be of the client')
  })

const map = { 'mcp admins': ['write', 'read'] }
for (const [name, settings] of Object.entries({
  'the header of groups': { groups: 'X-Groups', map },
  'the only header': { scopes: 'X-Groups', map },
}))
  t.test(`groups get the scopes of the map, in ${name}`, async (t) => {
    const { mayWrite, seen } = await behind(t, settings)
    for (const list of ['mcp admins', 'a,mcp admins', ' mcp admins , a'])
      t.equal(await mayWrite({ 'x-groups': list }), true, list)
    for (const list of ['write', 'mcp,admins', 'MCP Admins', 'constructor', '__proto__', 'xmcp admins'])
      t.equal(await mayWrite({ 'x-groups': list }), false, list)
    t.equal(await mayWrite({ 'x-groups': ['mcp admins', 'a'] }), 401, 'twice')
    t.notMatch(JSON.stringify(seen), /x-groups/i)
  })

t.test('names of groups are read as UTF-8, or else as Latin-1', async (t) => {
  for (const encoding of ['utf8', 'latin1'] as const) {
    // Node.js reads each byte of a header as a character.
    const received = Buffer.from('bücher', encoding).toString('latin1')
    const rawHeaders = ['X-User', 'alice', 'X-Secret', secret, 'X-Groups', received]
    const settings = { user: 'x-user', secretHeader: 'x-secret', groups: 'x-groups', map: { bücher: ['write'] } }
    const proxy = { ...settings, separator: ',', secret, digest: sha256(secret) }
    const user = forwardedUser({ raw: { rawHeaders } } as FastifyRequest, proxy)
    t.same(user !== undefined && user !== 'wrong' && [...user.grant.scopes], ['write'], encoding)
  }
})

t.test('scopes count beside groups, which are none', async (t) => {
  const { mayWrite } = await behind(t, { scopes: 'X-Scopes', groups: 'X-Groups', map })
  t.equal(await mayWrite({ 'x-scopes': 'write', 'x-groups': 'none' }), true)
  t.equal(await mayWrite({ 'x-scopes': 'none', 'x-groups': 'mcp admins' }), true)
  t.equal(await mayWrite({ 'x-scopes': 'mcp admins', 'x-groups': 'write' }), false)
})

t.test('refuses a map without a header, and a header for two things', async (t) => {
  const rows: [forwarded: Json, message: RegExp][] = [
    [{ map }, /auth\.forwarded\.map.*"groups"/],
    [{ groups: 'x-user' }, /different header/],
    [{ groups: 'X-A', scopes: 'x-a' }, /different header/],
    [{ separator: '' }, /auth\.forwarded\.separator/],
    [{ map: { a: ['two words'] }, groups: 'x-a' }, /auth\.forwarded\.map/],
  ]
  for (const [forwarded, message] of rows)
    t.throws(
      () => settingsOf({ mcpServers: { test: { command: 'x' } }, auth: { forwarded: { ...PROXY, ...forwarded } } }),
      { message },
      JSON.stringify(forwarded),
    )
})
