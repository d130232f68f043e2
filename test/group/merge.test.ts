/** Merging the answers of several servers. */
import fc from 'fast-check'
import t from 'tap'
import { parseObject, write } from '../../src/base/rpc/splice.js'
import {
  itemsOf,
  joinedCapabilities,
  joinedDiscovery,
  joinedInstructions,
  joinedLists,
  joinedMeta,
  leastHint,
  onlyForeign,
} from '../../src/middle/group/merge.js'
import { replaced } from '../../src/middle/group/places.js'

const said = (server: string, result: object) => ({
  server,
  prefix: server,
  result: parseObject(JSON.stringify(result)),
})
const capabilitiesOf = (all: object[], isComplete = true) =>
  JSON.parse(
    write(
      joinedCapabilities(
        all.map((capabilities, i) => said(`s${i}`, { capabilities })),
        { isComplete },
      ),
    ),
  ) as object

t.test('a merged list is the concatenation of the lists', async () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.jsonValue())), (lists) => {
      const texts = lists.map((list) => JSON.stringify(list, undefined, list.length % 2))
      const merged = JSON.parse(joinedLists(texts.map(itemsOf))) as unknown[]
      return JSON.stringify(merged) === JSON.stringify(lists.flat())
    }),
  )
})

t.test('a merged list keeps the bytes of its items', async (t) => {
  const lists = ['[ {"a":1.0,"b":"\\u00e9"} ]', '[]', '[{"n":12345678901234567890}\n]']
  t.equal(joinedLists(lists.map(itemsOf)), '[{"a":1.0,"b":"\\u00e9"},{"n":12345678901234567890}]')
})

t.test('merges the capabilities of all servers, and always declares list changes', async (t) => {
  t.same(capabilitiesOf([{ tools: {} }, { resources: { subscribe: true } }, { completions: {} }]), {
    tools: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
  })
  t.same(capabilitiesOf([{ resources: {} }]), { resources: { listChanged: true } })
  t.same(capabilitiesOf([]), {})
})

t.test('declares all possible capabilities while a server is missing', async (t) => {
  t.same(capabilitiesOf([{ tools: {} }], false), {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    logging: {},
  })
})

const SKILLS = 'io.modelcontextprotocol/skills'
const TASKS = 'io.modelcontextprotocol/tasks'
t.test(
  'extensions whose messages find their server are offered, with the settings of all that have them',
  async (t) => {
    t.same(
      capabilitiesOf([
        { extensions: { [SKILLS]: { directoryRead: false, kinds: ['a'] } } },
        { extensions: { [TASKS]: {}, [SKILLS]: { directoryRead: true, kinds: ['b', 'a'], more: 1 } } },
      ]),
      { extensions: { [TASKS]: {}, [SKILLS]: { directoryRead: true, kinds: ['a', 'b'], more: 1 } } },
    )
  },
)

t.test('declares unknown extensions if only one server has any', async (t) => {
  const acme = { extensions: { 'com.acme/x': { a: 1 } }, experimental: { y: {} } }
  t.same(capabilitiesOf([{ tools: {} }, acme]), { tools: { listChanged: true }, ...acme })
  t.same(capabilitiesOf([{ experimental: { z: {} } }, acme]), {})
  t.equal(onlyForeign([said('a', {}), said('b', { capabilities: acme })])?.server, 'b')
  t.equal(onlyForeign([said('a', { capabilities: acme }), said('b', { capabilities: acme })]), undefined)
})

t.test('accepts members of Object.prototype as names of capabilities', async (t) => {
  const settings = JSON.parse('{"__proto__":{"a":1},"constructor":2}') as object
  const merged = capabilitiesOf([{ extensions: { [SKILLS]: settings } }, { extensions: { [SKILLS]: { toString: 3 } } }])
  const skills = (merged as { extensions: Record<string, object> }).extensions[SKILLS]
  t.same(Object.keys(skills ?? {}).sort(), ['__proto__', 'constructor', 'toString'])
})

const instructions = (texts: (string | undefined)[], most: number, bareNames = false) =>
  joinedInstructions(
    texts.map((text, i) => said(`s${i}`, { instructions: text })),
    { bareNames, most },
  )

t.test('puts instructions under the name and prefix of their server', async (t) => {
  t.equal(
    instructions(['Be brief.', undefined, 'Be long.\n'], 1_000),
    '# s0\n\nThe names of its tools and prompts begin with s0__.\n\nBe brief.\n\n# s2\n\nThe names of its tools and prompts begin with s2__.\n\nBe long.',
  )
  t.equal(instructions(['Be brief.'], 1_000, true), '# s0\n\nBe brief.')
  t.equal(instructions([undefined, ' '], 1_000), undefined)
})

t.test('bounds instructions, and truncates long ones before short ones', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 200 })),
      fc.integer({ min: 600, max: 2_000 }),
      (texts, most) => {
        const few = texts.slice(0, 5)
        return Buffer.byteLength(instructions(few, most) ?? '') <= Math.max(most, 0)
      },
    ),
  )
  const long = 'x'.repeat(10_000)
  const cut = instructions(['Short.', long], 1_000) ?? ''
  t.match(cut, 'Short.\n')
  t.ok(cut.endsWith('x…'))
  t.notMatch(instructions(['é'.repeat(10_000), 'é'], 999) ?? '', '\uFFFD')
})

