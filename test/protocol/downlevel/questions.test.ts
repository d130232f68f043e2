import * as sdk from '@modelcontextprotocol/sdk/types.js'
import fc from 'fast-check'
import t from 'tap'
import { EMPTY, parseObject } from '../../../src/base/rpc/splice.js'
import { downlevelQuestion } from '../../../src/mcp/protocol/downlevel/downlevel.js'
import type { LegacyRevision } from '../../../src/mcp/protocol/eras.js'
import { examples, problems } from '../../support/schema.js'
import { clientOf, membersOf, questionFor, R03, R06, R11, R24, REVISIONS } from './client.js'

const ELICIT = 'elicitation/create'
const SAMPLE = 'sampling/createMessage'
/** Revisions that have forms, and older ones whose clients may declare forms anyway. */
const OLDER = [R24, R03, R06] as const

const formOf = (fields: string, more = '') =>
  `{"message":"m","requestedSchema":{"type":"object","properties":{${fields}}${more}}}`
const fieldFor = (revision: LegacyRevision, field: string) =>
  questionFor(clientOf(revision), ELICIT, formOf(`"f":${field}`)).asked.slice(formOf('"f":').length - 3, -3)

const fields: [name: string, field: string, before: string, lost?: string][] = [
  [
    'a string',
    '{"type":"string","title":"T","minLength":1.0,"format":"date"}',
    '{"type":"string","title":"T","minLength":1.0,"format":"date"}',
  ],
  [
    'a string with a default',
    '{"type":"string","default":"x","vendor":1}',
    '{"type":"string","vendor":1}',
    'elicitationDefaults',
  ],
  [
    'a number with a default',
    '{"type":"number","default":12345678901234567890}',
    '{"type":"number"}',
    'elicitationDefaults',
  ],
  [
    'an integer with a default',
    '{"type":"integer","default":1,"minimum":0}',
    '{"type":"integer","minimum":0}',
    'elicitationDefaults',
  ],
  ['a boolean with a default', '{"type":"boolean","default":true}', '{"type":"boolean","default":true}'],
  ['options', '{"type":"string","enum":["a","b"]}', '{"type":"string","enum":["a","b"]}'],
  [
    'options with a default',
    '{"type":"string","enum":["a","b"],"default":"a"}',
    '{"type":"string","enum":["a","b"]}',
    'elicitationDefaults',
  ],
  [
    'options with names',
    '{"type":"string","enum":["a"],"enumNames":["A"]}',
    '{"type":"string","enum":["a"],"enumNames":["A"]}',
  ],
  [
    'options with titles',
    '{"type":"string","title":"T","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"\\u00e9"}]}',
    '{"type":"string","title":"T","enum":["a","b"],"enumNames":["A","é"]}',
  ],
]

t.test('fields of a form are those of the revision', async (t) => {
  for (const [name, field, before, lost] of fields) {
    t.equal(fieldFor(R11, field), field, `${name} in ${R11}`)
    for (const revision of OLDER) {
      const client = clientOf(revision)
      const { asked } = questionFor(client, ELICIT, formOf(`"f":${field}`))
      t.equal(asked, formOf(`"f":${before}`), `${name} in ${revision}`)
      t.same(client.losses, lost === undefined ? [] : [lost], name)
    }
  }
})

const everywhere: [name: string, field: string, told: string][] = [
  ['a format that is none', '{"type":"string","format":"password"}', '{"type":"string"}'],
  ['nulls', '{"type":"string","title":null,"description":null,"format":null}', '{"type":"string"}'],
  ['an odd default', '{"type":"boolean","default":"yes"}', '{"type":"boolean"}'],
  ['a type that nobody knows', '{"type":"constructor","format":"x"}', '{"type":"constructor","format":"x"}'],
]

t.test('removes members that no revision has from every form', async (t) => {
  for (const revision of REVISIONS) {
    for (const [name, field, told] of everywhere) t.equal(fieldFor(revision, field), told, `${name} in ${revision}`)
  }
})

t.test('names the mode where a revision has several', async (t) => {
  const form = formOf('"f":{"type":"string"}')
  const said = `{"mode":"form",${form.slice(1)}`
  for (const revision of OLDER) t.equal(questionFor(clientOf(revision), ELICIT, said).asked, form, revision)
  t.equal(questionFor(clientOf(R11), ELICIT, said).asked, said)
  const url = parseObject('{"mode":"url","message":"m","url":"https://x/y","elicitationId":"1"}')
  for (const revision of REVISIONS) {
    const { params, uplift } = downlevelQuestion(ELICIT, url, EMPTY, clientOf(revision, { strict: true }))
    t.equal(params, url, 'an address is for the caller to withhold')
    t.equal(uplift(url), url)
  }
})

