/**
 * The messages of a call on the page of the inspector: where the counterpart of each one is, and the changes of each.
 *
 * Runs in its own process: its browser ends with it.
 */
import { deflateSync } from 'node:zlib'
import t from 'tap'
import { Ring } from '../../src/inspector/ring.js'
import { answered, asked, httpClient } from '../support/asked-clients.js'
import { ADA, NAME } from '../support/asking.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { look, pictures, problems } from '../support/inspector-page.js'
import { ModernHttp } from '../support/modern-http.js'
import { tellCall, tickingRing } from '../support/sights.js'
import { startWatched } from '../support/watched.js'

const skip = noBrowser

t.test(
  'a message whose counterpart is in another row says so, and changes are at what was changed',
  { skip },
  async (t) => {
    const { url, calls, ring } = await startWatched(t, { url: (await ModernHttp.start(t)).url })
    const client = await httpClient(url)
    const form = { method: NAME.method, params: { mode: 'form', ...NAME.params } }
    await client.begin('a', 'tools/call', {
      name: 'ask',
      arguments: { rounds: [{ one: form, roots: { method: 'roots/list' } }] },
    })
    const [roots, name] = await asked(client, 'a', 2)
    await client.say({ id: roots?.id, result: { roots: [] } })
    await client.say({ id: name?.id, result: ADA })
    await answered(client, 'a')
    const { browser, shows, go, withoutMistakes } = await look(t, ring)
    await go(`#/calls/${calls().find((call) => call.name === 'ask')?.id}`)
    await shows(/← elicitation\/create\s+id 2.*?caused by result\s+id \d+\s+HTTP 200, above/s)
    await shows(/→ result\s+id 1.*?forwarded in tools\/call\s+id \d+, below/s)
    const cells = await browser.evaluate<string[][]>(
      `[...document.querySelectorAll('.sides tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))`,
    )
    const [answer, again] =
      cells.find(([left, right]) => /→ result/.test(left ?? '') && /→ tools/.test(right ?? '')) ?? []
    t.notMatch(answer, /~|−/, 'nothing of the answer was changed')
    t.match(again, /compared with tools\/call\s+id "a":\s+~\s+replaced\s+id.*?inputResponses/s)
    t.same(await problems(browser), [])
    withoutMistakes()
  },
)

t.test('a call whose server is being started says what is waited for', { skip }, async (t) => {
  const ring = new Ring()
  const message = { kind: 'message', server: 'orders', hop: 'server', dir: 'out', form: 'request', bytes: 9 } as const
  const call = { kind: 'call', what: 'begun', server: 'orders', call: 1, principal: 'bob' } as const
  ring.record({ ...call, client: { era: 'modern' }, method: 'tools/call' })
  ring.record({ ...message, call: 1, hop: 'client', dir: 'in', method: 'tools/call' })
  ring.record({ ...message, method: 'initialize', id: 1 })
  const { shows, go, withoutMistakes } = await look(t, ring)
  await go('#/calls/c1')
  await shows(/… in the bridge for \S+ \w+ so far: the server has not answered initialize …/)
  ring.record({ ...message, dir: 'in', form: 'result', id: 1 })
  ring.record({ ...message, call: 1, method: 'tools/call', id: 2 })
  await shows(/… waiting for the server for \S+ \w+ so far …/)
  withoutMistakes()
})

/** A PNG of one colour, whose header may say another size. */
function png(width: number, height: number, said = { width, height }): string {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(body))
    return Buffer.concat([length, body, sum])
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(said.width)
  head.writeUInt32BE(said.height, 4)
  head.set([8, 2], 8)
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([200, 30, 60]))])
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const data = deflateSync(Buffer.concat(Array(height).fill(row)))
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', data), chunk('IEND', Buffer.alloc(0))]).toString(
    'base64',
  )
}

/** The checksum of chunks. */
function crc32(bytes: Buffer): number {
  let sum = 0xffffffff
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0)
  }
  return (sum ^ 0xffffffff) >>> 0
}

t.test('an image has a thumbnail, drawn from its bytes, within bounds; nothing is loaded', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const svg = Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" onload="document.title='hacked'"><!--${' '.repeat(99)}--></svg>`,
  )
  const image = (mimeType: string, data: string) => ({ type: 'image', mimeType, data })
  const content = [
    image('image/png', png(400, 200)),
    image('image/png', png(4, 4, { width: 60_000, height: 60_000 })),
    image('image/svg+xml', svg.toString('base64')),
  ]
  tellCall(ring.record, { id: 1, texts: { request: '{}', result: JSON.stringify({ id: 7, result: { content } }) } })
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  await go('#/calls/c1')
  await shows(/image\/png, \d+ B.*?The image is too large to be drawn: 60000 × 60000 pixels.*?image\/svg\+xml, \d+ B/s)
  const pixel = `{
    const canvas = document.querySelector('.thumbnails canvas');
    ({ width: canvas.width, height: canvas.height, colour: [...canvas.getContext('2d').getImageData(9, 9, 1, 1).data] })
  }`
  await until(async () => (await browser.evaluate<{ colour: number[] }>(pixel)).colour[0] === 200, 'it is drawn')
  t.same(await browser.evaluate(pixel), { width: 96, height: 48, colour: [200, 30, 60, 255] })
  t.equal(await browser.evaluate('document.images.length'), 0)
  t.equal(await browser.evaluate('document.title'), 'mcp-bridge inspector')
  t.same(await problems(browser), [])
  await browser.screenshot(`${pictures}thumbnails.png`)
  withoutMistakes()
})
