/** The file of recorded calls: what is read, and what is said of a wrong one. */
import t from 'tap'
import { MAX_RECORDING_CALLS, readRecording, writeRecording } from '../../src/inspector/replay/recording.js'

const CALL = {
  name: 'echo',
  server: 'everything',
  revision: '2025-11-25',
  capabilities: { elicitation: {} },
  method: 'tools/call',
  params: { name: 'echo', arguments: { message: 'hi\u2028`${x}`' } },
  answers: [{ method: 'elicitation/create', result: { action: 'decline' } }],
  expect: { result: { content: [] } },
  ignore: ['/result/structuredContent/time'],
}

t.test('reads what it has written', async (t) => {
  const recording = {
    ignore: ['/result/_meta'],
    calls: [CALL, { ...CALL, expect: { error: { code: -32602, message: 'no' } } }],
  }
  t.same(readRecording(writeRecording(recording)), { recording: 1, ...recording })
})

const file = (calls: unknown, more: object = {}) => JSON.stringify({ recording: 1, calls, ...more })
const without = (key: string) => file([Object.fromEntries(Object.entries(CALL).filter(([name]) => name !== key))])

const WRONG: [what: string, text: string, message: RegExp][] = [
  ['no JSON', '{"recording":', /^the file is not JSON: /],
  ['nothing', '', /^the file is not JSON: /],
  ['a list', '[]', /^the file has to be an object/],
  ['another file', '{"mcpServers":{}}', /is not a recording of mcp-bridge/],
  ['calls that are no list', file({}), /is not a recording of mcp-bridge/],
  ['another version', file([], { recording: 2 }), /^\/recording has to be 1/],
  [
    'an unknown member',
    file([], { ignored: [] }),
    /has an unknown member "ignored": there are recording, ignore, calls/,
  ],
  ['an unknown member of a call', file([{ ...CALL, expected: {} }]), /^\/calls\/0 has an unknown member "expected"/],
  ['a call that is none', file([CALL, 7]), /^\/calls\/1 has to be an object/],
  ['no method', without('method'), /^\/calls\/0 lacks "method"/],
  ['no params', without('params'), /^\/calls\/0 lacks "params"/],
  ['no expectation', without('expect'), /^\/calls\/0 lacks "expect"/],
  [
    'an unknown revision',
    file([{ ...CALL, revision: '2020-01-01' }]),
    /^\/calls\/0\/revision has to be a revision of MCP: 2026-07-28, /,
  ],
  ['params that are a list', file([{ ...CALL, params: [] }]), /^\/calls\/0\/params has to be an object/],
  ['an expectation of both', file([{ ...CALL, expect: { result: {}, error: {} } }]), /^\/calls\/0\/expect has to have/],
  ['an expectation that is a text', file([{ ...CALL, expect: { result: 'x' } }]), /^\/calls\/0\/expect has to have/],
  [
    'an answer without a method',
    file([{ ...CALL, answers: [{ result: {} }] }]),
    /^\/calls\/0\/answers\/0 lacks "method"|has to/,
  ],
  ['an answer that is a text', file([{ ...CALL, answers: ['yes'] }]), /^\/calls\/0\/answers\/0 has to be an object/],
  [
    'a glob that is no pointer',
    file([{ ...CALL, ignore: ['time'] }]),
    /^\/calls\/0\/ignore has to be a list of JSON Pointers/,
  ],
  ['too many calls', file(Array(MAX_RECORDING_CALLS + 1).fill(0)), /^\/calls has more than 10000 calls/],
  [
    'levels without end',
    `{"recording":1,"calls":[${'['.repeat(100_000)}${']'.repeat(100_000)}]}`,
    /is nested more than 500 levels deep/,
  ],
]
for (const [what, text, message] of WRONG)
  t.test(`a file is refused with ${what}`, async (t) => {
    t.throws(() => readRecording(text), { name: 'RecordingError', message })
  })

t.test('a member with a hostile name is refused, and nothing is changed by it', async (t) => {
  t.throws(() => readRecording('{"recording":1,"calls":[],"__proto__":{"polluted":1}}'), /unknown member "__proto__"/)
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
})