const COLORS =
  '{"type":"array","title":"Colors","minItems":1,"maxItems":2,"items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"},{"const":"b","title":"Blue"}]},"default":["g"]}'
const PLAIN = '{"type":"array","description":"Pick","items":{"type":"string","enum":["x","y"]}}'

t.test('a selection of several is a checkbox for each option', async (t) => {
  const form = formOf(
    `"a":{"type":"string"},"c":${COLORS},"p":${PLAIN},"z":{"type":"boolean"}`,
    ',"required":["a","c"]',
  )
  for (const revision of OLDER) {
    const client = clientOf(revision)
    const { asked } = questionFor(client, ELICIT, form)
    t.equal(
      asked,
      formOf(
        '"a":{"type":"string"},' +
          '"c__0":{"type":"boolean","title":"Red","description":"Colors"},' +
          '"c__1":{"type":"boolean","title":"Green","description":"Colors","default":true},' +
          '"c__2":{"type":"boolean","title":"Blue","description":"Colors"},' +
          '"p__0":{"type":"boolean","title":"x","description":"Pick"},' +
          '"p__1":{"type":"boolean","title":"y","description":"Pick"},' +
          '"z":{"type":"boolean"}',
        ',"required":["a"]',
      ),
    )
    t.same(client.losses, [])
  }
  t.equal(questionFor(clientOf(R11), ELICIT, form).asked, form)
})

const accept = (content: string) => `{"action":"accept","content":${content}}`
const CANCEL = '{"action":"cancel"}'

const answers: [name: string, required: boolean, answer: string, uplifted: string][] = [
  ['one', true, accept('{"c__0":true}'), accept('{"c":["r"]}')],
  [
    'two, in the order of the options',
    true,
    accept('{"c__2":true,"c__1":false,"c__0":true}'),
    accept('{"c":["r","b"]}'),
  ],
  ['beside others', true, accept('{"n":1.0,"c__0":true}'), accept('{"n":1.0,"c":["r"]}')],
  ['none', true, accept('{"c__0":false}'), CANCEL],
  ['nothing', true, accept('{}'), CANCEL],
  ['no content', true, '{"action":"accept"}', CANCEL],
  ['too many', true, accept('{"c__0":true,"c__1":true,"c__2":true}'), CANCEL],
  ['what is no boolean', true, accept('{"c__0":"true","c__1":true}'), accept('{"c":["g"]}')],
  ['none of an optional one', false, accept('{"c__0":false,"c__1":false,"n":1.0}'), accept('{"n":1.0}')],
  ['nothing of an optional one', false, accept('{"n":1.0}'), accept('{"n":1.0}')],
  ['too many of an optional one', false, accept('{"c__0":true,"c__1":true,"c__2":true}'), CANCEL],
  ['no', true, '{"action":"decline"}', '{"action":"decline"}'],
  ['not now', true, '{"action":"cancel","content":{"c__0":true}}', '{"action":"cancel","content":{"c__0":true}}'],
]

t.test('ticked checkboxes become a selection', async (t) => {
  for (const [name, required, answer, uplifted] of answers) {
    const form = formOf(`"c":${COLORS}`, required ? ',"required":["c"]' : '')
    for (const revision of OLDER) {
      t.equal(questionFor(clientOf(revision), ELICIT, form).answer(answer), uplifted, `${name} in ${revision}`)
    }
    t.equal(questionFor(clientOf(R11), ELICIT, form).answer(answer), answer, `${name} in ${R11}`)
  }
  const unbounded = questionFor(clientOf(R06), ELICIT, formOf(`"p":${PLAIN}`))
  t.equal(unbounded.answer(accept('{"p__0":false}')), accept('{"p":[]}'))
  t.equal(unbounded.answer(accept('{"p__0":true,"p__1":true}')), accept('{"p":["x","y"]}'))
  t.equal(unbounded.answer(accept('{}')), accept('{}'))
})

