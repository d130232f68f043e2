/** The rules of changes: rows of docs/development/translation.md. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { sourceOf } from '../../src/base/rpc/source.js'
import { edit, mapElements, objectIn, type Payload, parseObject, parseSource } from '../../src/base/rpc/splice.js'
import { changesOf, RULES, UNKNOWN } from '../../src/inspector/recorder/rules.js'
import type { MessageOrigin } from '../../src/mcp/protocol/encoded.js'

const document = readFileSync(new URL('../../docs/development/translation.md', import.meta.url), 'utf8')

t.test('every rule is the id of one row of docs/development/translation.md', async (t) => {
  const rows = document.split('\n').filter((line) => line.startsWith('|'))
  for (const rule of RULES) t.equal(rows.filter((row) => row.includes(`<a id="${rule}"></a>`)).length, 1, rule)
})

/** An object in a received message. */
const received = (key: string, json: string): Payload =>
  objectIn(parseSource(sourceOf(`{"jsonrpc":"2.0","id":1,"${key}":${json}}`)), key) ?? parseObject('{}')

t.test('an element removed from a list gives the reason by its content', async (t) => {
  const bad = '{"name":"b","inputSchema":{"type":"object","properties":{"p":{"type":"object","x-mcp-header":"P"}}}}'
  const list = received('result', `{"tools":[{"name":"a"},${bad},{"title":"c"}]}`)
  const made = edit(list, { tools: mapElements(list, 'tools', () => []) })
  const changes = changesOf('result', undefined, made, 'legacy client')?.all ?? []
  t.same(
    changes.map(({ at, op, rule }) => `${op} ${at} ${rule}`),
    [
      'replace /id ids',
      'remove /result/tools/0 unusable-tools',
      'remove /result/tools/1 misannotated-tools',
      'remove /result/tools/2 invalid-items',
    ],
  )
})

t.test('counts changes beyond the bound', async (t) => {
  const keys = Array.from({ length: 150 }, (_, i) => `k${i}`)
  const result = received('result', JSON.stringify(Object.fromEntries(keys.map((key) => [key, 1]))))
  const made = edit(result, Object.fromEntries(keys.map((key) => [key, undefined])))
  const found = changesOf('result', undefined, made, 'legacy client')
  t.match(found, { all: { length: 100 }, more: 51 })
})

t.test('a message of the bridge itself has no changes', async (t) => {
  const own: [form: 'request' | 'result' | 'error', made: MessageOrigin | undefined][] = [
    ['result', parseObject('{"tools":[]}')],
    ['request', parseObject('{"uri":"x"}')],
    ['error', { code: -32603, message: 'The server is down' }],
    ['error', undefined],
  ]
  for (const [form, made] of own)
    for (const towards of ['server', 'modern client', 'legacy client'] as const)
      t.equal(changesOf(form, 'resources/read', made, towards), undefined)
})

t.test('an error says which of its members changed', async (t) => {
  const from = received('error', '{"code":-32002,"message":"m","data":{"a":1},"more":true}')
  const made = { code: -32602, message: 'm', data: '{"a":1,"uri":"x"}', from }
  const changes = changesOf('error', undefined, made, 'modern client')?.all ?? []
  t.same(
    changes.map(({ at, op }) => `${op} ${at}`),
    ['replace /id', 'replace /error/code', 'replace /error/data', 'remove /error/more'],
  )
  t.notOk(changes.some(({ rule }) => rule === UNKNOWN))
})
