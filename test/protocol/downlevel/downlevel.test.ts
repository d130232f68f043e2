import * as sdk from '@modelcontextprotocol/sdk/types.js'
import fc from 'fast-check'
import t from 'tap'
import { sourceOfBytes } from '../../../src/base/rpc/source.js'
import { EMPTY, parseObject, parseSource, write } from '../../../src/base/rpc/splice.js'
import {
  downlevelNotification,
  downlevelQuestion,
  downlevelResult,
} from '../../../src/mcp/protocol/downlevel/downlevel.js'
import type { LegacyRevision } from '../../../src/mcp/protocol/eras.js'
import { examples, problems } from '../../support/schema.js'
import { blockFor, clientOf, membersOf, notificationFor, R03, R06, R11, R24, REVISIONS, resultFor } from './client.js'

const RESULTS: [method: string, definition: string, schema: { parse(value: unknown): unknown }][] = [
  ['tools/list', 'ListToolsResult', sdk.ListToolsResultSchema],
  ['prompts/list', 'ListPromptsResult', sdk.ListPromptsResultSchema],
  ['resources/list', 'ListResourcesResult', sdk.ListResourcesResultSchema],
  ['resources/templates/list', 'ListResourceTemplatesResult', sdk.ListResourceTemplatesResultSchema],
  ['tools/call', 'CallToolResult', sdk.CallToolResultSchema],
  ['prompts/get', 'GetPromptResult', sdk.GetPromptResultSchema],
  ['resources/read', 'ReadResourceResult', sdk.ReadResourceResultSchema],
  ['completion/complete', 'CompleteResult', sdk.CompleteResultSchema],
]

/** For each method, a result with everything that some client would reject. */
const NASTY: Record<string, string> = {
  'tools/list': `{"nextCursor":null,"_meta":null,"tools":[
    {"name":"nulls","title":null,"description":null,"annotations":null,"icons":null,"_meta":null,"outputSchema":null,
     "inputSchema":{"type":"object","properties":null,"required":null}},
    {"name":"hints","annotations":{"title":null,"readOnlyHint":null,"openWorldHint":"yes"},"inputSchema":{"type":"object"}},
    {"name":"booleans","inputSchema":{"type":"object","properties":{"yes":true,"no":false,"odd":7,"__proto__":true}}},
    {"name":"untyped","inputSchema":{}},{"name":"inputless"},
    {"name":"array","inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":true}}},
    {"name":"external","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"$ref":"https://x/y"}}}},
    {"name":"pattern","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"pattern":"("}}}},
    {"name":"icons","icons":[{"src":"data:,"},{"src":"data:,","theme":"blue"},{"theme":"dark"},{"src":"data:,","sizes":"48x48"}],
     "inputSchema":{"type":"object"}},
    {"name":"task","execution":{"taskSupport":"always"},"inputSchema":{"type":"object"}},
    {"description":"nameless","inputSchema":{"type":"object"}}]}`,
  'prompts/list': `{"prompts":[{"name":"p","title":null,"description":null,"arguments":null,"icons":[{}]},
    {"name":"q","title":"Q","arguments":[{"name":"a","title":null,"description":null,"required":null},{"title":"nameless"}]},{}]}`,
  'resources/list': `{"resources":[{"uri":"a:b","name":"r","size":null,"mimeType":null,"title":null,
    "annotations":{"audience":null,"priority":2,"lastModified":"yesterday"},"_meta":null},
    {"uri":"a:c","name":"s","annotations":null,"icons":[null,{"src":7}]},null,{"uri":"a:d"},{"name":"t"}]}`,
  'resources/templates/list': `{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"t","title":null,"mimeType":null,
    "description":null,"icons":null,"annotations":{"lastModified":"2025-01-12T15:00:58Z","priority":0.5}},{"name":"x"}]}`,
  'tools/call': `{"isError":null,"_meta":null,"structuredContent":[9007199254740993],"content":[
    {"type":"text","text":"t","annotations":null,"_meta":null},
    {"type":"audio","data":"UklGRg==","mimeType":"audio/wav","annotations":{"priority":1}},
    {"type":"resource_link","uri":"a:b","name":"n","title":"T","mimeType":"text/plain","description":"d"},
    {"type":"resource","resource":{"uri":"a:b","text":"t","mimeType":null,"_meta":null}},
    {"type":"video","frames":[1.0]},{"type":"image","data":null,"mimeType":"image/png"},{"type":"resource","resource":{}},
    {"type":"constructor"},{},"bare",null]}`,
  'prompts/get': `{"description":null,"messages":[{"role":"user","content":{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}},
    {"role":"assistant","content":{"type":"resource_link","uri":"a:b","name":"n"}},{"role":"user","content":{"type":"video"}}]}`,
  'resources/read': `{"contents":[{"uri":"a:b","text":"t","mimeType":null,"_meta":null},{"uri":"a:c","blob":"AA==","text":null}]}`,
  'completion/complete': `{"completion":{"values":${JSON.stringify(Array.from({ length: 101 }, (_, i) => `v${i}`))},"total":null,"hasMore":null}}`,
}

