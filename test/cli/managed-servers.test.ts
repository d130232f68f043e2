/** Servers that operators add and remove while the bridge runs, by its address for operators. */
import { readFileSync, writeFileSync } from 'node:fs'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { check } from '../support/check.js'
import { says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { ALL_LISTS, listen } from '../support/listening.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

type Json = Record<string, unknown>

const TOKEN = 'token-of-operators-0123456789'
const BEARER = { authorization: `Bearer ${TOKEN}` }
const fixture = fileURLToPath(new URL('../fixtures/legacy-stdio.mjs', import.meta.url))
const PROGRAM = { command: execPath, args: [fixture] }

async function start(t: Test, settings: object, text?: (json: string) => string) {
  const json = JSON.stringify({ listen: 'http://127.0.0.1:0/mcp', admin: 'http://127.0.0.1:0', ...settings }, null, 2)
  const file = temporaryFile(t, 'mcp.json', text ? text(json) : json)
  const program = startProgram(t, ['--config', file, '--log-format', 'json'], { ADMIN: TOKEN })
  const [, url = ''] = await says(program, /"url":"(http:[^"]+)".*"listening"/)
  const [, admin = ''] = await says(program, /"(?:admin|url)":"(http:\/\/[^"/]+)\/?"/)
  const change = async (method: string, name: string, body?: unknown, headers: Record<string, string> = BEARER) => {
    const answer = await fetch(`${admin}/servers/${name}`, {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: answer.status, said: (await answer.json()) as Json, headers: answer.headers }
  }
  return { file, program, url, admin, change, at: (name: string) => new URL(`/${name}/mcp`, url).href }
}

const prefixesIn = ({ result }: Json) => [
  ...new Set((result as { tools: { name: string }[] }).tools.map(({ name }) => name.split('__')[0])),
]

t.test('a group takes a server that is added and removed, and nobody loses a session', async (t) => {
  const legacy = await LegacyHttp.start(t, { sessions: true })
  const modern = await ModernHttp.start(t)
  const servers = { a: { url: legacy.url }, b: { url: modern.url } }
  const { url, change, at } = await start(t, { mcpServers: servers, adminToken: '${ADMIN}' })
  const client = await LegacyClient.open(url)
  const stream = await client.listen()
  const subscription = await listen(url, ALL_LISTS)
  await subscription.has(1)
  t.same(prefixesIn((await client.request('tools/list')).message), ['a', 'b'])

  const heard = (method: string) =>
    [stream, subscription].map(({ messages }) => messages.filter((one) => one['method'] === method).length)
  const both = (times: number) =>
    until(() => heard('notifications/tools/list_changed').every((count) => count >= times), 'list_changed')
  t.match(await change('PUT', 'c', PROGRAM), { status: 201, said: { server: 'c', saved: false } })
  await both(1)
  t.same(prefixesIn((await client.request('tools/list')).message), ['a', 'b', 'c'])
  t.match(await client.call('c__echo', { x: 1 }), { status: 200, message: { result: {} } })
  t.equal((await call(at('c'), 'tools/list')).status, 200)
  const [before] = heard('notifications/tools/list_changed')

  t.match(await change('DELETE', 'c'), { status: 200, said: { server: 'c' } })
  await both((before ?? 0) + 1)
  t.same(prefixesIn((await client.request('tools/list')).message), ['a', 'b'])
  t.match(await client.call('a__echo', { x: 1 }), { status: 200, message: { result: {} } })
  t.equal((await call(at('c'), 'tools/list')).status, 404)
  t.notOk(stream.over, 'the stream of the legacy client is open')
  t.notOk(subscription.over, 'and so is the subscription of the modern one')
})

t.test('nobody changes servers without the token, and without one nobody does', async (t) => {
  const servers = { mcpServers: { a: PROGRAM } }
  const { change, admin } = await start(t, { ...servers, adminToken: '${ADMIN}' })
  for (const headers of [
    {},
    { authorization: 'Bearer wrong' },
    { authorization: `Basic ${TOKEN}` },
    { authorization: TOKEN },
  ]) {
    const refused = await change('PUT', 'b', PROGRAM, headers as Record<string, string>)
    t.equal(refused.status, 401, JSON.stringify(headers))
    t.equal(refused.headers.get('www-authenticate'), 'Bearer')
  }
  t.equal((await change('DELETE', 'a', undefined, {})).status, 401)
  t.equal((await fetch(`${admin}/servers/a`, { headers: BEARER })).status, 404, 'nothing can be read there')
  const off = await start(t, servers)
  t.equal((await off.change('PUT', 'b', PROGRAM)).status, 404)
  t.match(
    check(temporaryFile(t, 'mcp.json', JSON.stringify({ ...servers, adminToken: TOKEN }))).said,
    /adminToken requires "admin"/,
  )
})

