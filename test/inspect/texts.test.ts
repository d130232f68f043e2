/** The memory of texts: what is written over, and what is cut. */
import t from 'tap'
import { Texts } from '../../src/inspector/texts.js'

t.test('keeps a text until newer ones overwrite it', async (t) => {
  const texts = new Texts(100_000)
  t.equal(texts.bytes, 0)
  const at = Array.from({ length: 500 }, (_, i) => texts.add(`${i} ${'é'.repeat(1 + (i % 700))}`))
  t.ok(texts.bytes <= 100_000)
  const found = at.map((position) => texts.read(position as number)?.text)
  const oldest = found.findIndex((text) => text !== undefined)
  t.ok(oldest > 0)
  for (const [i, text] of found.entries()) t.equal(text, i < oldest ? undefined : `${i} ${'é'.repeat(1 + (i % 700))}`)
})

t.test('joins the pieces of a text, and truncates it after 16 Ki', async (t) => {
  const texts = new Texts(200_000)
  const piece = new TextEncoder().encode('ä'.repeat(20_000))
  t.same(texts.read(texts.add(['{"a":"', piece.subarray(0, 20), '"}']) as number), {
    text: `{"a":"${'ä'.repeat(10)}"}`,
    cut: 0,
    hidden: 0,
  })
  const long = texts.read(texts.add(['<', piece, '>']) as number)
  t.equal(long?.cut, 40_002 - 16_384)
  t.equal(texts.read(texts.add('漢'.repeat(20_000)) as number)?.text, '漢'.repeat(16_384))
})

t.test('copies a text until it is overwritten', async (t) => {
  const waiting = new Texts(100_000)
  const kept = new Texts(100_000)
  const at = waiting.add(['{"a":', '1}']) as number
  const copy = kept.copy(waiting, at) as number
  t.equal(kept.read(copy)?.text, '{"a":1}')
  for (let i = 0; i < 20; i++) waiting.add('x'.repeat(16_384))
  t.equal(kept.copy(waiting, at), undefined)
  t.equal(kept.read(copy)?.text, '{"a":1}')
})

t.test('stores nothing in a memory smaller than the largest text', async (t) => {
  const texts = new Texts(1_000)
  t.equal(texts.add('{}'), undefined)
  t.equal(texts.bytes, 0)
})
