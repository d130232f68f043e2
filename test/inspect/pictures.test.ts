/** The images in kept texts: which ones viewers get, and that nothing hidden is among them. */
import t from 'tap'
import { picturesIn } from '../../src/inspector/pictures.js'
import { redactor } from '../../src/inspector/redact.js'
import { startInspector, TOKEN } from '../support/inspector.js'
import { tellCall, tickingRing } from '../support/sights.js'

const DATA = Buffer.alloc(240, 7).toString('base64')
const image = { type: 'image', mimeType: 'image/png', data: DATA }

function found(value: unknown, hide: string[] = []): string[] {
  const text = JSON.stringify(value)
  return picturesIn(text, redactor(hide)(text).text).map(({ type, data }) => `${type} ${data.length}`)
}

t.test('images are found in content, prompts and resources', async (t) => {
  const png = `image/png ${DATA.length}`
  t.same(found({ result: { content: [{ type: 'text', text: 'a' }, image] } }), [png])
  t.same(found({ result: { messages: [{ role: 'user', content: image }] } }), [png])
  t.same(found({ result: { contents: [{ uri: 'a:b', mimeType: 'image/gif', blob: DATA }] } }), [
    `image/gif ${DATA.length}`,
  ])
  t.equal(found({ result: { content: Array(20).fill(image) } }).length, 8, 'at most eight')
})

t.test(
  'no image is found in other bytes, hidden values, names of secrets, truncated and very deep texts',
  async (t) => {
    t.same(found({ result: { content: [{ ...image, mimeType: 'audio/wav' }] } }), [])
    t.same(found({ result: { content: [image] } }, ['/result/content/0/data']), [])
    t.same(found({ result: { content: [image] } }, ['/result/**']), [])
    t.same(found({ result: { password: image } }), [])
    t.same(found({ result: { content: [{ ...image, data: 'not base64 at all!' }] } }), [])
    t.same(found({ content: [{ mimeType: 'image/png', token: DATA }] }), [])
    const text = JSON.stringify({ content: [image] })
    t.same(picturesIn(text.slice(0, -3), text.slice(0, -3)), [])
    t.same(picturesIn(`${'['.repeat(50)}${JSON.stringify(image)}${']'.repeat(50)}`, '[]'), [])
  },
)

t.test('only the view of one call has images', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 1, texts: { request: '{}', result: JSON.stringify({ result: { content: [image] } }) } })
  const base = await startInspector(t, ring)
  const get = async (path: string) =>
    (await fetch(`${base}/inspect/${path}`, { headers: { authorization: `Bearer ${TOKEN}` } })).text()
  const call = await get('calls/c1')
  t.match(call, /"pictures":\[\{"type":"image\/png","data":"/)
  t.equal(call.split(DATA).length - 1, 2, 'one at each side')
  for (const path of ['export', 'export?format=har', 'calls']) t.notMatch(await get(path), DATA, path)
})