t.test('every revision and the first SDK accept any result of a server', async (t) => {
  for (const [method, definition, schema] of RESULTS) {
    const nasty = NASTY[method] ?? ''
    t.throws(() => schema.parse(JSON.parse(nasty)), `${method} as it comes is rejected`)
    for (const revision of REVISIONS) {
      for (const strict of [false, true]) {
        const told = JSON.parse(resultFor(clientOf(revision, { strict }), method, nasty))
        const what = `${method} in ${revision}${strict ? ', strictly' : ''}`
        t.same(problems(revision, definition, told), [], `${what} is valid`)
        t.doesNotThrow(() => schema.parse(told), `${what} is accepted`)
      }
    }
  }
})

t.test('results of the specification are valid in every revision', async (t) => {
  for (const [method, definition, schema] of RESULTS) {
    for (const { name, text } of examples(definition)) {
      for (const revision of REVISIONS) {
        for (const strict of [false, true]) {
          const told = JSON.parse(resultFor(clientOf(revision, { strict }), method, text))
          t.same(problems(revision, definition, told), [], `${name} in ${revision}`)
          t.doesNotThrow(() => schema.parse(told), `${name} in ${revision}`)
        }
      }
    }
  }
})

const ODD = '"odd" : [1.0, 12345678901234567890, {"b":1,"2":2,"1":1,"b":2}, "\\u00e9\\/"]'
const FINE: [method: string, result: string][] = [
  [
    'tools/list',
    `{"tools" : [ {"name":"a","inputSchema":{"type":"object", "properties":{"p":{${ODD}}}}, ${ODD}} ,{"name":"b","title":"B","annotations":{"readOnlyHint":true},"icons":[{"src":"data:,","theme":"dark"}],"inputSchema":{"type":"object","required":["p"]}}],"nextCursor":"", "ttlMs":1,${ODD}}`,
  ],
  [
    'tools/call',
    `{"content": [ {"type":"text","text":"\\u00e9",${ODD}} ],"isError":false,"resultType":"complete",${ODD}}`,
  ],
  ['prompts/list', `{"prompts": [{"name":"p","arguments":[{"name":"a","required":true}],${ODD}}]}`],
  ['prompts/get', `{"messages": [{"role":"user","content": {"type":"text","text":"t",${ODD}}}],"description":"d"}`],
  ['resources/list', `{"resources": [ {"uri":"a:b","name":"r","size":1.0,"_meta":{${ODD}}} ]}`],
  ['resources/templates/list', `{"resourceTemplates": [ {"uriTemplate":"a:{b}","name":"r"} ]}`],
  ['resources/read', `{"contents": [ {"uri":"a:b","text":"t","_meta":{${ODD}}} ],"cacheScope":"public"}`],
  ['completion/complete', `{"completion": {"values":["a" ,"b"],"total":2.0,"hasMore":false},${ODD}}`],
  ['initialize', `{"serverInfo": {"name":"s","version":"1","icons":[{"src":"data:,"}]}, ${ODD}}`],
  ['vendor/method', `{"tools":[{"name":null}],${ODD}}`],
  ['constructor', `{${ODD}}`],
]

