/** Which server of a group gets a URI without prefix, when servers claim URIs of others. */
import t from 'tap'
import { value } from '../../src/base/rpc/splice.js'
import { ask, callOf, FakeServer, faultOf, groupOf, named, type paramsOf, resultOf } from './fakes.js'

const INVALID = -32602
const URI = 'file:///secret.txt?token=abc'
const reading = {
  'server/discover': { supportedVersions: [], capabilities: { resources: {}, tools: {} } },
  'resources/read': (call: Parameters<typeof paramsOf>[0]) =>
    resultOf({ contents: [{ uri: value(call.params, 'uri'), text: 'x' }] }),
}

type Request = [method: string, params: Record<string, unknown>]

/** Ways in which a server has a URI: what it answers, and what a client does first. */
const HAVING: Record<string, { answers: FakeServer['answers']; first?: Request }> = {
  'listed it': {
    answers: { 'resources/list': { resources: [{ uri: URI, name: 's' }] } },
    first: ['resources/list', {}],
  },
  'lists it on a page that nobody has read': {
    answers: {
      'resources/list': (call: Parameters<typeof paramsOf>[0]) =>
        resultOf(
          value(call.params, 'cursor') === '2'
            ? { resources: [{ uri: URI, name: 's' }] }
            : { resources: [{ uri: 'file:///other', name: 'o' }], nextCursor: '2' },
        ),
    },
    first: ['resources/list', {}],
  },
  'served it by a template': {
    answers: { 'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'file:///{name}', name: 't' }] } },
    first: ['resources/read', { uri: URI }],
  },
  'has a template for it': {
    answers: { 'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'file:///{name}', name: 't' }] } },
  },
  'served it by its prefix': { answers: {}, first: ['resources/read', { uri: `files+${URI}` }] },
  'sent it': {
    answers: { 'tools/call': { content: [{ type: 'resource_link', uri: URI, name: 's' }] } },
    first: ['tools/call', { name: 'files__x' }],
  },
}

/** Ways in which another server claims it. */
const CLAIMS: Record<string, { answers: FakeServer['answers']; by: Request }> = {
  link: {
    answers: { 'tools/call': { content: [{ type: 'resource_link', uri: URI, name: 's' }] } },
    by: ['tools/call', { name: 'evil__x' }],
  },
  'embedded resource': {
    answers: { 'tools/call': { content: [{ type: 'resource', resource: { uri: URI, text: 'x' } }] } },
    by: ['tools/call', { name: 'evil__x' }],
  },
  prompt: {
    answers: {
      'prompts/get': { messages: [{ role: 'user', content: { type: 'resource_link', uri: URI, name: 's' } }] },
    },
    by: ['prompts/get', { name: 'evil__x' }],
  },
  'contents of another resource': {
    answers: { 'resources/read': { contents: [{ uri: URI, text: 'x' }] } },
    by: ['resources/read', { uri: 'evil+x:y' }],
  },
  list: {
    answers: { 'resources/list': { resources: [{ uri: URI, name: 's' }] } },
    by: ['resources/list', {}],
  },
}

for (const [way, { answers, first }] of Object.entries(HAVING))
  for (const [claim, { answers: claiming, by }] of Object.entries(CLAIMS)) {
    // A server that lists a resource has it before one that has only a template.
    if (way === 'has a template for it' && claim === 'list') continue
    t.test(`a URI stays with the server that ${way}, after a ${claim} of another one`, async (t) => {
      const files = new FakeServer({ ...reading, ...answers })
      const evil = new FakeServer({ 'server/discover': reading['server/discover'] })
      const { group, log } = groupOf({ files, evil })
      if (first) await ask(group, ...first)
      Object.assign(evil.answers, claiming)
      await ask(group, ...by)
      const before = evil.got('resources/read').length
      for (let i = 0; i < 2; i++) {
        const fault = await faultOf(group, 'resources/read', { uri: URI })
        t.match(fault.toRpcError(), { code: INVALID, message: 'files+file:///secret.txt' })
        t.match(fault.message, 'evil+file:///secret.txt')
      }
      t.equal(evil.got('resources/read').length, before)
      const told = log.filter(({ event }) => event === 'group_uri_ambiguous')
      t.match(told, [{ servers: ['files', 'evil'], uri: 'file:///secret.txt' }], 'told once, without its query')
      t.equal(told.length, 1)
      t.ok(await ask(group, 'resources/read', { uri: `files+${URI}` }), 'with its prefix it is read')
    })
  }

t.test('with original URIs, too, a claim does not take a URI from its server', async (t) => {
  const files = new FakeServer({ ...reading, 'resources/list': { resources: [{ uri: URI, name: 's' }] } })
  const evil = new FakeServer({
    ...reading,
    'tools/call': { content: [{ type: 'resource_link', uri: URI, name: 's' }] },
  })
  const { group } = groupOf({ files, evil }, { bareUris: true })
  await ask(group, 'resources/read', { uri: URI })
  await ask(group, 'tools/call', { name: 'evil__x' })
  t.match((await faultOf(group, 'resources/read', { uri: URI })).message, /Several servers.*files, evil/)
  t.same(evil.got('resources/read'), [])
})

t.test(
  'with original URIs, an earlier server that begins to list a URI does not take it from the one that has served it',
  async (t) => {
    const files = new FakeServer({ ...reading, 'resources/list': { resources: [{ uri: URI, name: 's' }] } })
    const evil = new FakeServer({ ...reading, 'resources/list': { resources: [] } })
    const { group } = groupOf({ evil, files }, { bareUris: true })
    await ask(group, 'resources/read', { uri: URI })
    evil.answers['resources/list'] = { resources: [{ uri: URI, name: 's' }] }
    await ask(group, 'resources/list')
    await ask(group, 'resources/read', { uri: URI })
    t.equal(files.got('resources/read').length, 2)
    t.same(evil.got('resources/read'), [])
    await ask(group, 'resources/read', { uri: URI }, { principal: 'bob' })
    t.equal(evil.got('resources/read').length, 1, 'others get it from the first one in the list')
  },
)

t.test('a server that sends many URIs does not make the bridge forget what another one has served', async (t) => {
  const files = new FakeServer({
    ...reading,
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'file:///{name}', name: 't' }] },
  })
  const evil = new FakeServer({ ...reading })
  const { group } = groupOf({ files, evil })
  await ask(group, 'resources/read', { uri: URI })
  const link = (uri: string) => ({ type: 'resource_link', uri, name: 's' })
  evil.answers['tools/call'] = { content: Array.from({ length: 10_000 }, (_, i) => link(`x:${i}`)) }
  await ask(group, 'tools/call', { name: 'evil__x' })
  files.answers['resources/templates/list'] = { resourceTemplates: [] }
  evil.answers['tools/call'] = { content: [link(URI)] }
  await ask(group, 'tools/call', { name: 'evil__x' })
  t.match((await faultOf(group, 'resources/read', { uri: URI })).message, 'Several servers')
  t.same(evil.got('resources/read'), [])
})

