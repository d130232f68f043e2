/** A group whose resources keep the URIs of their servers, and two servers with the same URI. */
import t from 'tap'
import { value } from '../../src/base/rpc/splice.js'
import { until } from '../support/eventually.js'
import { ask, callOf, FakeServer, faultOf, groupOf, type paramsOf, resultOf } from './fakes.js'

type Json = Record<string, unknown>
const URI = 'file:///a.txt?key=secret'
const TEMPLATE = 'file:///{name}'

/** A server that answers with its own name. */
function server(name: string, more: FakeServer['answers'] = {}): FakeServer {
  return new FakeServer({
    'server/discover': { supportedVersions: [], capabilities: { resources: { subscribe: true } } },
    'resources/list': { resources: [{ uri: URI, name }] },
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: TEMPLATE, name }] },
    'resources/read': (call: Parameters<typeof paramsOf>[0]) =>
      resultOf({ contents: [{ uri: value(call.params, 'uri'), text: name }] }),
    'completion/complete': { completion: { values: [name] } },
    ...more,
  })
}
const pair = (more: FakeServer['answers'] = {}) => ({ one: server('one', more), other: server('other') })
const textOf = (result: Json) => (result['contents'] as [{ text: string }])[0].text

t.test('a URI of two servers is listed once, belongs to the first one, and that is told once', async (t) => {
  for (const bareNames of [false, true]) {
    const { one, other } = pair()
    const { group, log } = groupOf({ one, other }, { bareUris: true, bareNames })
    for (let times = 0; times < 2; times++) {
      t.same(await ask(group, 'resources/list'), { resources: [{ uri: URI, name: 'one' }] })
      t.same(await ask(group, 'resources/templates/list'), {
        resourceTemplates: [{ uriTemplate: TEMPLATE, name: 'one' }],
      })
      t.equal(textOf(await ask(group, 'resources/read', { uri: URI })), 'one')
      t.equal(textOf(await ask(group, 'resources/read', { uri: 'file:///b' })), 'one', 'by its template')
    }
    const ref = { type: 'ref/resource', uri: TEMPLATE }
    const completion = await ask(group, 'completion/complete', { ref, argument: { name: 'name', value: '' } })
    t.same(completion['completion'], { values: ['one'] })
    t.same(other.got('resources/read'), [])
    t.same(
      log.map(({ event, server, method, name }) => [event, server, method, name]),
      [
        ['group_name_hidden', 'other', 'resources/list', 'file:///a.txt'],
        ['group_name_hidden', 'other', 'resources/templates/list', TEMPLATE],
      ],
    )
    t.match(group.hidden, [
      { server: 'other', name: URI, why: 'taken' },
      { server: 'other', why: 'taken' },
    ])
  }
})

t.test('clients can read and subscribe to a URI of two servers without listing it first', async (t) => {
  const { one, other } = pair()
  const { group } = groupOf({ one, other }, { bareUris: true })
  t.equal(textOf(await ask(group, 'resources/read', { uri: URI })), 'one')
  const call = callOf('subscriptions/listen', { notifications: { resourceSubscriptions: [URI] } })
  const listening = group.handle(call).catch(() => undefined)
  await until(() => one.listening.size > 0)
  t.match(one.got('subscriptions/listen'), [{ notifications: { resourceSubscriptions: [URI] } }])
  t.notMatch(JSON.stringify(other.got('subscriptions/listen')), 'file:')
  call.end.abort(new Error('enough'))
  await listening
})

t.test('the first server has a URI that is on a later page of its list, too', async (t) => {
  const paged = {
    'resources/list': (call: Parameters<typeof paramsOf>[0]) =>
      resultOf(
        value(call.params, 'cursor') === '2'
          ? { resources: [{ uri: URI, name: 'one' }] }
          : { resources: [{ uri: 'x:y', name: 'y' }], nextCursor: '2' },
      ),
  }
  const { group } = groupOf(pair(paged), { bareUris: true })
  t.match((await ask(group, 'resources/list'))['resources'], [{ uri: 'x:y' }])
  t.equal(textOf(await ask(group, 'resources/read', { uri: URI })), 'one')
})

t.test('a server that lists a URI has it before an earlier one with a template for it', async (t) => {
  const { group } = groupOf(pair({ 'resources/list': { resources: [] } }), { bareUris: true })
  t.equal(textOf(await ask(group, 'resources/read', { uri: URI })), 'other')
})

t.test('if servers have sent a URI that another one lists, the error says what tells them apart', async (t) => {
  const { one } = pair()
  const link = { type: 'resource_link', uri: URI, name: 'x' }
  const evil = new FakeServer({ 'tools/call': { content: [link] } })
  const { group } = groupOf({ one, evil }, { bareUris: true })
  await ask(group, 'tools/call', { name: 'evil__x' })
  const { message } = await faultOf(group, 'resources/read', { uri: URI })
  t.match(message, /one, evil.*"resources": "prefix"/)
  t.notMatch(message, /one\+|evil\+/)
})