t.test('leaves results unchanged that every client accepts', async (t) => {
  for (const revision of REVISIONS) {
    for (const [method, text] of FINE) {
      const result = parseObject(text)
      const client = clientOf(revision)
      t.equal(downlevelResult(method, EMPTY, result, client), result, `${method} in ${revision}`)
      t.same(client.losses, [])
    }
    const log = parseObject(`{"level":"info","logger":"l","data":{${ODD}},"odd":1}`)
    t.equal(downlevelNotification('notifications/message', log, clientOf(revision)), log)
    const own = parseObject('{"message":null}')
    t.equal(downlevelNotification('notifications/vendor', own, clientOf(revision)), own)
    t.equal(downlevelNotification('toString', own, clientOf(revision)), own)
    const { params, uplift } = downlevelQuestion('roots/list', own, EMPTY, clientOf(revision))
    t.equal(params, own)
    t.equal(uplift(own), own)
  }
})

t.test('a change keeps all other bytes', async (t) => {
  for (const revision of REVISIONS) {
    const told = resultFor(
      clientOf(revision),
      'tools/list',
      `{"tools":[{"name":"a","title":null,"inputSchema":{"type":"object","properties":{"p":{"const":1.0},"constructor":true,"__proto__":false},${ODD}},${ODD}}],${ODD}}`,
    )
    t.equal(
      told,
      `{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"p":{"const":1.0},"constructor":{},"__proto__":{"not":{}}},${ODD}},${ODD}}],${ODD}}`,
    )
    t.equal(
      resultFor(
        clientOf(revision),
        'tools/call',
        `{"content":[{"type":"text","text":"\\u00e9", "_meta":null,${ODD}}]}`,
      ),
      `{"content":[{"type":"text","text":"\\u00e9",${ODD}}]}`,
    )
  }
})

const audio = '{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","annotations":{"priority":1.0}}'
const link =
  '{"type":"resource_link","uri":"file:///a","name":"a","title":"A","mimeType":"text/plain","description":"of b"}'
const asText = (text: string) => ({ type: 'text', text })
const blob = { type: 'resource', resource: { mimeType: 'audio/wav', blob: 'UklGRg==' }, annotations: { priority: 1 } }
const same = 'the same'

const blocks: [name: string, block: string, told: Record<LegacyRevision, unknown>, lost: string][] = [
  ['audio', audio, { [R24]: blob, [R03]: same, [R06]: same, [R11]: same }, 'audio'],
  [
    'a link',
    link,
    {
      [R24]: asText('a (A) file:///a text/plain — of b'),
      [R03]: asText('a (A) file:///a text/plain — of b'),
      [R06]: same,
      [R11]: same,
    },
    'resourceLinks',
  ],
  [
    'a bare link',
    '{"type":"resource_link","uri":"file:///a","name":"a"}',
    { [R24]: asText('a file:///a'), [R03]: asText('a file:///a'), [R06]: same, [R11]: same },
    'resourceLinks',
  ],
  ...['{"type":"video","n":12345678901234567890}', '{"type":"text"}', '{"type":"__proto__"}', '{"type":7}', '{}'].map(
    (block): (typeof blocks)[number] => {
      const told = asText(block)
      return [block, block, { [R24]: told, [R03]: told, [R06]: told, [R11]: told }, 'blocks of unknown kinds']
    },
  ),
]

t.test('replaces blocks that a client does not know by blocks that it knows', async (t) => {
  for (const [name, block, expected, lost] of blocks) {
    for (const revision of REVISIONS) {
      const client = clientOf(revision)
      const told = blockFor(client, block)
      const wanted = expected[revision]
      if (wanted === same) t.same(told, JSON.parse(block), `${name} in ${revision}`)
      else t.match(told, wanted as object, `${name} in ${revision}`)
      t.same(client.losses, wanted === same ? [] : [lost], `${name} in ${revision}`)
      const prompt = JSON.parse(
        resultFor(clientOf(revision), 'prompts/get', `{"messages":[{"role":"user","content":${block}}]}`),
      )
      t.same(prompt.messages[0].content, told, 'and the same in a prompt')
    }
  }
})

