/** Recognizes how a relayed call ended, however its response is split into chunks. */
import fc from 'fast-check'
import t from 'tap'
import { RelayedEnding } from '../../src/downstream/http/relayed-ending.js'
import { outcomeOf, replyIn } from '../../src/downstream/outcome.js'
import { parseMessage } from '../../src/rpc/message.js'
import { sourceOfBytes } from '../../src/rpc/source.js'

const members = fc.dictionary(
  fc.oneof(fc.constantFrom('isError', 'result', 'error', 'code', 'resultType', 'content'), fc.string()),
  fc.oneof(fc.constantFrom(true, false, 7, 'input_required', 'isError', '\\"', '"}{'), fc.jsonValue()),
)
const response = fc.oneof(
  fc.record({ id: fc.nat(), result: members }),
  fc.record({ error: fc.record({ message: fc.string(), code: fc.integer(), data: fc.jsonValue() }), id: fc.nat() }),
)

t.test('finds the ending of a response like a parser, however it is split', async (t) => {
  fc.assert(
    fc.property(
      response,
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      fc.boolean(),
      (body, sizes, wide) => {
        const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...body }, undefined, wide ? 1 : 0))
        const ending = new RelayedEnding()
        for (let at = 0, n = 0; at < bytes.length; n++) {
          const size = sizes[n % sizes.length] as number
          ending.push(bytes.subarray(at, at + size))
          at += size
        }
        const message = parseMessage(sourceOfBytes([bytes]))
        if (message.kind !== 'response' || !ending.final) throw new Error('no response')
        const reply = replyIn(message)
        const found = [outcomeOf(ending.final), ending.final.kind === 'error' && ending.final.error.code]
        const known = [outcomeOf(reply), reply.kind === 'error' && reply.error.code]
        // 0 is no error code of JSON-RPC.
        return found[0] === known[0] && (found[1] === known[1] || known[1] === 0)
      },
    ),
    { numRuns: 5_000 },
  )
  t.pass()
})
