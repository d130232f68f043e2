/** Which message on one wire of a call causes which on the other, with questions to the client in it. */
import t from 'tap'
import type { MessageTrace } from '../../src/inspector/recorder/message.js'
import type { CallView } from '../../src/inspector/views.js'
import { answered, asked, httpClient } from '../support/asked-clients.js'
import { ADA, all, COLOUR, MODEL, NAME, PARIS, startAsker, talk, WAYS } from '../support/asking.js'
import { untilFound } from '../support/eventually.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { eventsIn, listed, tickingRing } from '../support/sights.js'
import { rowsIn, startWatched, viewsOf } from '../support/watched.js'

/** The call of a tool that has ended well. */
async function ended(calls: () => CallView[], name: string): Promise<CallView> {
  return untilFound(() => calls().find((call) => call.name === name && call.status === 'ok'), 'the call has ended')
}

for (const way of WAYS)
  t.test(`a legacy server ${way} asks a modern client twice at once, and then once more`, async (t) => {
    const asker = await startAsker(t, way)
    const { url, calls } = await startWatched(t, asker.server)
    const { together, again } = talk(url, { by: asker.by })
    const both = await together(2, [{ ask: [NAME, MODEL] }, { ask: [COLOUR] }])
    const answers = Object.fromEntries(both.keys.map((key) => [key, key.startsWith('elicitation') ? ADA : PARIS]))
    const one = await again(both, answers)
    await again(one, all(one, ADA))
    t.same(rowsIn(await ended(calls, 'steps')), [
      ['in tools/call', 'out tools/call'],
      [undefined, 'in elicitation/create', 'out result'],
      ['out result', 'in sampling/createMessage'],
      ['in tools/call', 'out result'],
      [undefined, 'out result', 'in tools/call'],
      ['out result', 'in elicitation/create'],
      ['in tools/call', 'out result'],
      ['out result', 'in result'],
    ])
  })

const QUESTIONS = {
  model: { method: 'sampling/createMessage', params: MODEL.params },
  roots: { method: 'roots/list' },
  name: { method: 'elicitation/create', params: { mode: 'form', ...NAME.params } },
}
const MODERN = {
  'over HTTP': async (t: Parameters<typeof startWatched>[0]) => ({ url: (await ModernHttp.start(t)).url }),
  'over stdio': async (t: Parameters<typeof startWatched>[0]) => modernStdio(t).server,
}

for (const [way, start] of Object.entries(MODERN))
  t.test(`a modern server ${way} asks a legacy client three times at once, and then once more`, async (t) => {
    const { url, calls } = await startWatched(t, await start(t))
    const client = await httpClient(url)
    await client.begin('a', 'tools/call', {
      name: 'ask',
      arguments: { rounds: [QUESTIONS, { again: QUESTIONS.name }] },
    })
    const [model, roots, name] = await asked(client, 'a', 3)
    for (const [question, result] of [
      [roots, { roots: [] }],
      [model, PARIS],
      [name, ADA],
    ] as const)
      await client.say({ id: question?.id, result })
    const [, , , once] = await asked(client, 'a', 4)
    await client.say({ id: once?.id, result: ADA })
    await answered(client, 'a')
    t.same(rowsIn(await ended(calls, 'ask')), [
      ['in tools/call', 'out tools/call'],
      ['out sampling/createMessage', 'in result'],
      ['out roots/list', undefined, 'in result'],
      ['out elicitation/create', undefined, 'in result'],
      ['in result', undefined, 'out tools/call'],
      ['in result', undefined, 'out tools/call'],
      ['in result', 'out tools/call'],
      ['out elicitation/create', 'in result'],
      ['in result', 'out tools/call'],
      ['out result', 'in result'],
    ])
  })

t.test('a request that the bridge answers, and a message of another call, have no counterpart', async (t) => {
  const ring = tickingRing()
  const tell = (hop: MessageTrace['hop'], dir: MessageTrace['dir'], more: Partial<MessageTrace>) =>
    ring.record({ kind: 'message', call: 1, bytes: 1, hop, dir, form: 'request', ...more })
  tell('client', 'in', { method: 'tools/call', id: 1 })
  tell('server', 'out', { method: 'tools/call', id: 5, of: 1, changed: listed([]) })
  tell('server', 'in', { method: 'roots/list', id: 's1' })
  tell('server', 'out', { form: 'error', id: 's1' })
  tell('server', 'in', { method: 'elicitation/create', id: 's2' })
  tell('client', 'out', { form: 'result', id: 1, changed: listed([]) })
  tell('client', 'out', { form: 'notification', method: 'notifications/message', of: 77, changed: listed([]) })
  t.same(rowsIn(viewsOf(eventsIn(ring)).call('c1') as CallView), [
    ['in tools/call', 'out tools/call'],
    [undefined, 'in roots/list'],
    [undefined, 'out error'],
    ['out result', 'in elicitation/create'],
    ['out notifications/message', undefined, 'unseen'],
  ])
})

t.test('does not attribute a repeated request without answers to the bridge', async (t) => {
  const { url, calls } = await startWatched(t, { url: (await ModernHttp.start(t)).url })
  const client = await httpClient(url)
  await client.begin('a', 'tools/call', { name: 'ask', arguments: { rounds: [null] } })
  await answered(client, 'a')
  t.same(rowsIn(await ended(calls, 'ask')), [
    ['in tools/call', 'out tools/call'],
    [undefined, 'in result'],
    [undefined, 'out tools/call', 'in tools/call'],
    ['out result', 'in result'],
  ])
})