t.test('names audio as a resource by its content', async (t) => {
  const uri = (data: string) =>
    (
      blockFor(clientOf(R24), `{"type":"audio","data":"${data}","mimeType":"a/b"}`) as typeof blob & {
        resource: { uri: string }
      }
    ).resource.uri
  t.match(uri('UklGRg=='), /^mcp-bridge:audio\/[0-9a-f]{16}$/)
  t.equal(uri('UklGRg=='), uri('UklGRg=='))
  t.not(uri('UklGRg=='), uri('UklGRw=='))
})

t.test('shows 4 KiB of an unknown block, and splits no character', async (t) => {
  for (const filler of ['x', 'é', '𝄞']) {
    const { text } = blockFor(clientOf(R11), `{"type":"video","data":"${filler.repeat(5_000)}"}`) as { text: string }
    const bytes = new TextEncoder().encode(text).length
    t.ok(bytes <= 4096 && bytes > 4090, `${bytes}`)
    t.notMatch(text, /[\ud800-\udbff]$/)
  }
})

t.test('members of a block beside its content survive its conversion', async (t) => {
  const told = blockFor(
    clientOf(R03),
    '{"type":"resource_link","uri":"a:b","name":"n","annotations":{"audience":["user"]},"_meta":{"v/k":1}}',
  )
  t.same(told, { type: 'text', text: 'n a:b', annotations: { audience: ['user'] }, _meta: { 'v/k': 1 } })
})

const optional: [method: string, key: string, item: string][] = [
  ...['title', 'description', 'annotations', 'icons', '_meta', 'outputSchema', 'execution'].map(
    (key): [string, string, string] => [
      'tools/list',
      'tools',
      `{"name":"a","inputSchema":{"type":"object"},"${key}":null}`,
    ],
  ),
  ...['title', 'description', 'arguments', 'icons', '_meta'].map((key): [string, string, string] => [
    'prompts/list',
    'prompts',
    `{"name":"a","${key}":null}`,
  ]),
  ...['title', 'description', 'mimeType', 'size', 'annotations', 'icons', '_meta'].map(
    (key): [string, string, string] => ['resources/list', 'resources', `{"uri":"a:b","name":"a","${key}":null}`],
  ),
  ...['title', 'description', 'mimeType', 'annotations', 'icons', '_meta'].map((key): [string, string, string] => [
    'resources/templates/list',
    'resourceTemplates',
    `{"uriTemplate":"a:b","name":"a","${key}":null}`,
  ]),
]

t.test('removes null for an optional member, and loses nothing with it', async (t) => {
  for (const revision of REVISIONS) {
    for (const [method, key, item] of optional) {
      const client = clientOf(revision)
      const told = resultFor(client, method, `{"${key}":[${item}]}`)
      t.equal(told, `{"${key}":[${item.replace(/,"\w+":null/, '')}]}`)
      t.same(client.losses, [])
    }
  }
})

const icons: [name: string, icon: string, kept: boolean][] = [
  ['a source', '{"src":"https://x/i.png"}', true],
  ['all there is', '{"src":"data:,","mimeType":"image/png","sizes":["48x48"],"theme":"light","vendor":1}', true],
  ['no source', '{"mimeType":"image/png"}', false],
  ['a source that is none', '{"src":7}', false],
  ['a theme of its own', '{"src":"data:,","theme":"blue"}', false],
  ['sizes of an older draft', '{"src":"data:,","sizes":"48x48"}', false],
  ['a type that is none', '{"src":"data:,","mimeType":1}', false],
]