t.test('what the file could not have is refused in its words, and changes nothing', async (t) => {
  const groups = { team: { servers: ['a', 'b'] } }
  const mcpServers = { a: PROGRAM, b: PROGRAM }
  const { change, at, file } = await start(t, { mcpServers, groups, adminToken: '${ADMIN}' })
  const wrong: [entry: unknown, said: RegExp][] = [
    [{ url: 'x' }, /mcpServers\.c\.url has to be an http/],
    [{ ...PROGRAM, era: 'old' }, /mcpServers\.c\.era /],
    [{ url: 'https://x.example', headers: { a: '${UNSET}' } }, /the environment variable UNSET is not set/],
    [{ url: 'https://x.example', ca: '/nonexistent' }, /mcpServers\.c\.ca /],
    [{}, /mcpServers\.c has to have either/],
    [[], /mcpServers\.c has to be an object/],
    [null, /mcpServers\.c has to be an object/],
    ['x', /mcpServers\.c has to be an object/],
  ]
  for (const [entry, said] of wrong) {
    const { status, said: body } = await change('PUT', 'c', JSON.stringify(entry))
    t.equal(status, 400, JSON.stringify(entry))
    const issues = (body['issues'] as { path: string; message: string }[]).map(
      ({ path, message }) => `${path} ${message}`,
    )
    t.match(issues.join('\n'), said, JSON.stringify(entry))
    if (!isRecord(entry)) continue
    const inFile = { mcpServers: { ...mcpServers, c: entry }, groups, listen: 'http://127.0.0.1:0/mcp' }
    const words = check(temporaryFile(t, 'other.json', JSON.stringify(inFile))).said
    for (const issue of issues) t.ok(words.includes(issue), `${issue} is what check says`)
  }
  t.equal((await change('PUT', 'c', '{"command":')).status, 400, 'no JSON')
  t.equal((await change('PUT', 'c', { ...PROGRAM, env: { A: 'x'.repeat(70_000) } })).status, 413)
  for (const name of ['a%20b', 'a%2Fb', 'x'.repeat(65), '%2e%2e%2f'])
    t.not((await change('PUT', name, PROGRAM)).status, 201, name)
  t.match(
    await change('DELETE', 'a'),
    { status: 400, said: { issues: [{ path: /^groups\.team/ }] } },
    'a group names it',
  )
  t.match(await change('DELETE', 'bb'), { status: 404, said: { message: /no server "bb": it has a, b/ } })
  t.equal((await call(at('a'), 'tools/list')).status, 200)
  t.equal((await call(at('c'), 'tools/list')).status, 404)
  t.notMatch(readFileSync(file, 'utf8'), '"c"')
})

t.test('changes at once are made one after another', async (t) => {
  const { change, at, url } = await start(t, { mcpServers: { a: PROGRAM }, adminToken: '${ADMIN}' })
  const names = Array.from({ length: 12 }, (_, i) => `s${i}`)
  const answers = await Promise.all(names.map((name) => change('PUT', name, PROGRAM)))
  t.same(
    answers.map(({ status }) => status),
    names.map(() => 201),
  )
  for (const name of names) t.equal((await call(at(name), 'tools/list')).status, 200, name)
  const same = await Promise.all([1, 2, 3].map(() => change('PUT', 'same', PROGRAM)))
  t.same(same.map(({ status }) => status).toSorted(), [200, 200, 201])
  await Promise.all(names.map((name) => change('DELETE', name)))
  t.same(prefixesIn((await call(url, 'tools/list')).message), ['a', 'same'])
})

t.test('the file is changed only if that is asked for, and keeps its comments', async (t) => {
  const settings = { mcpServers: { a: PROGRAM }, adminToken: '${ADMIN}' }
  const { change, file, at, program } = await start(t, settings, (json) =>
    json.replace('"a": {', '// the first\n    "a": {'),
  )
  const before = readFileSync(file, 'utf8')
  t.equal((await change('PUT', 'b', PROGRAM)).status, 201)
  t.equal(readFileSync(file, 'utf8'), before)
  t.match(await change('PUT', 'c?save=true', PROGRAM), { status: 201, said: { server: 'c', saved: true } })
  const saved = readFileSync(file, 'utf8')
  t.match(saved, '// the first\n    "a": {')
  t.match(saved, '"c": {\n      "command"')
  t.notMatch(saved, '"b": {')
  t.equal((await call(at('c'), 'tools/list')).status, 200)
  writeFileSync(file, saved.replace('"c": {', '"d": {'))
  await says(program, /"added":\["d"\]/)
  t.equal((await call(at('b'), 'tools/list')).status, 200, 'what was added stays when the file changes')
  t.equal((await call(at('c'), 'tools/list')).status, 404)
  t.equal((await change('DELETE', 'a')).status, 200)
  t.match(readFileSync(file, 'utf8'), '"a": {', 'left out until the next start')
  t.equal((await call(at('a'), 'tools/list')).status, 404)
  t.equal((await change('DELETE', 'd?save=true')).status, 200)
  t.notMatch(readFileSync(file, 'utf8'), '"d": {')
})

function isRecord(entry: unknown): entry is Json {
  return typeof entry === 'object' && entry !== null && !Array.isArray(entry)
}
