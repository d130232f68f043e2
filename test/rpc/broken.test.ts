/** Finding the request that an invalid message answers. */
import t from 'tap'
import { brokenAnswerTo } from '../../src/base/rpc/broken.js'
import { sourceOf } from '../../src/base/rpc/source.js'

const cases: [name: string, text: string, id: string | undefined][] = [
  ['NaN', '{"jsonrpc":"2.0","id":7,"result":NaN}', '7'],
  ['an id behind the result', '{"result":{"x":[1,2,NaN]},"jsonrpc":"2.0","id":7}', '7'],
  ['an id as a string', '{"jsonrpc":"2.0","id":"7","result":NaN}', '"7"'],
  ['an id as a fraction', '{"jsonrpc":"2.0","id":7.0,"result":{}}', '7.0'],
  ['white space', ' {\n"jsonrpc" : "2.0" ,\t"id" : 7 , "result" : NaN }', '7'],
  ['no end', '{"jsonrpc":"2.0","id":7,"error":{"code":', '7'],
  ['neither result nor error', '{"jsonrpc":"2.0","id":7}', '7'],
  ['neither of them, and no end', '{"jsonrpc":"2.0","id":7', undefined],
  ['ids further inside', '{"jsonrpc":"2.0","result":{"id":1,"x":[{"id":2}],"y":NaN},"id":7}', '7'],
  ['an id inside a string', '{"jsonrpc":"2.0","result":"\\",\\"id\\":1,NaN","id":7,}', '7'],
  ['a value that is called id', '{"jsonrpc":"2.0","result":"id","x":NaN}', undefined],
  ['a request', '{"jsonrpc":"2.0","id":7,"method":"x","params":NaN}', undefined],
  ['a line of a log', '{"level":30,"id":7,"error":"x"}', undefined],
  ['a text before it', 'sent {"jsonrpc":"2.0","id":7,"result":NaN}', undefined],
  ['an array', '[{"jsonrpc":"2.0","id":7,"result":NaN}]', undefined],
  ['a word', 'NaN', undefined],
  ['nothing', '', undefined],
]

t.test('finds a readable id in an answer, and in no other text', async (t) => {
  for (const [name, text, id] of cases) t.equal(brokenAnswerTo(sourceOf(text)), id, name)
})
