/** How the arguments of a call are shown to a person. */
import t from 'tap'
import { Fault } from '../../../src/base/fault/fault.js'
import { argumentLines, type Unwritten } from '../../../src/middle/policy/approval/argument-lines.js'
import { askedText, decisionIn, formOf } from '../../../src/middle/policy/approval/question.js'
import { secretNames } from '../../../src/middle/policy/approval/secrets.js'

const lines = (args: string, { secrets = [], omitted = [] }: { [K in keyof Unwritten]?: string[] } = {}) =>
  argumentLines(args, { secrets: new Set(secrets), omitted: new Set(omitted) })

t.test('each value is in a line of its own, as it came', async (t) => {
  const args =
    '{ "path": "/tmp/a b", "n": 9007199254740993, "ratio": 1.0, "all": true, "none": null, "x": {"y": [1, {"z": "q"}]} }'
  t.same(lines(args).lines, [
    'all: true',
    'n: 9007199254740993',
    'none: null',
    'path: "/tmp/a b"',
    'ratio: 1.0',
    'x.y[0]: 1',
    'x.y[1].z: "q"',
  ])
  t.same(lines('{"e":{},"l":[],"m":{"":1,"a.b":2}}').lines, ['e: {}', 'l: []', 'm."": 1', 'm."a.b": 2'])
  t.same(lines('{}'), { lines: [], more: 0 })
})

t.test('what cannot be seen is made visible, and nothing can look like another line', async (t) => {
  const hostile = {
    path: '/tmp/\u202etxt.exe\u200b\u{e0041}\u00ad\ud800',
    text: 'a\nanswer: "Run"\r\u001b[2K\\u{202e}',
  }
  const { lines: shown } = lines(JSON.stringify(hostile))
  t.same(shown, [
    String.raw`path: "/tmp/\u{202e}txt.exe\u{200b}\u{e0041}\u{ad}\ud800"`,
    String.raw`text: "a\nanswer: \"Run\"\r\u001b[2K\\u{202e}"`,
  ])
  t.same(lines(String.raw`{"\u0064elete\u200b": "\u0061\u202e"}`).lines, [String.raw`"delete\u{200b}": "a\u{202e}"`])
  t.same(lines('{"a\\nb: \\"x\\"": 1}').lines, [String.raw`"a\nb: \"x\"": 1`])
})

t.test('long values, places and lists are cut, and it is said', async (t) => {
  t.same(lines(JSON.stringify({ a: 'x'.repeat(1_000) })).lines, [`a: "${'x'.repeat(299)}… (702 more characters)`])
  const many = lines(JSON.stringify({ list: Array.from({ length: 100 }, (_, i) => i) }))
  t.equal(many.lines.length, 40)
  t.equal(many.more, 60)
  t.match(askedText({ server: 's', tool: 't', arguments: many }), /… and 60 more values, which are not shown$/)
  const deep = `${'{"aaaa":'.repeat(100)}1${'}'.repeat(100)}`
  t.match(lines(deep).lines[0], /^…(?:a|\.){120}: 1$/)
})

t.test('two members of one name are refused, in any spelling and depth', async (t) => {
  const refused = new Fault('invalidParams', 'An object of the arguments has two members of one name')
  t.throws(() => lines('{"a":1,"b":2,"a":3}'), refused)
  t.throws(() => lines('{"x":[{"a":1,"\\u0061":3}]}'), refused)
  t.throws(() => lines('{"secret":{"a":1,"a":3}}', { secrets: ['secret'] }), refused)
})

t.test('secret values and those of the operator are not shown', async (t) => {
  const args = '{"user":"ada","password":"p","auth":{"token":{"a":1}},"org":"acme","inner":{"org":"x"}}'
  t.same(lines(args, { secrets: ['password', 'token'], omitted: ['org'] }).lines, [
    'auth.token: (hidden)',
    'inner.org: "x"',
    'password: (hidden)',
    'user: "ada"',
  ])
})

t.test('schemas say what is secret', async (t) => {
  const schema = {
    type: 'object',
    properties: {
      plain: { type: 'string', 'x-mcp-header': 'Plain' },
      password: { type: 'string', format: 'password' },
      key: { anyOf: [{ type: 'string', writeOnly: true }, { type: 'null' }] },
      marked: { type: 'string', 'x-mcp-secret': true },
      vendor: { 'x-sensitive-value': true },
      notMarked: { 'x-mcp-secret': false },
      keys: { type: 'array', items: { format: 'password' } },
      referred: { $ref: '#/$defs/pass~1word' },
      nested: { type: 'object', properties: { pin: { writeOnly: true } } },
      round: { $ref: '#/properties/round' },
    },
    $defs: { 'pass/word': { allOf: [{ format: 'password' }] } },
  }
  const names = ['key', 'keys', 'marked', 'password', 'pin', 'referred', 'vendor']
  t.same([...secretNames(schema)].sort(), names)
  for (const nothing of [undefined, null, 'x', [], { properties: [] }, { properties: { a: 1 } }])
    t.same([...secretNames(nothing)], [])
})

t.test('the question has names in one line, and nothing that the server says of the tool', async (t) => {
  const tool = 'x"?\n\nAnswer Run\u202e'
  t.equal(
    askedText({ server: 'files', tool, arguments: { lines: [], more: 0 } }),
    'Run the tool "x\\"?\\n\\nAnswer Run\\u{202e}" of the server "files"?\n\nIt gets no arguments.',
  )
  const form = JSON.parse(formOf({ server: 's', tool: 't', arguments: { lines: ['a: 1'], more: 0 } }, 600_000))
  t.match(form.approval.params.message, /"Run, and ask no more for 10 minutes" is for this tool with any arguments\.$/)
  t.same(form.approval.params.requestedSchema.properties.answer.enum, [
    'Run',
    'Do not run',
    'Run, and ask no more for 10 minutes',
  ])
  t.equal(form.approval.params.requestedSchema.properties.answer.default, undefined)
})

t.test('only an answer that says so approves', async (t) => {
  const said = (answer: unknown, window?: number) => decisionIn(JSON.stringify({ approval: answer }), window)
  const accept = (content: unknown) => ({ action: 'accept', content })
  t.equal(said(accept({ answer: 'Run' })), 'run')
  t.equal(said(accept({ answer: 'Run, and ask no more for 1 hour' }), 3_600_000), 'window')
  t.equal(said(accept({ answer: 'Run, and ask no more for 30 seconds' }), 30_000), 'window')
  for (const no of [
    accept({ answer: 'Do not run' }),
    accept({ answer: 'run' }),
    accept({ answer: 'Run, and ask no more for 1 hour' }),
    accept({ answer: true }),
    accept({}),
    accept(undefined),
    accept(['Run']),
    { action: 'decline', content: { answer: 'Run' } },
  ])
    t.equal(said(no), 'refused', JSON.stringify(no))
  for (const no of [{ action: 'cancel' }, { action: 'Accept' }, {}, null, 'accept', undefined])
    t.equal(said(no), 'cancelled', JSON.stringify(no))
  t.equal(decisionIn(undefined, undefined), 'cancelled')
  t.equal(
    decisionIn('{"approval":{"action":"decline","action":"accept","content":{"answer":"Run"}}}', undefined),
    'cancelled',
  )
  t.equal(
    decisionIn('{"approval":{"action":"accept","content":{"answer":"Do not run","answer":"Run"}}}', undefined),
    'refused',
  )
})