t.test('checkboxes have unique names, whatever the fields are called', async (t) => {
  const options = '{"type":"array","items":{"type":"string","enum":["v"]}}'
  const form = formOf(
    `"c__0":{"type":"string"},"c":${options},"c_":${options},"c___0":{"type":"boolean"},"__proto__":${options}`,
  )
  const { asked, answer } = questionFor(clientOf(R06), ELICIT, form)
  const properties = JSON.parse(asked).requestedSchema.properties
  t.same(Object.keys(properties), ['c__0', 'c__0_', 'c___0_', 'c___0', '__proto____0'])
  t.equal(
    answer(accept('{"c__0":"t","c__0_":true,"c___0_":true,"c___0":true,"__proto____0":true}')),
    accept('{"c__0":"t","c___0":true,"c":["v"],"c_":["v"],"__proto__":["v"]}'),
  )
})

t.test('a ticked checkbox on one side is a selection on the other', async () => {
  const option = fc.string({ unit: 'binary', maxLength: 3 })
  const name = fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('__proto__', 'constructor', '0', 'a__0'))
  const choices = fc.dictionary(
    name,
    fc.uniqueArray(fc.tuple(option, fc.boolean()), { minLength: 1, maxLength: 4, selector: ([value]) => value }),
    { noNullPrototype: true },
  )
  fc.assert(
    fc.property(choices, (selections) => {
      const entries = Object.entries(selections)
      const form = formOf(
        entries
          .map(
            ([name, options]) =>
              `${JSON.stringify(name)}:{"type":"array","items":{"type":"string","enum":${JSON.stringify(options.map(([value]) => value))}}}`,
          )
          .join(','),
      )
      const { asked, answer } = questionFor(clientOf(R06), ELICIT, form)
      const boxes = Object.keys(JSON.parse(asked).requestedSchema.properties)
      const ticks = entries.flatMap(([, options]) => options.map(([, ticked]) => ticked))
      // Read from the text: JSON.parse would move keys that look like numbers to the front.
      const names = [...asked.matchAll(/("(?:[^"\\]|\\.)*"):\{"type":"boolean"/g)].map(([, key]) => key ?? '')
      const content = `{${names.map((key, at) => `${key}:${ticks[at]}`).join(',')}}`
      const uplifted = JSON.parse(answer(accept(content))).content as object
      const wanted = entries.map(([name, options]) => [
        name,
        options.filter(([, ticked]) => ticked).map(([value]) => value),
      ])
      return (
        boxes.length === ticks.length &&
        JSON.stringify(Object.entries(uplifted).sort()) === JSON.stringify(wanted.sort())
      )
    }),
    { numRuns: 500 },
  )
})

const NASTY = [
  formOf('"a":{"type":"string","title":null,"format":"password","default":"x"}', ',"required":null,"$schema":null'),
  formOf(`"c":${COLORS},"p":${PLAIN}`, ',"required":["c"]'),
  formOf(
    '"o":{"type":"string","oneOf":[{"const":"a","title":"A"}],"default":"a"},"n":{"type":"integer","minimum":null}',
  ),
]

t.test('the revision has every form, and the first SDK accepts it', async (t) => {
  const all = [
    ...NASTY,
    ...examples('ElicitRequestFormParams').map(({ text }) => text),
    ...[
      'StringSchema',
      'NumberSchema',
      'BooleanSchema',
      'TitledSingleSelectEnumSchema',
      'UntitledSingleSelectEnumSchema',
      'TitledMultiSelectEnumSchema',
      'UntitledMultiSelectEnumSchema',
    ].flatMap((definition) => examples(definition).map(({ text }) => formOf(`"f":${text}`, ',"required":["f"]'))),
  ]
  for (const form of all) {
    for (const strict of [false, true]) {
      for (const revision of [R06, R11] as const) {
        const { asked } = questionFor(clientOf(revision, { strict }), ELICIT, form)
        const request = { jsonrpc: '2.0', id: 1, method: ELICIT, params: JSON.parse(asked) }
        t.same(problems(revision, 'ElicitRequest', request), [], `${asked} in ${revision}`)
        t.doesNotThrow(() => sdk.ElicitRequestSchema.parse(request))
      }
      for (const revision of OLDER) {
        const { asked } = questionFor(clientOf(revision, { strict }), ELICIT, form)
        t.notMatch(asked, /"oneOf"|"array"|"mode"/, revision)
      }
    }
  }
})

t.test('a form does not name a dialect whose features it does not use', async (t) => {
  const dialect = '"$schema":"https://json-schema.org/draft/2020-12/schema"'
  const form = formOf('"f":{"type":"string"}', `,${dialect}`)
  for (const revision of [R06, R11] as const) {
    t.notMatch(questionFor(clientOf(revision), ELICIT, form).asked, /\$schema/, revision)
    t.match(questionFor(clientOf(R11, { strict: true }), ELICIT, form).asked, /\$schema/, revision)
  }
})

