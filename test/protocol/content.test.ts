/** What clients of both eras get for content that is not a list of blocks. */
import {
  CallToolResultSchema,
  GetPromptResultSchema,
  ReadResourceResultSchema,
} from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { sourceOf } from '../../src/base/rpc/source.js'
import { EMPTY, objectIn, type Payload, parseObject, parseSource, write } from '../../src/base/rpc/splice.js'
import { changesOf, type Towards, UNKNOWN } from '../../src/inspector/recorder/rules.js'
import { downlevelResult } from '../../src/mcp/protocol/downlevel/downlevel.js'
import { lift } from '../../src/mcp/protocol/lift.js'
import { clientOf, REVISIONS, resultFor } from './downlevel/client.js'

const text = (text: string) => ({ type: 'text', text })
const message = (content: object) => ({ role: 'user', content })

/** What servers answer, and what the client gets: for `tools/call` the content, for other methods the result. */
const FORMS: [method: string, result: object, got: unknown][] = [
  ['tools/call', { content: 'It is 3 degrees' }, [text('It is 3 degrees')]],
  ['tools/call', { content: text('It is 3 degrees') }, [text('It is 3 degrees')]],
  ['tools/call', { content: { text: 'It is 3 degrees' } }, [text('It is 3 degrees')]],
  ['tools/call', { content: { degrees: 3 } }, [text('{"degrees":3}')]],
  ['tools/call', { content: 3 }, [text('3')]],
  ['tools/call', { content: false, isError: true }, [text('false')]],
  ['tools/call', { content: '' }, [text('')]],
  ['tools/call', { content: null }, []],
  ['tools/call', { isError: false, _meta: {} }, []],
  ['tools/call', { content: ['It is', 3, 'degrees', null] }, [text('It is'), text('3'), text('degrees')]],
  [
    'tools/call',
    { content: [text('a'), { text: 'b' }, { degrees: 3 }] },
    [text('a'), text('b'), text('{"degrees":3}')],
  ],
  ['tools/call', { content: 'said', structuredContent: { degrees: 3 } }, [text('said')]],
  ['tools/call', { text: 'It is 3 degrees' }, [text('{"text":"It is 3 degrees"}')]],
  ['tools/call', { isError: true, output: [1] }, [text('{"output":[1]}')]],
  ['tools/call', { toolResult: 'It is 3 degrees' }, [text('It is 3 degrees')]],
  ['tools/call', { content: null, toolResult: { degrees: 3 } }, [text('{"degrees":3}')]],
  [
    'prompts/get',
    { messages: [message(text('a')), { role: 'user', content: 'Hello' }] },
    { messages: [message(text('a')), message(text('Hello'))] },
  ],
  ['prompts/get', { messages: [{ role: 'user', content: { text: 'Hello' } }] }, { messages: [message(text('Hello'))] }],
  ['prompts/get', { messages: { role: 'user', content: 'Hello' } }, { messages: [message(text('Hello'))] }],
  [
    'prompts/get',
    { messages: [{ role: 'user', content: [text('a'), 'b'] }] },
    { messages: [message(text('a')), message(text('b'))] },
  ],
  ['resources/read', { contents: { uri: 'a:b', text: 'x' } }, { contents: [{ uri: 'a:b', text: 'x' }] }],
]

const SCHEMAS: Record<string, { parse(result: unknown): unknown }> = {
  'tools/call': CallToolResultSchema,
  'prompts/get': GetPromptResultSchema,
  'resources/read': ReadResourceResultSchema,
}

function check(t: Test, method: string, said: string, told: string, got: unknown) {
  const result = JSON.parse(told)
  t.same(method === 'tools/call' ? result.content : result, got, said)
  t.doesNotThrow(() => SCHEMAS[method]?.parse(result), `${said} is accepted`)
}

t.test('modern clients get content in another form than blocks as blocks', async (t) => {
  for (const [method, result, got] of FORMS) {
    const said = JSON.stringify(result)
    check(t, method, said, write(lift(method, parseObject(said))), got)
  }
})

t.test('legacy clients get content in another form than blocks as blocks', async (t) => {
  for (const [method, result, got] of FORMS)
    for (const revision of REVISIONS)
      for (const strict of [false, true]) {
        const said = JSON.stringify(result)
        const client = clientOf(revision, { strict })
        check(t, method, said, resultFor(client, method, said), got)
      }
})

t.test('a text in place of content keeps its bytes', async (t) => {
  const said = parseObject('{"content":"\\u00e9\\/ 3\\u00b0"}')
  t.equal(write(lift('tools/call', said)), '{"content":[{"type":"text","text":"\\u00e9\\/ 3\\u00b0"}]}')
})

t.test('the inspector knows the rule of each change of content', async (t) => {
  for (const [method, result] of FORMS) {
    const said = JSON.stringify(result)
    const received = objectIn(parseSource(sourceOf(`{"jsonrpc":"2.0","id":1,"result":${said}}`)), 'result') as Payload
    const made = [
      ['modern client', lift(method, received)],
      ...REVISIONS.map((revision) => ['legacy client', downlevelResult(method, EMPTY, received, clientOf(revision))]),
    ] as [Towards, Payload][]
    for (const [towards, payload] of made)
      for (const { rule, at } of changesOf('result', undefined, payload, towards)?.all ?? [])
        t.not(rule, UNKNOWN, `${at} of ${said} to a ${towards}`)
  }
})
