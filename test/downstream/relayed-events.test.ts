/** What the bridge reads from a relayed event stream, however the stream is split into chunks. */
import fc from 'fast-check'
import t from 'tap'
import { RelayedEvents } from '../../src/downstream/http/relayed-answer.js'
import { outcomeOf, replyIn, replyOf } from '../../src/downstream/outcome.js'
import { Ending } from '../../src/rpc/ending.js'
import { hasLineEnd } from '../../src/rpc/event-length.js'

const KIB = 1024
/** Around what is remembered of a stream, and what is read of it. */
const SIZES = [0, 1, 100, 15 * KIB, 16 * KIB, 17 * KIB, 32 * KIB, 33 * KIB, 70 * KIB]

const size = fc.oneof(fc.constantFrom(...SIZES), fc.integer({ min: 0, max: 40 * KIB }))
const filler = fc
  .tuple(fc.constantFrom('x', '\\n', '\\"', '{', 'data: '), size)
  .map(([part, length]) => fill(part, length))
const note = filler.map((text) => `{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"${text}"}}`)
const response = fc
  .tuple(filler, fc.constantFrom('"result":{TEXT}', '"result":{TEXT,"isError":true}', '"error":{TEXT,"code":-32000}'))
  .map(([text, form]) => `{"jsonrpc":"2.0","id":1,${form.replace('TEXT', () => `"message":"${text}"`)}}`)
const lineEnd = fc.constantFrom('\n', '\r', '\r\n')
const pieceSizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 70 * KIB })), {
  minLength: 1,
  maxLength: 5,
})

t.test('finds the answer in a relayed stream, however it is split', async (t) => {
  fc.assert(
    fc.property(
      fc.array(note, { maxLength: 3 }),
      fc.option(response, { nil: undefined }),
      fc.boolean(),
      lineEnd,
      pieceSizes,
      (notes, answer, followed, end, sizes) => {
        const after = followed && answer !== undefined ? [': ping', `id: 7${end}data: `] : []
        const events = [...notes, ...(answer === undefined ? [] : [answer])].map((text) => `data: ${text}`)
        const text = [...events, ...after].map((event) => event + end + end).join('')
        const found = read(text, sizes)
        t.ok(found.isWhole)
        t.equal(found.isResumable, after.length > 0)
        if (answer !== undefined) t.equal(outcome(found), expected(answer))
        else if ((notes.at(-1)?.length ?? 0) < KIB) t.equal(found.answer, undefined)
        t.notOk(read(`${text}data: {`, sizes).isWhole)
      },
    ),
    { numRuns: 300 },
  )
})

function fill(part: string, length: number): string {
  return part.repeat(Math.ceil(length / part.length))
}

function read(text: string, sizes: readonly number[]): RelayedEvents {
  const events = new RelayedEvents()
  const bytes = Buffer.from(text)
  // Large streams in small chunks would take long.
  const least = Math.ceil(bytes.length / 5_000)
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const end = at + Math.max(least, sizes[n % sizes.length] as number)
    const piece = bytes.subarray(at, end)
    events.push(piece, hasLineEnd(piece))
    at = end
  }
  return events
}

function expected(answer: string): string {
  if (answer.includes('"error"')) return '["error",-32000]'
  return answer.includes('"isError"') ? '["tool_error",false]' : '["ok",false]'
}

function outcome({ answer }: RelayedEvents): string | undefined {
  const final = answer instanceof Ending ? answer.ended && replyOf(answer.ended) : answer && replyIn(answer)
  return final && JSON.stringify([outcomeOf(final), final.kind === 'error' && final.error.code])
}
