/** What the bridge does not know, and what it has no business changing. */
import type { Test } from 'tap'
import { until } from '../support/eventually.js'
import { type Cell, only, paramsOf, resultOf, sameMeta } from './cell.js'
import type { Json } from './client.js'
import { passesUnchanged } from './told.js'
import { Raw } from './wire.js'

/** Keys that are others' than the protocol's own. */
const META = {
  'com.example/k': { deep: [1, { a: null }] },
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'io.modelcontextprotocol/ui': { x: 1 },
}

/** Methods, members and keys that the bridge has never heard of reach the server, and what it makes of them the client. */
export async function unknown(t: Test, cell: Cell): Promise<void> {
  const { client, pair } = cell
  const params = { x: { y: [] }, 'com.example/z': null, resultType: 'odd', ttlMs: 7 }
  const answer = await client.request('vendor/echo', params, { meta: META }).answer
  const reached = only(t, cell, 'vendor/echo', META)
  t.same(paramsOf(reached), params, 'the params at the server')
  const all = (reached.message['params'] ?? {}) as Json
  const { 'com.example/k': kept } = META
  const told = pair.server.era === 'modern' ? { received: all, _meta: { 'com.example/k': kept } } : { params: all }
  t.same(resultOf(t, cell, answer), told, 'the result at the client')

  const odd = { name: 'echo', arguments: {}, 'com.example/odd': [{}] }
  await client.request('tools/call', odd, { meta: META }).answer
  t.same(paramsOf(only(t, cell, 'tools/call', META)), odd, 'members of known requests')

  await client.notify('com.example/note', { n: 1 }, META)
  await until(() => cell.reached('com.example/note').length > 0, 'the notification has reached the server')
  const [note, another] = cell.reached('com.example/note')
  t.notOk(another, 'once')
  if (!note) return
  t.same(paramsOf(note), { n: 1 })
  t.equal(note.session, reached.session, 'in the session of the calls')
  sameMeta(t, cell, note, META)
}

/** What JSON.parse and JSON.stringify would make something else of. */
const ODD = String.raw`{"big":12345678901234567890123,"float":1.0,"tiny":-0.0,"far":1E400,"10":1,"2":2,"twice":1,"twice":2,"__proto__":{"x":1},"constructor":null,"text":"\u0000\/é\u00e9 😀\ud83d\ude00 \ud800 ${'\u2028'}${'\u007f'}","spaces" : [ 1 ,	2 ]}`

/** Arguments and results pass to the letter, and so do ids. */
export async function bytes(t: Test, cell: Cell): Promise<void> {
  const { client, pair } = cell
  const ids: unknown[] = [0, -1, '', '1', 'é"\u2028', Number.MAX_SAFE_INTEGER]
  // Where ids pass as they are, it is the scripted server that could not say this one again.
  if (!passesUnchanged(pair)) ids.push(new Raw('90071992547409931234'))
  for (const id of ids) {
    const from = cell.reached('tools/call').length
    const answer = await client.request('tools/call', { name: 'echo', arguments: new Raw(ODD) }, { id }).answer
    t.ok(answer.text.includes(`"structuredContent":${ODD}`), 'the structured content, to the letter')
    t.ok(answer.text.includes(`"text":${JSON.stringify(ODD)}`), 'the text, to the letter')
    const spelt = id instanceof Raw ? id.text : JSON.stringify(id)
    t.ok(answer.text.includes(`"id":${spelt}`), `the id ${ids.indexOf(id)}`)
    const [reached, another] = cell.reached('tools/call').slice(from)
    t.notOk(another, 'it is called once')
    t.ok(reached?.text.includes(`"arguments":${ODD}`), 'the arguments at the server, to the letter')
    if (reached) sameMeta(t, cell, reached)
  }
  await wrapped(t, cell)
}

/** Line breaks between tokens are JSON, but a line or an event would end with them. */
async function wrapped(t: Test, cell: Cell): Promise<void> {
  const { client, pair } = cell
  if (pair.client.transport === 'stdio') return
  const lines = '{"a":\r\n\t[1,\n2]}'
  const from = cell.reached('tools/call').length
  const answer = await client.request('tools/call', { name: 'echo', arguments: new Raw(lines) }).answer
  t.same(resultOf(t, cell, answer)['structuredContent'], { a: [1, 2] })
  const [reached] = cell.reached('tools/call').slice(from)
  const flat = (said: string) => said.replace(/[\r\n]+/g, ' ')
  t.ok(reached && flat(reached.text).includes(`"arguments":${flat(lines)}`), 'on one line at the server')
  if (passesUnchanged(pair)) t.ok(reached?.text.includes(lines), 'to the letter')
}
