/** The examples of the specification, through the codecs of the bridge: what is shown as changed is what was changed. */
import t from 'tap'
import { type Id, type Request, type Response, request } from '../../src/base/rpc/message.js'
import { join } from '../../src/base/rpc/source.js'
import { EMPTY, type Payload } from '../../src/base/rpc/splice.js'
import { changesOf, RULES, type Towards } from '../../src/inspector/recorder/rules.js'
import type { Call, Reply } from '../../src/mcp/protocol/call.js'
import type { Downlevel } from '../../src/mcp/protocol/downlevel/downlevel.js'
import type { MessageOrigin } from '../../src/mcp/protocol/encoded.js'
import { type LegacyRevision, traits } from '../../src/mcp/protocol/eras.js'
import { decodeRequest as decodeLegacy, encodeReply as encodeLegacy } from '../../src/mcp/protocol/legacy-client.js'
import { decodeReply as fromLegacy, encodeParams as toLegacy } from '../../src/mcp/protocol/legacy-server.js'
import { decodeRequest, encodeReply } from '../../src/mcp/protocol/modern-client.js'
import { decodeReply as fromModern, encodeParams as toModern } from '../../src/mcp/protocol/modern-server.js'
import { untruths } from '../support/law.js'
import { parseText } from '../support/messages.js'
import { exampleDefinitions, examples, METHODS_OF_RESULTS } from '../support/schema.js'

const REVISIONS: readonly LegacyRevision[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const ID = '7' as Id

function callOf(method: string, parts: { params?: Payload; meta?: Payload } = {}): Call {
  return {
    method,
    params: EMPTY,
    meta: EMPTY,
    progress: true,
    caller: { revision: '2026-07-28', capabilities: '{}', clientInfo: '{"name":"c","version":"1"}' },
    principal: 'p',
    notify: () => undefined,
    signal: new AbortController().signal,
    abort() {},
    log: { note() {}, warn() {} },
    ...parts,
  }
}

const target = (revision: LegacyRevision, strict: boolean): Downlevel => ({
  revision,
  traits: traits[revision],
  strict,
  tasks: false,
  memory: { wrapped: new Set() },
  lost() {},
})

/** What is wrong with what is shown of a message. */
function wrongWith(
  received: string,
  sent: string,
  about: { form: 'request' | 'result'; origin: MessageOrigin; towards: Towards },
): string[] {
  const found = changesOf(about.form, undefined, about.origin, about.towards)
  if (!found) return ['there are no changes']
  const unknown = found.all.filter(({ rule }) => !RULES.has(rule))
  return [...unknown.map((change) => `no rule: ${JSON.stringify(change)}`), ...untruths(received, sent, found.all)]
}

t.test('requests of the specification, to servers of every revision', async (t) => {
  let checked = 0
  for (const definition of exampleDefinitions().filter((name) => name.endsWith('Request')))
    for (const { name, text } of examples(definition)) {
      const message = parseText(text) as Request
      if (message.kind !== 'request' || typeof message.params === 'string' || !text.includes('protocolVersion')) {
        t.comment(`${definition}/${name} is no request of a client`)
        continue
      }
      const { method, params, meta } = decodeRequest(message)
      const call = callOf(method, { params, meta })
      const legacy = decodeLegacy(message)
      const made = [
        ...REVISIONS.flatMap((revision) => [toLegacy(call, revision, 3), toLegacy(call, revision, undefined)]),
        toModern(call, '3'),
        toModern(callOf(method, legacy), '3'),
      ]
      for (const one of made) {
        checked++
        t.same(wrongWith(text, request(3, method, one), { form: 'request', origin: one, towards: 'server' }), [], name)
      }
    }
  t.ok(checked >= 100, `${checked} messages`)
})

t.test('results of the specification, to clients of every revision', async (t) => {
  let checked = 0
  for (const [definition, method] of Object.entries(METHODS_OF_RESULTS))
    for (const { name, text } of examples(definition)) {
      const received = `{"jsonrpc":"2.0","id":1,"result":${text}}`
      const answer = parseText(received) as Response
      const call = callOf(method)
      const check = (
        reply: Reply,
        towards: Towards,
        encoded: { text: Parameters<typeof join>[0]; origin: MessageOrigin },
      ) => {
        checked++
        t.equal(reply.kind, 'result')
        t.same(
          wrongWith(received, join(encoded.text), { form: 'result', origin: encoded.origin, towards }),
          [],
          `${definition}/${name} to a ${towards}`,
        )
      }
      for (const reply of [fromModern(call, answer), fromLegacy(call, answer, '{"name":"s","version":"1"}')]) {
        check(reply, 'modern client', encodeReply(reply, ID, { method, progressToken: undefined }))
        if (reply.kind === 'input') continue
        for (const revision of REVISIONS)
          for (const strict of [false, true])
            check(reply, 'legacy client', encodeLegacy(reply, ID, call, undefined, target(revision, strict)))
      }
    }
  t.ok(checked >= 200, `${checked} messages`)
})

t.test('the check finds missing, wrong and invented changes', async (t) => {
  const received = '{"id":1,"params":{"a":1.0,"list":[{"x":1},{"x":2}]}}'
  const sent = '{"id":1,"params":{"a":1.0,"list":[{"x":3}],"b":true}}'
  const changes = [
    { op: 'remove', at: '/params/list/0', rule: 'r' },
    { op: 'replace', at: '/params/list/1/x', rule: 'r' },
    { op: 'add', at: '/params/b', rule: 'r' },
  ] as const
  t.same(untruths(received, sent, changes), [])
  for (const change of changes)
    t.not(
      untruths(
        received,
        sent,
        changes.filter((one) => one !== change),
      ).length,
      0,
      `without ${change.at}`,
    )
  for (const at of ['/params/a/b', '/params/none'])
    t.not(untruths(received, sent, [...changes, { op: 'remove', at, rule: 'r' }]).length, 0, `with ${at}`)
  t.not(untruths(received, sent.replace('1.0', '1'), changes).length, 0, 'a number that was rounded')
  const moved = '{"id":1,"params":{"list":[{"x":3}],"a":1.0,"b":true}}'
  t.not(untruths(received, moved, changes).length, 0, 'members in another order')
})
