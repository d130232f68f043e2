/** What belongs to another principal: its use has a line in the audit log, and is answered as that of what does not exist. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ABLE, ADA, all, NAME, type Round, startAsker, talk, WAYS } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { listen } from '../support/listening.js'
import type { CallOptions } from '../support/modern.js'

type Json = Record<string, unknown>

const KNOWING = { ...ABLE, extensions: { 'io.modelcontextprotocol/tasks': {} } }
const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
const as = (who: keyof typeof TOKENS): CallOptions & { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${TOKENS[who]}` },
})

/** Where a client calls: at the server, and at groups with and without prefixes. */
const PLACES: readonly [where: string, path: string, prefix: string, line: Json][] = [
  ['at a server', '/mcp', '', { server: 'test' }],
  ['in a group with prefixes', '/team/mcp', 'test__', { group: 'team' }],
  ['in a group without prefixes', '/bare/mcp', '', { group: 'bare' }],
]

async function start(t: Test, way: (typeof WAYS)[number], path: string, more: Json = {}) {
  const file = join(temporaryFolder(t), 'audit.jsonl')
  const asker = await startAsker(t, way)
  const groups = { team: { servers: ['test'], prefix: 'always' }, bare: { servers: ['test'], prefix: 'never' } }
  const { url } = await startBridge(t, asker.server, { auth: { tokens: TOKENS }, audit: { file }, groups, ...more })
  const at = url.replace('/mcp', path)
  const client = talk(at, { by: asker.by, capabilities: KNOWING })
  const text = () => readFileSync(file, 'utf8')
  const lines = () => (text().trim() === '' ? [] : text().trim().split('\n')).map((line) => JSON.parse(line) as Json)
  return { ...client, at, asker, text, lines }
}

const answerOf = ({ status, message, headers }: Round) => {
  return { status, error: message.error, result: message.result, header: headers['mcp-bridge-error'] }
}

for (const way of WAYS)
  for (const [where, path, prefix, line] of PLACES) {
    t.test(`the state of somebody else’s call has one line ${where} ${way}, and is answered as before`, async (t) => {
      const { asker, call, again, lines, text } = await start(t, way, path)
      const steps = { name: `${prefix}steps`, arguments: { steps: [{ ask: [NAME] }], by: asker.by } }
      const asked = await call('tools/call', steps, as('alice'))
      t.match(lines(), [{ principal: 'alice', outcome: 'asks' }])
      const other = await again(asked, all(asked, ADA), { name: `${prefix}signal` }, as('alice'))
      const before = lines().length
      const foreign = await again(asked, all(asked, ADA), {}, as('bob'))
      t.match(foreign.message.error, {
        code: -32602,
        data: { reason: 'invalid_request_state', outcome: 'not_executed' },
      })
      t.same(answerOf(foreign), answerOf(other), 'as the state of another call')
      t.equal(lines().length, before + 1, 'one line')
      t.match(lines().at(-1), {
        ...line,
        principal: 'bob',
        method: 'tools/call',
        tool: steps.name,
        outcome: 'refused',
        reason: 'foreignState',
      })
      t.notMatch(JSON.stringify(lines().at(-1)), /alice/, 'whose it is is not named')
      t.notOk(text().includes(asked.state), 'without the state')
      const own = await again(asked, all(asked, ADA), {}, as('alice'))
      t.same(own.said, [ADA], 'its owner has noticed nothing')
      t.match(lines().at(-1), { principal: 'alice', outcome: 'ok' })
    })

    t.test(
      `the id of somebody else’s task has one line ${where} ${way}, and is answered as an unknown one`,
      async (t) => {
        const { call, at, lines, text } = await start(t, way, path)
        const made = await call(
          'tools/call',
          { name: `${prefix}job`, arguments: { steps: [{ wait: 'end' }] } },
          as('alice'),
        )
        const taskId = String(made.message.result?.['taskId'])
        t.match(lines(), [{ principal: 'alice', outcome: 'ok' }])
        const responses = { inputResponses: { a: ADA } }
        for (const [method, more] of [
          ['tasks/get', {}],
          ['tasks/update', responses],
          ['tasks/cancel', {}],
        ] as const) {
          const before = lines().length
          const unknown = await call(method, { taskId: `${taskId}x`, ...more }, as('bob'))
          t.equal(lines().length, before, 'an unknown id has no line')
          const foreign = await call(method, { taskId, ...more }, as('bob'))
          t.same(answerOf(foreign), answerOf(unknown), method)
          t.equal(lines().length, before + 1, `one line of ${method}`)
          t.match(lines().at(-1), {
            server: 'test',
            principal: 'bob',
            method,
            outcome: 'refused',
            reason: 'foreignTask',
          })
        }
        const before = lines().length
        const stream = await listen(at, { taskIds: [taskId, taskId] }, { capabilities: KNOWING, ...as('bob') })
        await stream.has(1)
        t.notMatch(stream.text, taskId)
        await until(() => lines().length > before, 'the line of a subscription')
        t.match(lines().at(-1), { principal: 'bob', method: 'subscriptions/listen', reason: 'foreignTask' })
        t.notOk(text().includes(taskId), 'without the id')
        t.match((await call('tasks/get', { taskId }, as('alice'))).message.result, { status: 'working' })
        t.equal(lines().length, before + 1, 'its owner has none')
      },
    )
  }
