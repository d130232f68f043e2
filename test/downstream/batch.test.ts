/** Batches: splitting an array of messages, and joining the answers. */
import t from 'tap'
import type { Message } from '../../src/base/rpc/message.js'
import { join } from '../../src/base/rpc/source.js'
import { readBatch, together } from '../../src/clients/legacy/batch.js'
import { faultOf } from '../support/faults.js'
import { parseText, textOf } from '../support/messages.js'

const batchOf = (text: string) => parseText(text) as Message & { kind: 'batch' }
const ping = (id: unknown) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"ping"}`
const errorsOf = (text: string) =>
  readBatch(batchOf(text)).errors.map((error) => JSON.parse(textOf(error)) as { id?: unknown; error: { code: number } })

t.test('separates requests from messages that need no answer', async (t) => {
  const { requests, others, errors } = readBatch(
    batchOf(
      `[ ${ping('a')},{"jsonrpc":"2.0","method":"notifications/x"} , {"jsonrpc":"2.0","id":1,"result":{}},${ping(2)}]`,
    ),
  )
  t.same(
    requests.map(({ id, method }) => [id, method]),
    [
      ['"a"', 'ping'],
      ['2', 'ping'],
    ],
  )
  t.same(
    others.map(({ kind }) => kind),
    ['notification', 'response'],
  )
  t.same(errors, [])
})

t.test('arguments stay the same text', async (t) => {
  const args = '{"n":12345678901234567890,"one":1.0, "e":"\\u00e9"}'
  const { requests } = readBatch(batchOf(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${args}}]`))
  const [request] = requests
  t.ok(request && typeof request.params !== 'string' && request.params.source.text.includes(args))
})

t.test('each invalid element has its own error, under its id if it has one', async (t) => {
  t.same(
    errorsOf(
      `[${ping('a')},7,"x",null,{"jsonrpc":"2.0","id":"b"},{"jsonrpc":"2.0","id":null,"method":"m"},[${ping('c')}]]`,
    ).map(({ id, error: { code } }) => [id, code]),
    [
      [undefined, -32600],
      [undefined, -32600],
      [undefined, -32600],
      ['b', -32600],
      [undefined, -32600],
      [undefined, -32600],
    ],
  )
})

t.test('refuses an id that another request of the batch has, in any escaping', async (t) => {
  const repeated = `[${ping('é')},{"jsonrpc":"2.0","id":"\\u00e9","method":"ping"},${ping(1)},${ping('1')}]`
  t.equal(readBatch(batchOf(repeated)).requests.length, 3)
  t.match(errorsOf(repeated), [{ id: 'é', error: { code: -32600 } }])
})

t.test('refuses a whole batch with one invalid message', async (t) => {
  const many = (count: number) => `[${Array.from({ length: count }, (_, n) => ping(n)).join(',')}]`
  t.equal(readBatch(batchOf(many(100))).requests.length, 100)
  const refused = ['[]', '[ ]', many(101), `[${ping(1)},{"jsonrpc":"2.0","id":2,"method":"initialize"}]`]
  for (const text of refused)
    t.equal(faultOf(() => readBatch(batchOf(text)))?.fault, 'invalidRequest', text.slice(0, 60))
})

t.test('joins answers unchanged', async (t) => {
  const pieces = ['{"a":', new TextEncoder().encode('"é"'), '}']
  t.equal(join(together(['{"b":1.0}', pieces])), '[{"b":1.0},{"a":"é"}]')
  t.equal(join(together(['{}'])), '[{}]')
})
