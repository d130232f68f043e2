/** Searching the texts that an inspector keeps: what is found, and that nothing hidden is. */
import t from 'tap'
import { startInspector, TOKEN } from '../support/inspector.js'
import { tellCall, tickingRing } from '../support/sights.js'

const headers = { authorization: `Bearer ${TOKEN}` }

t.test('finds calls by what viewers see in their texts, and nothing by what is hidden', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const request = '{"params":{"arguments":{"city":"Zürich","password":"hunter2","note":"CANARY-note"}}}'
  tellCall(ring.record, { id: 1, texts: { request, result: '{"result":{"snow":true}}' } })
  tellCall(ring.record, { id: 2, texts: { request: '{}', result: '{"result":{"city":"Oslo"}}' } })
  tellCall(ring.record, { id: 3, name: 'snow' })
  const base = await startInspector(t, ring, { hide: ['/params/arguments/note'] })
  const get = async (path: string) => (await (await fetch(`${base}/inspect/${path}`, { headers })).json()) as never
  const found = async (text: string, after = 0) =>
    (await get(`found?${new URLSearchParams({ text, after: `${after}` })}`)) as { calls: string[]; last: number }
  t.same(await found('zürich'), { calls: ['c1'], last: ring.last })
  t.same((await found('CITY')).calls, ['c1', 'c2'])
  for (const secret of ['hunter2', 'canary', 'hunter', 'note":"c']) t.same((await found(secret)).calls, [], secret)
  t.same((await found('')).calls, [])
  t.same((await found('city', ring.last)).calls, [], 'only later events')
  const listed = async (filter: string) =>
    ((await get(`calls?${new URLSearchParams({ filter })}`)) as { calls: { id: string }[] }).calls.map(({ id }) => id)
  t.same(await listed('snow'), ['c1', 'c3'])
  t.same(await listed('text:snow'), ['c1'])
  t.same(await listed('text:hunter2'), [])
  const exported = await (await fetch(`${base}/inspect/export?filter=text:oslo`, { headers })).text()
  t.same(
    [
      ...new Set(
        exported
          .trim()
          .split('\n')
          .map((line) => (JSON.parse(line) as { call: string }).call),
      ),
    ],
    ['c2'],
  )
  t.equal((await fetch(`${base}/inspect/found?text=city`)).status, 401, 'without a token')
})
