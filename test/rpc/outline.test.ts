import t from 'tap'
import { Outline } from '../../src/base/rpc/outline.js'

const bytes = (text: string) => new TextEncoder().encode(text)
const LONG = 'x'.repeat(10_000)

function outlineOf(text: string, size: number): Outline {
  const outline = new Outline()
  const all = bytes(text)
  for (let at = 0; at < all.length; at += size) outline.add(all.subarray(at, at + size))
  return outline
}

const ENDS: readonly [text: string, id: string | undefined][] = [
  [`{"jsonrpc":"2.0","result":{"text":"${LONG}"},"id":17}`, '17'],
  [`{"jsonrpc":"2.0","result":{"text":"${LONG}"},"id":"17"}`, '"17"'],
  [`{"result":{"text":"${LONG}"}, "id" : 1.7e1 , "jsonrpc" : "2.0" }\r\n`, '1.7e1'],
  [`{"jsonrpc":"2.0","id":17,"result":{"text":"${LONG}"}}`, undefined],
  [`{"jsonrpc":"2.0","id":17,"result":{"text":"${LONG}","id":18}}`, undefined],
  [`{"jsonrpc":"2.0","result":{"text":"${LONG}\\"id\\":18}"}}`, undefined],
  [`{"jsonrpc":"2.0","result":{"text":"${LONG}"},"note":"\\"id\\":18}"}`, undefined],
]

t.test('reads the id at the end of a message, and no other one', async (t) => {
  for (const [text, id] of ENDS)
    for (const size of [1, 7, 1_000, 100_000]) {
      const outline = outlineOf(text, size)
      t.equal(outline.idAtEnd, id, `${text.slice(-40)} in pieces of ${size}`)
      t.equal(outline.length, text.length)
      t.equal(new TextDecoder().decode(outline.beginning), text.slice(0, 4_096))
    }
})