t.test('with strictness, a form has only members that the schema of its revision has', async (t) => {
  const form =
    '{"mode":"form","message":"m","vendor":1,"requestedSchema":{"$schema":"s","type":"object","additionalProperties":false,' +
    '"properties":{"f":{"type":"string","pattern":"a","maxLength":1,"default":"a"},"n":{"type":"number","multipleOf":2}}}}'
  for (const revision of [R06, R11] as const) {
    const asked = JSON.parse(questionFor(clientOf(revision, { strict: true }), ELICIT, form).asked)
    const known = (...path: string[]) =>
      revision === R06
        ? membersOf(R06, 'ElicitRequest', 'params', ...path)
        : membersOf(R11, 'ElicitRequestFormParams', ...path)
    t.ok(Object.keys(asked).every((key) => known().includes(key)))
    t.ok(Object.keys(asked.requestedSchema).every((key) => known('requestedSchema').includes(key)))
    t.ok(
      Object.keys(asked.requestedSchema.properties.f).every((key) => membersOf(revision, 'StringSchema').includes(key)),
    )
    t.same(asked.requestedSchema.properties.n, { type: 'number' })
  }
})

const text = (words: string) => `{"type":"text","text":${JSON.stringify(words)}}`
const message = (content: string, role = 'user') => `{"role":"${role}","content":${content}}`
const sampling = (messages: string, more = '') => `{"messages":[${messages}],"maxTokens":1.0${more}}`
const AUDIO = '{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}'
const USE = '{"type":"tool_use","id":"1","name":"t","input":{"n":12345678901234567890}}'
const RESULT = '{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"t"}]}'

type Told = Record<LegacyRevision, string>
const inAll = (told: string): Told => ({ [R24]: told, [R03]: told, [R06]: told, [R11]: told })

const messages: [name: string, messages: string, told: Told, lost?: string][] = [
  ['text', message(text('t')), inAll(message(text('t')))],
  ['audio', message(AUDIO), { ...inAll(message(AUDIO)), [R24]: message(text('[audio audio/wav omitted]')) }, 'audio'],
  [
    'several blocks',
    `${message(`[${text('a')},${text('b')}]`, 'assistant')},${message(text('c'))}`,
    {
      ...inAll(`${message(text('a'), 'assistant')},${message(text('b'), 'assistant')},${message(text('c'))}`),
      [R11]: `${message(`[${text('a')},${text('b')}]`, 'assistant')},${message(text('c'))}`,
    },
  ],
  [
    'no blocks',
    `${message('[]')},${message(text('c'))}`,
    { ...inAll(message(text('c'))), [R11]: `${message('[]')},${message(text('c'))}` },
  ],
  [
    'the use of a tool',
    message(USE, 'assistant'),
    { ...inAll(message(text(USE), 'assistant')), [R11]: message(USE, 'assistant') },
    'samplingTools',
  ],
  [
    'the result of a tool',
    message(`[${RESULT}]`),
    { ...inAll(message(text(RESULT))), [R11]: message(`[${RESULT}]`) },
    'samplingTools',
  ],
  [
    'a kind that nobody knows',
    message('{"type":"video"}'),
    inAll(message(text('{"type":"video"}'))),
    'blocks of unknown kinds',
  ],
  [
    'a link, which no message has',
    message('{"type":"resource_link","uri":"a:b","name":"n"}'),
    inAll(message(text('{"type":"resource_link","uri":"a:b","name":"n"}'))),
    'blocks of unknown kinds',
  ],
]

t.test('sampling messages are those of the revision', async (t) => {
  for (const [name, given, told, lost] of messages) {
    for (const revision of REVISIONS) {
      const client = clientOf(revision)
      const { asked, answer } = questionFor(client, SAMPLE, sampling(given), '{"sampling":{"tools":{}}}')
      t.equal(asked, sampling(told[revision]), `${name} in ${revision}`)
      t.same(
        [...new Set(client.losses)],
        asked === sampling(given) || lost === undefined ? [] : [lost],
        `${name} in ${revision}`,
      )
      const request = { jsonrpc: '2.0', id: 1, method: SAMPLE, params: JSON.parse(asked) }
      t.same(problems(revision, 'CreateMessageRequest', request), [], `${name} in ${revision}`)
      t.doesNotThrow(() => sdk.CreateMessageRequestSchema.parse(request))
      for (const content of [text('a'), `[${text('a')}]`]) {
        const answered = `{"role":"assistant","model":"m","content":${content}}`
        t.equal(answer(answered), answered, 'an answer is taken as it is')
      }
    }
  }
})