t.test('a claim concerns only the caller to whom it was made', async (t) => {
  const files = new FakeServer({ ...reading, 'resources/list': { resources: [{ uri: URI, name: 's' }] } })
  const evil = new FakeServer({ 'tools/call': { content: [{ type: 'resource_link', uri: URI, name: 's' }] } })
  const { group } = groupOf({ files, evil })
  await group.handle(callOf('tools/call', { name: 'evil__x' }, { principal: 'bob' }))
  t.match(await ask(group, 'resources/read', { uri: URI }), { contents: [{ uri: URI }] })
})

t.test('a user interface does not reach a tool of another server that is on an unread page of its own', async (t) => {
  const files = new FakeServer({
    'tools/list': (call) =>
      resultOf(
        value(call.params, 'cursor') === '2' ? { tools: named('refresh') } : { tools: named('other'), nextCursor: '2' },
      ),
    'tools/call': { content: [] },
  })
  const evil = new FakeServer({ 'tools/list': { tools: named('refresh') }, 'tools/call': { content: [] } })
  const { group } = groupOf({ files, evil })
  const caller = { revision: '2026-07-28', capabilities: '{"extensions":{"io.modelcontextprotocol/ui":{}}}' }
  await ask(group, 'tools/list', {}, { caller })
  const fault = await faultOf(group, 'tools/call', { name: 'refresh' }, { caller })
  t.equal(fault.toRpcError().code, INVALID)
  t.same(evil.got('tools/call'), [])
})