t.test('a merged result expires when its first part expires, and is public if all parts are', async (t) => {
  const hint = (ttlMs: number, scope: 'public' | 'private') => ({ ttlMs, scope })
  t.same(leastHint([hint(5, 'public'), hint(3, 'public')]), hint(3, 'public'))
  t.same(leastHint([hint(5, 'public'), hint(3, 'private')]), hint(3, 'private'))
  t.same(leastHint([hint(5, 'public'), undefined]), hint(0, 'private'))
  t.same(leastHint([]), hint(0, 'private'))
})

t.test('the first of equal keys of _meta wins', async (t) => {
  const metas = [{ _meta: { a: 1 } }, {}, { _meta: { a: 2, b: 3 } }].map((one) => parseObject(JSON.stringify(one)))
  t.equal(joinedMeta(metas, { c: '4' }), '{"a":1,"b":3,"c":4}')
  t.equal(joinedMeta([parseObject('{}')]), undefined)
})

t.test('the answer to server/discover has the revisions of the bridge', async (t) => {
  const answer = JSON.parse(write(joinedDiscovery([], { isComplete: true, instructions: undefined }))) as object
  t.same(answer, { supportedVersions: ['2026-07-28'], capabilities: {} })
})

/** Messages of each method with names, URIs and ids of tasks. Those that end in `!` are replaced. */
const PLACES: [method: string, before: object, after: object][] = [
  ['tools/list', { tools: [{ name: 'x', title: 'x' }] }, { tools: [{ name: 'x!', title: 'x' }] }],
  [
    'tools/list',
    {
      tools: [
        {
          name: 'x',
          _meta: { ui: { resourceUri: 'ui://a' }, 'ui/resourceUri': 'ui://a', 'openai/outputTemplate': 'ui://a' },
        },
      ],
    },
    {
      tools: [
        {
          name: 'x!',
          _meta: { ui: { resourceUri: 'ui://a!' }, 'ui/resourceUri': 'ui://a!', 'openai/outputTemplate': 'ui://a!' },
        },
      ],
    },
  ],
  [
    'prompts/list',
    { prompts: [{ name: 'x', arguments: [{ name: 'y' }] }] },
    { prompts: [{ name: 'x!', arguments: [{ name: 'y' }] }] },
  ],
  ['resources/list', { resources: [{ uri: 'a:b', name: 'x' }] }, { resources: [{ uri: 'a:b!', name: 'x' }] }],
  [
    'resources/templates/list',
    { resourceTemplates: [{ uriTemplate: 'a:{b}' }] },
    { resourceTemplates: [{ uriTemplate: 'a:{b}!' }] },
  ],
  ['resources/read', { contents: [{ uri: 'a:b', text: 'a:b' }] }, { contents: [{ uri: 'a:b!', text: 'a:b' }] }],
  [
    'tools/call',
    {
      content: [
        { type: 'text', text: 'a' },
        { type: 'resource_link', uri: 'a:b' },
        { type: 'resource', resource: { uri: 'a:c' } },
      ],
      structuredContent: { uri: 'a:b', taskId: 't' },
      taskId: 't',
    },
    {
      content: [
        { type: 'text', text: 'a' },
        { type: 'resource_link', uri: 'a:b!' },
        { type: 'resource', resource: { uri: 'a:c!' } },
      ],
      structuredContent: { uri: 'a:b', taskId: 't' },
      taskId: 't',
    },
  ],
  ['task', { taskId: 't', status: 'working' }, { taskId: 't!', status: 'working' }],
  [
    'tasks/get',
    { taskId: 't', result: { content: [{ uri: 'a:b' }] } },
    { taskId: 't!', result: { content: [{ uri: 'a:b!' }] } },
  ],
  [
    'prompts/get',
    {
      messages: [
        { role: 'user', content: { type: 'resource', resource: { uri: 'a:b' } } },
        { content: [{ uri: 'a:c' }] },
      ],
    },
    {
      messages: [
        { role: 'user', content: { type: 'resource', resource: { uri: 'a:b!' } } },
        { content: [{ uri: 'a:c!' }] },
      ],
    },
  ],
  [
    'skills/list',
    {
      skills: [
        { uri: 'a:b', resources: [{ uri: 'a:c' }] },
        { uri: 'a:d', resources: 'dynamic' },
      ],
    },
    {
      skills: [
        { uri: 'a:b!', resources: [{ uri: 'a:c!' }] },
        { uri: 'a:d!', resources: 'dynamic' },
      ],
    },
  ],
  ['notifications/tasks', { taskId: 't' }, { taskId: 't!' }],
  ['notifications/resources/updated', { uri: 'a:b' }, { uri: 'a:b!' }],
  [
    'notifications/message',
    { level: 'info', logger: 'x', data: { logger: 'y' } },
    { level: 'info', logger: 'x!', data: { logger: 'y' } },
  ],
  ['notifications/progress', { progress: 1 }, { progress: 1 }],
  ['tools/list', { tools: [{ name: 5 }, 'x', null] }, { tools: [{ name: 5 }, 'x', null] }],
  ['tools/list', { tools: 'none' }, { tools: 'none' }],
]
for (const [method, before, after] of PLACES)
  t.test(
    `names and URIs of ${method} are replaced, and nothing else: ${JSON.stringify(before).slice(0, 40)}`,
    async (t) => {
      const result = replaced(method, parseObject(JSON.stringify(before)), (_kind, text) => `${text}!`)
      t.same(JSON.parse(write(result)), after)
    },
  )
