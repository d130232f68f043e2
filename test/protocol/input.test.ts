/** Translating questions between eras, and validating answers. */
import t from 'tap'
import { parseObject, write } from '../../src/base/rpc/splice.js'
import {
  capabilityFor,
  isShowable,
  liftQuestion,
  lowerAnswer,
  readInputRequests,
  uncovered,
  wellFormed,
} from '../../src/mcp/protocol/input.js'
import { faultOf } from '../support/faults.js'

const FORM = 'elicitation/create'
const MODEL = 'sampling/createMessage'
const ROOTS = 'roots/list'

t.test('a question requires the capabilities that it uses', async (t) => {
  const rows: [method: string, params: string, declared: string, lacking: string | undefined][] = [
    [FORM, '{}', '{"elicitation":{}}', undefined],
    [FORM, '{"mode":"form"}', '{"elicitation":{}}', undefined],
    [FORM, '{}', '{"elicitation":{"form":{}}}', undefined],
    [FORM, '{}', '{"elicitation":{"url":{}}}', 'elicitation.form'],
    [FORM, '{"mode":"url"}', '{"elicitation":{"form":{},"url":{}}}', undefined],
    [FORM, '{"mode":"url"}', '{"elicitation":{}}', 'elicitation.url'],
    [FORM, '{}', '{"sampling":{}}', 'elicitation'],
    [MODEL, '{}', '{"sampling":{}}', undefined],
    [MODEL, '{"tools":[]}', '{"sampling":{}}', 'sampling.tools'],
    [MODEL, '{"toolChoice":{}}', '{"sampling":{"context":{}}}', 'sampling.tools'],
    [MODEL, '{"tools":[]}', '{"sampling":{"tools":{}}}', undefined],
    [MODEL, '{}', '{}', 'sampling'],
    [ROOTS, '{}', '{"roots":{}}', undefined],
    [ROOTS, '{}', '{"elicitation":{}}', 'roots'],
    ['vendor/ask', '{}', '{"roots":{}}', 'vendor/ask'],
  ]
  for (const [method, params, declared, lacking] of rows)
    t.equal(uncovered(method, parseObject(params), parseObject(declared)), lacking, `${method} ${params} ${declared}`)
  t.equal(capabilityFor('ping', parseObject('{}')), undefined)
})

t.test('an answer has only allowed members, and is invalid without required ones', async (t) => {
  const rows: [method: string, answer: string, taken: string | undefined][] = [
    [
      FORM,
      '{"action":"accept","content":{"a":"x","b":1.50,"c":true,"d":["x"]}}',
      '{"action":"accept","content":{"a":"x","b":1.50,"c":true,"d":["x"]}}',
    ],
    [FORM, '{"action":"decline"}', '{"action":"decline"}'],
    [FORM, '{"action":"cancel","content":null,"x":1}', '{"action":"cancel"}'],
    [FORM, '{"action":"accept","content":{"a":null}}', undefined],
    [FORM, '{"action":"accept","content":{"a":{}}}', undefined],
    [FORM, '{"action":"accept","content":{"a":[1]}}', undefined],
    [FORM, '{"action":"accept","content":[]}', undefined],
    [FORM, '{"action":"yes"}', undefined],
    [FORM, '{}', undefined],
    [
      MODEL,
      '{"role":"assistant","content":{},"model":"m","stopReason":"x","resultType":"complete"}',
      '{"role":"assistant","content":{},"model":"m","stopReason":"x"}',
    ],
    [
      MODEL,
      '{"role":"assistant","content":[],"model":"m","stopReason":null}',
      '{"role":"assistant","content":[],"model":"m"}',
    ],
    [MODEL, '{"role":"assistant","content":"x","model":"m"}', undefined],
    [MODEL, '{"role":"assistant","content":{}}', undefined],
    [ROOTS, '{"roots":[]}', '{"roots":[]}'],
    [ROOTS, '{"roots":[{"uri":"file:///a","name":"a"}],"x":1}', '{"roots":[{"uri":"file:///a","name":"a"}]}'],
    [ROOTS, '{"roots":[{"name":"a"}]}', undefined],
    [ROOTS, '{"roots":{}}', undefined],
    ['vendor/ask', '{}', undefined],
  ]
  for (const [method, answer, taken] of rows) {
    const good = wellFormed(method, parseObject(answer))
    t.equal(good && write(good), taken, `${method} ${answer}`)
  }
})