t.test('removes invalid icons', async (t) => {
  for (const revision of REVISIONS) {
    for (const [name, icon, kept] of icons) {
      const client = clientOf(revision)
      const told = JSON.parse(resultFor(client, 'prompts/list', `{"prompts":[{"name":"p","icons":[${icon}]}]}`))
      t.same(told.prompts[0].icons, kept ? [JSON.parse(icon)] : [], name)
      t.same(client.losses, kept ? [] : ['icons'], name)
      const opened = resultFor(
        clientOf(revision),
        'initialize',
        `{"serverInfo":{"name":"s","version":"1","icons":[${icon}]}}`,
      )
      t.same(JSON.parse(opened).serverInfo.icons, kept ? [JSON.parse(icon)] : [], `${name}, of a server`)
    }
    const nulls = resultFor(
      clientOf(revision),
      'prompts/list',
      '{"prompts":[{"name":"p","icons":[{"src":"data:,","theme":null}]}]}',
    )
    t.equal(nulls, '{"prompts":[{"name":"p","icons":[{"src":"data:,"}]}]}')
  }
})

t.test('an item that cannot be requested does not cost the others', async (t) => {
  const client = clientOf(R11)
  t.equal(
    resultFor(client, 'resources/list', '{"resources":[{"uri":"a:b"},{"uri":"a:c","name":"c"},{"name":"d"}]}'),
    '{"resources":[{"uri":"a:c","name":"c"}]}',
  )
  t.same(client.losses, ['malformed items', 'malformed items'])
})

t.test('removed or changed items leave the others unchanged', async () => {
  const kinds: Record<string, string[]> = {
    '{ "uri":"a:b","name":"stays", "n":1.0 }': ['{ "uri":"a:b","name":"stays", "n":1.0 }'],
    '{"uri":"a:b","name":"changes","title":null}': ['{"uri":"a:b","name":"changes"}'],
    '{"uri":"a:b"}': [],
    null: [],
  }
  const gap = fc.constantFrom('', ' ', '\n\t')
  const item = fc.constantFrom(...Object.keys(kinds))
  fc.assert(
    fc.property(fc.array(fc.tuple(gap, item, gap), { maxLength: 6 }), (items) => {
      const text = `{"resources":[${items.map((parts) => parts.join('')).join(',')}]}`
      const told = resultFor(clientOf(R11), 'resources/list', text)
      const wanted = items.flatMap(([, item]) => kinds[item] ?? [])
      const bare = (json: string) => json.replaceAll(/[\n\t ]/g, '')
      return (
        bare(told) === bare(`{"resources":[${wanted.join(',')}]}`) &&
        wanted.every((item) => told.includes(item)) &&
        (wanted.join() !== items.map(([, item]) => item).join() || told === text)
      )
    }),
    { numRuns: 2_000 },
  )
})

const calls: [name: string, result: string, told: Record<LegacyRevision, string>][] = [
  [
    'an object beside text',
    '{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1.0}}',
    {
      [R24]: '{"content":[{"type":"text","text":"t"}]}',
      [R03]: '{"content":[{"type":"text","text":"t"}]}',
      [R06]: '{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1.0}}',
      [R11]: '{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1.0}}',
    },
  ],
  [
    'an object alone',
    '{"content":[],"structuredContent":{"a":1.0}}',
    {
      [R24]: '{"content":[{"type":"text","text":"{\\"a\\":1.0}"}]}',
      [R03]: '{"content":[{"type":"text","text":"{\\"a\\":1.0}"}]}',
      [R06]: '{"content":[],"structuredContent":{"a":1.0}}',
      [R11]: '{"content":[],"structuredContent":{"a":1.0}}',
    },
  ],
  [
    'an object without content',
    '{"structuredContent":{"a":1.0}}',
    {
      [R24]: '{"content":[{"type":"text","text":"{\\"a\\":1.0}"}]}',
      [R03]: '{"content":[{"type":"text","text":"{\\"a\\":1.0}"}]}',
      [R06]: '{"structuredContent":{"a":1.0},"content":[]}',
      [R11]: '{"structuredContent":{"a":1.0},"content":[]}',
    },
  ],
  [
    'nothing at all',
    '{}',
    { [R24]: '{"content":[]}', [R03]: '{"content":[]}', [R06]: '{"content":[]}', [R11]: '{"content":[]}' },
  ],
  [
    'a list beside text',
    '{"content":[{"type":"text","text":"t"}],"structuredContent":[12345678901234567890]}',
    {
      [R24]: '{"content":[{"type":"text","text":"t"}]}',
      [R03]: '{"content":[{"type":"text","text":"t"}]}',
      [R06]: '{"content":[{"type":"text","text":"t"}],"structuredContent":{"result":[12345678901234567890]}}',
      [R11]: '{"content":[{"type":"text","text":"t"}],"structuredContent":{"result":[12345678901234567890]}}',
    },
  ],
  ...['[1.0]', '"s"', '0', 'false', 'null'].map((value): (typeof calls)[number] => {
    const text = `{"type":"text","text":${JSON.stringify(value)}}`
    const told = `{"content":[${text}],"structuredContent":{"result":${value}}}`
    const older = `{"content":[${text}]}`
    return [
      `${value} alone`,
      `{"content":[],"structuredContent":${value}}`,
      { [R24]: older, [R03]: older, [R06]: told, [R11]: told },
    ]
  }),
]

