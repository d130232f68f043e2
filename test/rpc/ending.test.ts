/** Recognizes how a call ended that passes unchanged, however its response is split into chunks. */
import fc from 'fast-check'
import t from 'tap'
import { type Ended, Ending } from '../../src/base/rpc/ending.js'
import { parseMessage } from '../../src/base/rpc/message.js'
import { sourceOfBytes } from '../../src/base/rpc/source.js'
import { EMPTY } from '../../src/base/rpc/splice.js'
import { outcomeOf, replyIn } from '../../src/clients/outcome.js'
import type { Final } from '../../src/mcp/protocol/call.js'

const members = fc.dictionary(
  fc.oneof(fc.constantFrom('isError', 'result', 'error', 'code', 'resultType', 'content'), fc.string()),
  fc.oneof(fc.constantFrom(true, false, 7, 'input_required', 'isError', '\\"', '"}{'), fc.jsonValue()),
)
const response = fc.oneof(
  fc.record({ id: fc.nat(), result: members }),
  fc.record({ error: fc.record({ message: fc.string(), code: fc.integer(), data: fc.jsonValue() }), id: fc.nat() }),
)

/** The reply whose bytes ended so. */
function replyOf(ended: Ended): Final {
  if (ended === 'error') return { kind: ended, error: { code: 0, message: '' } }
  return ended === 'input'
    ? { kind: ended, result: EMPTY }
    : { kind: 'result', result: EMPTY, isToolError: ended === 'tool error' }
}

t.test('finds the ending of a response like a parser, however it is split', async (t) => {
  fc.assert(
    fc.property(
      response,
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      fc.boolean(),
      (body, sizes, wide) => {
        const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...body }, undefined, wide ? 1 : 0))
        const ending = new Ending()
        for (let at = 0, n = 0; at < bytes.length; n++) {
          const size = sizes[n % sizes.length] as number
          ending.push(bytes.subarray(at, at + size))
          at += size
        }
        const message = parseMessage(sourceOfBytes([bytes]))
        if (message.kind !== 'response' || !ending.ended) throw new Error('no response')
        const reply = replyIn(message)
        return outcomeOf(replyOf(ending.ended)) === outcomeOf(reply)
      },
    ),
    { numRuns: 5_000 },
  )
  t.pass()
})

t.test(
  'finds keys with a prefix in a result, but not in the data of a tool, however the response is split',
  async (t) => {
    const rows: [result: string, isMarked: boolean][] = [
      ['{"content":[],"_meta":{"a":1,"own/b":2}}', true],
      ['{"_meta":{"a":["own/b"]},"content":[{"text":"own/b"}],"own/b":1}', false],
      ['{"content":[{"_meta":{"own/b":1}}],"_meta":{"a":"own/b"}}', true],
      ['{"content":[{"resource":{"_meta":{"own/b":1}}}]}', true],
      ['{"structuredContent":{"_meta":{"own/b":1}},"content":[]}', false],
      ['{"structuredContent":{"a":[{"own/b":1}]},"contents":[{"_meta":{"\\u006fwn/b":1}}]}', true],
      ['{"_meta":{"\\u006fwn/b":1}}', true],
      ['{"\\u005fmeta":{"own/b":1}}', true],
      ['{"_meta":{"a":"\\u006f"},"text":"\\u006f"}', false],
      ['{"resultType":"complete"}', false],
      ['{"resultType":"task"}', true],
    ]
    for (const [result, isMarked] of rows)
      for (const size of [1, 3, 1_000]) {
        const bytes = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`)
        const ending = new Ending('own/')
        for (let at = 0; at < bytes.length; at += size) ending.push(bytes.subarray(at, at + size))
        t.equal(ending.hasMarked, isMarked, `${result}, in pieces of ${size}`)
        t.equal(ending.ended, 'result')
      }
  },
)