t.test('converts the result of a tool in a sampling message like other results', async (t) => {
  const result = `{"type":"tool_result","toolUseId":"1","content":[{"type":"video"},${AUDIO}],"structuredContent":[1.0]}`
  t.equal(
    questionFor(clientOf(R11), SAMPLE, sampling(message(result))).asked,
    sampling(
      message(
        `{"type":"tool_result","toolUseId":"1","content":[${text('{"type":"video"}')},${AUDIO}],"structuredContent":{"result":[1.0]}}`,
      ),
    ),
  )
})

const TOOLS =
  ',"tools":[{"name":"t","title":null,"inputSchema":{"type":"object","properties":{"p":true}},"outputSchema":{"type":"array"}}],"toolChoice":{"mode":"auto"}'
const TOLD_TOOLS =
  ',"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"p":{}}}}],"toolChoice":{"mode":"auto"}'

t.test('only clients that declare tools and context get them', async (t) => {
  const ask = (revision: LegacyRevision, more: string, capabilities: string) => {
    const client = clientOf(revision)
    const { asked } = questionFor(client, SAMPLE, sampling(message(text('t')), more), capabilities)
    t.same([...client.memory.wrapped], [], 'nothing is promised by a question')
    return { more: asked.slice(sampling(message(text('t'))).length - 1, -1), losses: [...new Set(client.losses)] }
  }
  for (const revision of REVISIONS) {
    const tools = ask(revision, TOOLS, '{"sampling":{"tools":{}}}')
    if (revision === R11) t.same(tools, { more: TOLD_TOOLS, losses: ['outputSchema'] })
    else t.equal(tools.more, '', revision)
    for (const capabilities of ['{}', '{"sampling":{}}', '{"sampling":{"tools":null}}', '{"sampling":[]}']) {
      t.same(ask(revision, TOOLS, capabilities), { more: '', losses: ['samplingTools'] }, capabilities)
    }
    for (const context of ['thisServer', 'allServers']) {
      const included = `,"includeContext":"${context}"`
      t.same(ask(revision, included, '{"sampling":{"context":{}}}'), { more: included, losses: [] }, revision)
      t.same(
        ask(revision, included, '{"sampling":{}}'),
        revision === R11 ? { more: '', losses: ['includeContext'] } : { more: included, losses: [] },
        revision,
      )
    }
    t.equal(ask(revision, ',"includeContext":"none"', '{"sampling":{}}').more, ',"includeContext":"none"')
    t.equal(
      ask(revision, ',"includeContext":null,"systemPrompt":null,"temperature":1.0', '{}').more,
      ',"temperature":1.0',
    )
  }
})

t.test('questions of the specification are valid in every revision', async (t) => {
  for (const { name, text } of examples('CreateMessageRequestParams')) {
    for (const revision of REVISIONS) {
      for (const strict of [false, true]) {
        const { asked } = questionFor(clientOf(revision, { strict }), SAMPLE, text, '{"sampling":{"tools":{}}}')
        const request = { jsonrpc: '2.0', id: 1, method: SAMPLE, params: JSON.parse(asked) }
        t.same(problems(revision, 'CreateMessageRequest', request), [], `${name} in ${revision}`)
        t.doesNotThrow(() => sdk.CreateMessageRequestSchema.parse(request))
      }
    }
  }
})

t.test('leaves a question unchanged that every client understands', async (t) => {
  const odd = '"odd" : [1.0, 12345678901234567890, {"b":1,"2":2,"b":2}, "\\u00e9\\/"]'
  const questions: [method: string, params: string][] = [
    [
      ELICIT,
      `{"message":"m","requestedSchema": {"type":"object","properties": {"a":{"type":"string",${odd}},"__proto__":{"type":"boolean"}},"required":["a"],${odd}},${odd}}`,
    ],
    [
      SAMPLE,
      `{"messages": [ {"role":"user","content": {"type":"text","text":"t",${odd}}} ],"maxTokens":1.0,"metadata":{${odd}},${odd}}`,
    ],
    ['roots/list', `{${odd}}`],
    ['vendor/ask', '{"mode":"form"}'],
  ]
  for (const [method, text] of questions) {
    for (const revision of REVISIONS) {
      const params = parseObject(text)
      const answer = parseObject('{"action":"accept","content":{"a__0":true}}')
      const question = downlevelQuestion(method, params, EMPTY, clientOf(revision))
      t.equal(question.params, params, `${method} in ${revision}`)
      t.equal(question.uplift(answer), answer)
    }
  }
})