t.test('structured content is an object, or is removed', async (t) => {
  for (const [name, result, told] of calls) {
    for (const revision of REVISIONS) {
      const client = clientOf(revision)
      t.equal(resultFor(client, 'tools/call', result, '{"name":"x"}'), told[revision], `${name} in ${revision}`)
      const lost = result.includes('structuredContent') && (revision === R24 || revision === R03)
      t.same(client.losses, lost ? ['structuredContent'] : [], `${name} in ${revision}`)
    }
  }
})

t.test('progress has no message in 2024-11-05', async (t) => {
  const params = '{"progressToken":1,"progress":0.5,"total":null,"message":"half"}'
  for (const revision of REVISIONS) {
    const client = clientOf(revision)
    const told = notificationFor(client, 'notifications/progress', params)
    const message = revision === R24 ? '' : ',"message":"half"'
    t.equal(told, `{"progressToken":1,"progress":0.5${message}}`, revision)
    t.same(client.losses, revision === R24 ? ['progressMessage'] : [], revision)
    t.same(
      problems(revision, 'ProgressNotification', {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: JSON.parse(told),
      }),
      [],
    )
    t.equal(
      notificationFor(client, 'notifications/message', '{"level":"info","logger":null,"data":null}'),
      '{"level":"info","data":null}',
    )
  }
})

t.test('returns at most a hundred completions', async (t) => {
  const values = Array.from({ length: 150 }, (_, i) => `v${i}`)
  for (const revision of REVISIONS) {
    const client = clientOf(revision)
    const told = JSON.parse(
      resultFor(client, 'completion/complete', JSON.stringify({ completion: { values, total: 150, hasMore: false } })),
    )
    t.same(told.completion, { values: values.slice(0, 100), total: 150, hasMore: true })
    t.same(client.losses, ['completions beyond the first hundred'])
  }
})

const everything = {
  name: 'n',
  title: 'T',
  description: 'd',
  icons: [{ src: 'data:,' }],
  _meta: { 'v/k': 1 },
  vendor: 1,
}
const annotations = { audience: ['user'], priority: 0.5, lastModified: '2025-01-12T15:00:58Z' }
const pages: [method: string, key: string, definition: string, item: object][] = [
  [
    'tools/list',
    'tools',
    'Tool',
    { ...everything, inputSchema: { type: 'object' }, outputSchema: { type: 'object' }, annotations: { title: 'T' } },
  ],
  ['prompts/list', 'prompts', 'Prompt', { ...everything, arguments: [{ name: 'a', title: 'A', required: true }] }],
  ['resources/list', 'resources', 'Resource', { ...everything, uri: 'a:b', mimeType: 'a/b', size: 1, annotations }],
  [
    'resources/templates/list',
    'resourceTemplates',
    'ResourceTemplate',
    { ...everything, uriTemplate: 'a:b', mimeType: 'a/b', annotations },
  ],
]