t.test('removes members of the legacy era from a question of a legacy server', async (t) => {
  const all = '{"sampling":{"context":{}}}'
  const rows: [method: string, params: string, told: string, declared?: string][] = [
    [ROOTS, '{}', '{"method":"roots/list"}'],
    [ROOTS, '{"_meta":{"progressToken":1}}', '{"method":"roots/list"}'],
    [
      FORM,
      '{"message":"x","elicitationId":"e","task":{}}',
      '{"method":"elicitation/create","params":{"message":"x","mode":"form"}}',
    ],
    [FORM, '{"mode":"url","url":"u"}', '{"method":"elicitation/create","params":{"mode":"url","url":"u"}}'],
    [
      FORM,
      '{"mode":"form","requestedSchema":{"n":1.0}}',
      '{"method":"elicitation/create","params":{"mode":"form","requestedSchema":{"n":1.0}}}',
    ],
    [
      MODEL,
      '{"includeContext":"thisServer","maxTokens":1e2}',
      '{"method":"sampling/createMessage","params":{"maxTokens":1e2}}',
    ],
    [MODEL, '{"includeContext":"none"}', '{"method":"sampling/createMessage","params":{"includeContext":"none"}}'],
    [
      MODEL,
      '{"includeContext":"allServers"}',
      '{"method":"sampling/createMessage","params":{"includeContext":"allServers"}}',
      all,
    ],
    [
      MODEL,
      '{"_meta":{"v/k":1,"progressToken":"t","io.modelcontextprotocol/related-task":{"taskId":"t"}},"task":{"ttl":1}}',
      '{"method":"sampling/createMessage","params":{"_meta":{"v/k":1}}}',
    ],
  ]
  for (const [method, params, told, declared = '{"sampling":{}}'] of rows)
    t.equal(liftQuestion(method, parseObject(params), parseObject(declared)), told, `${method} ${params}`)
})

t.test(
  'a legacy server gets an answer in the form of its revision, or none that the revision cannot express',
  async (t) => {
    const text = (said: string) => `{"type":"text","text":"${said}"}`
    const answer = (content: string) => `{"role":"assistant","content":${content},"model":"m"}`
    const rows: [given: string, older: string | undefined][] = [
      [text('a'), text('a')],
      [`[${text('a')}]`, text('a')],
      [`[${text('a')},${text('b')}]`, text('a\\nb')],
      ['[{"type":"image","data":"","mimeType":"image/png"}]', '{"type":"image","data":"","mimeType":"image/png"}'],
      [`[${text('a')},{"type":"image"}]`, undefined],
      ['[]', '{"type":"text","text":""}'],
    ]
    for (const [given, older] of rows) {
      for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18'] as const) {
        const lowered = lowerAnswer(MODEL, parseObject(answer(given)), revision)
        t.equal(lowered && write(lowered), older && answer(older), `${revision}: ${given}`)
      }
      const newest = lowerAnswer(MODEL, parseObject(answer(given)), '2025-11-25')
      t.equal(newest && write(newest), answer(given))
    }
    const form = '{"action":"accept","_meta":{"io.modelcontextprotocol/serverInfo":{},"v/k":1}}'
    const lowered = lowerAnswer(FORM, parseObject(form), '2025-06-18')
    t.equal(lowered && write(lowered), '{"action":"accept","_meta":{"v/k":1}}')
  },
)

t.test('reads valid questions of modern servers, and refuses others', async (t) => {
  const read = (input: string) => readInputRequests(parseObject(input))
  t.match(read(`{"inputRequests":{"a b":{"method":"${FORM}","params":{"n":1}},"c":{"method":"${ROOTS}"}}}`), [
    { key: 'a b', method: FORM },
    { key: 'c', method: ROOTS },
  ])
  t.same(read('{"requestState":"x"}'), [])
  t.same(read('{"inputRequests":{},"requestState":"x"}'), [])
  for (const requests of ['{}', '[]', 'null', '7'])
    t.same(read(`{"inputRequests":${requests},"requestState":"x"}`), [], `${requests}, as the official clients read it`)
  for (const wrong of [
    '{}',
    '{"inputRequests":[]}',
    '{"inputRequests":null}',
    '{"inputRequests":{"a":7}}',
    '{"inputRequests":{"a":{}}}',
    '{"inputRequests":{"a":{"method":"tools/call"}}}',
    '{"inputRequests":{"a":{"method":"toString"}}}',
  ])
    t.equal(faultOf(() => read(wrong))?.fault, 'upstreamProtocol', wrong)
})

t.test('a user may be sent only to https addresses and to this machine', async (t) => {
  for (const good of [
    'https://example.com/x?y#z',
    'http://localhost:1/x',
    'http://127.0.0.1',
    'http://127.8.9.1/',
    'http://[::1]:8080/x',
  ])
    t.ok(isShowable(good), good)
  for (const bad of [
    'http://example.com',
    'http://localhost.example.com',
    'http://127.0.0.1.example.com',
    'ftp://x',
    'javascript:alert(1)',
    'https://bank.example@example.com/',
    'https://:x@example.com/',
    'data:text/html,x',
    'file:///etc/passwd',
    '//example.com',
    '',
    'x',
    undefined,
    null,
    7,
    {},
  ])
    t.notOk(isShowable(bad), String(bad))
})
