/** Reading the head of a message from as few bytes as possible. */
import t from 'tap'
import { headIn } from '../../src/base/rpc/head.js'
import { parseMessage } from '../../src/base/rpc/message.js'
import { sourceOf } from '../../src/base/rpc/source.js'
import { describe, type ReceivedMessage } from '../../src/inspector/recorder/message.js'

const headOf = (text: string) => headIn(new TextEncoder().encode(text))

t.test('the head of a message is the one that the parser reads', async (t) => {
  const messages = [
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":1,"method":"x"}}',
    ' { "params" : { "a" : [ "}" , {"b":"\\"]"} ] } , "method" : "tools/list" , "id" : "a\\u0062" , "jsonrpc":"2.0" } ',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3}}',
    '{"result":{"content":[{"type":"text","text":"id \\\\"}],"error":1},"jsonrpc":"2.0","id":100000000}',
    '{"jsonrpc":"2.0","id":9007199254740993,"result":{}}',
    '{"jsonrpc":"2.0","id":-3,"error":{"code":-32603,"message":"m"}}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m"}}',
    '{"jsonrpc":"2.0","error":{"code":-32603,"message":"é"}}',
    '{"jsonrpc":"2.0","id":1,"method":"resources/é"}',
    '{"jsonrpc":"2.0","error":null,"method":null,"id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-32603,"message":"m"}}',
    '{"jsonrpc":"2.0","id":1,"result":null,"error":null}',
    '{"jsonrpc":"2.0","id":null,"method":"notifications/progress","params":null}',
    '\ufeff{"jsonrpc":"2.0","id":1.0,"result":{}}',
  ]
  for (const text of messages) {
    const message = parseMessage(sourceOf(text))
    if (message.kind === 'batch' || message.kind === 'invalid') throw new Error(`${text} is no message`)
    const told: ReceivedMessage = { form: 'notification' }
    describe(message, told)
    const { form, method, id } = told
    t.same(headOf(text), { form, method, id }, text)
  }
})

t.test('a text that is not a message has no head', async (t) => {
  for (const text of [
    '',
    '[]',
    '[{"jsonrpc":"2.0","id":1,"method":"x"}]',
    '{',
    '{}',
    '{"a"',
    '{"method":1}',
    '{"id" 1}',
  ])
    t.equal(headOf(text), undefined, text)
})

t.test('reads a truncated message to its end', async (t) => {
  const text = '{"result":{"content":[{"type":"text","text":"a\\"b"}]},"jsonrpc":"2.0","id":"s\\n"}'
  for (let length = 0; length < text.length; length++) t.doesNotThrow(() => headOf(text.slice(0, length)))
  t.equal(
    headOf(`{"id":"${'x'.repeat(2_000)}","method":"tools/list"}`)?.id,
    undefined,
    'an id that is too long is none',
  )
})