t.test('with strictness, an item has only members that the schema of its revision has', async (t) => {
  for (const revision of REVISIONS) {
    for (const [method, key, definition, item] of pages) {
      const client = clientOf(revision, { strict: true })
      const told = JSON.parse(resultFor(client, method, JSON.stringify({ [key]: [item], vendor: 1 })))
      const known = membersOf(revision, definition).filter((name) => name !== 'execution')
      const given = Object.keys(item).filter((name) => known.includes(name))
      t.same(Object.keys(told[key][0]).sort(), given.sort(), `${definition} in ${revision}`)
      t.equal(told.vendor, 1, 'and the result itself is not looked at')
      t.ok(client.losses.includes('members of other revisions'))
    }
    const prompts = JSON.stringify({ prompts: [{ name: 'p', arguments: [{ name: 'a', title: 'A' }] }] })
    const { prompts: told } = JSON.parse(resultFor(clientOf(revision, { strict: true }), 'prompts/list', prompts))
    t.equal('title' in told[0].arguments[0], membersOf(revision, 'PromptArgument').includes('title'))
  }
})

t.test('with strictness, a block has only members that the schema of its revision has', async (t) => {
  const _meta = { 'v/k': 1 }
  const kinds: [definition: string, block: object][] = [
    ['TextContent', { type: 'text', text: 't', annotations, _meta, vendor: 1 }],
    ['ImageContent', { type: 'image', data: '', mimeType: 'a/b', annotations, _meta, vendor: 1 }],
    [
      'EmbeddedResource',
      { type: 'resource', resource: { uri: 'a:b', text: 't', _meta }, annotations, _meta, vendor: 1 },
    ],
  ]
  for (const revision of REVISIONS) {
    const client = clientOf(revision, { strict: true })
    for (const [definition, block] of kinds) {
      const told = blockFor(client, JSON.stringify(block)) as { annotations: object; resource?: object }
      const known = membersOf(revision, definition)
      t.same(
        Object.keys(told).sort(),
        Object.keys(block)
          .filter((name) => known.includes(name))
          .sort(),
        revision,
      )
      t.equal('lastModified' in told.annotations, revision === R06 || revision === R11, revision)
      if (told.resource)
        t.equal('_meta' in told.resource, membersOf(revision, 'TextResourceContents').includes('_meta'), revision)
    }
    const contents = resultFor(
      client,
      'resources/read',
      '{"contents":[{"uri":"a:b","text":"t","_meta":{},"vendor":1}]}',
    )
    t.notMatch(contents, /vendor/)
    t.equal(contents.includes('_meta'), membersOf(revision, 'TextResourceContents').includes('_meta'))
  }
  const retold = blockFor(clientOf(R24, { strict: true }), link)
  t.same(retold, asText('a (A) file:///a text/plain — of b'), 'what is retold is retold whole')
})

t.test('without strictness, members of other revisions stay', async (t) => {
  for (const revision of REVISIONS) {
    for (const [method, key, , item] of pages.filter(([method]) => method !== 'tools/list')) {
      const result = parseObject(JSON.stringify({ [key]: [item] }))
      t.equal(downlevelResult(method, EMPTY, result, clientOf(revision)), result, `${method} in ${revision}`)
    }
  }
})

t.test('a large result, changed or not, has its long strings that were set aside', async (t) => {
  const data = 'UklGRg=='.repeat(20_000)
  const text = `{"content":[{"type":"audio","data":"${data}","mimeType":"audio/wav"},{"type":"text","text":"${data}"}]}`
  const result = parseSource(sourceOfBytes([new TextEncoder().encode(text)], () => true))
  t.ok(result.source.asides)
  t.equal(downlevelResult('tools/call', EMPTY, result, clientOf(R03)), result)
  const { content } = JSON.parse(write(downlevelResult('tools/call', EMPTY, result, clientOf(R24))))
  t.equal(content[0].resource.blob, data)
  t.equal(content[1].text, data)
})

t.test('adapts a result that has edits already', async (t) => {
  const payload = parseObject('{"content":[],"structuredContent":[1],"resultType":"complete"}')
  const told = downlevelResult('tools/call', EMPTY, payload, clientOf(R11))
  t.equal(
    write(downlevelResult('tools/call', EMPTY, told, clientOf(R11))),
    '{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]},"resultType":"complete"}',
    'and what is told once is what it is told twice',
  )
})
