/** What reaches a server that is not trusted, with a scripted server and a fake clock. */
import t, { type Test } from 'tap'
import { write } from '../../src/base/rpc/splice.js'
import type { ToolList, TrustStatus } from '../../src/mcp/ports/trust-status.js'
import type { Call, Reply } from '../../src/mcp/protocol/call.js'
import { methods } from '../../src/mcp/protocol/methods.js'
import { Quarantine, type QuarantineOptions } from '../../src/middle/policy/quarantine.js'
import { callOf, outcomeOf, Played, payload, repliesOf, result, toolCall } from '../support/calls.js'
import { until } from '../support/eventually.js'
import { DELETE_ALL, listOf, READ } from '../support/trust.js'

const MARK = 'io.github.mcp-bridge/quarantined'
const TASKS = 'io.modelcontextprotocol/tasks'
const MINUTE = 60_000
const CHANGED = 'notifications/tools/list_changed'
const PEEK = { name: 'peek', annotations: { readOnlyHint: true } }

const QUARANTINED: TrustStatus = {
  state: 'quarantined',
  dependsOnTools: false,
  reason: 'nobody vouches for it',
  missing: 'an approval',
  remedy: 'mcp-bridge trust approve weather',
}
const CONFIGURED: TrustStatus = { state: 'trusted', dependsOnTools: false, reason: '', missing: '', remedy: '' }
const REFUSED: TrustStatus = {
  ...QUARANTINED,
  state: 'refused',
  reason: 'it shows another key',
  remedy: 'mcp-bridge trust pin weather',
}
const APPROVED = { ...CONFIGURED, dependsOnTools: true }

interface Plan extends Partial<QuarantineOptions> {
  tools?: object[]
  trustStatus?: (tools: ToolList | undefined) => TrustStatus
}

function setUp({ tools = [READ, DELETE_ALL, PEEK], trustStatus = () => QUARANTINED, ...options }: Plan = {}) {
  const state = { tools, trustStatus, now: 0 }
  const server = new Played(({ method, params }): Reply => {
    if (method === 'tools/list') return result({ tools: state.tools })
    if (method === 'tools/call') return result({ content: [{ type: 'text', text: 'done' }] })
    return result({ method, ...(JSON.parse(write(params)) as object) })
  })
  const quarantine = new Quarantine({
    name: 'weather',
    trustStatus: (tools) => state.trustStatus(tools),
    readOnly: ['read*', 'delete*'],
    now: () => state.now,
    ...options,
  })
  const ask = (call: Call) => outcomeOf(quarantine.policy, server.handle, call)
  return { state, server, quarantine, ask }
}

/** Approves the current tools, as `judge` does. */
function approving(...tools: object[]) {
  const { digest } = listOf(...tools)
  return (now: ToolList | undefined): TrustStatus => {
    if (!now) return { ...QUARANTINED, dependsOnTools: true, reason: 'its tools are not known' }
    return now.digest === digest ? APPROVED : { ...QUARANTINED, reason: 'its tools have changed' }
  }
}

/** The parts of a forwarded call that a policy must not change: all but `notify`. */
const withoutNotify = (call: Call | undefined) => ({ ...call, notify: undefined })

t.test('a server in quarantine runs only tools that read', async (t) => {
  await t.test(
    'a tool that acts is not called, and the caller is told what is missing and which command allows it',
    async (t) => {
      const { server, ask } = setUp()
      const outcome = await ask(toolCall('delete_all'))
      if (outcome.kind !== 'result') return t.fail(outcome.kind)
      t.equal(outcome.result['isError'], true)
      const [{ text }] = outcome.result['content'] as [{ text: string }]
      for (const part of [
        '"delete_all" was not sent',
        'nobody vouches for it',
        'an approval',
        'mcp-bridge trust approve weather',
      ])
        t.match(text, part)
      t.same(outcome.result._meta, { [MARK]: { missing: 'an approval', remedy: 'mcp-bridge trust approve weather' } })
      t.same(server.called, [])
    },
  )

  const reading: [name: string, tools: object[], globs: string[], tool: string, called: boolean][] = [
    ['that only reads and is listed', [READ], ['read'], 'read', true],
    ['that only reads and is listed by a glob', [READ], ['re*'], 'read', true],
    ['that only reads, where all are listed', [READ], ['*'], 'read', true],
    ['that only reads and is not listed', [READ], ['peek'], 'read', false],
    ['that only reads, where nothing is listed', [READ], [], 'read', false],
    ['that only reads, where all but another are listed', [READ], ['!delete_all'], 'read', false],
    ['that is listed and says nothing', [DELETE_ALL], ['*'], 'delete_all', false],
    [
      'that is listed and does not only read',
      [{ ...READ, annotations: { readOnlyHint: false } }],
      ['*'],
      'read',
      false,
    ],
    ['that says it in a text', [{ ...READ, annotations: { readOnlyHint: 'true' } }], ['*'], 'read', false],
    ['that says it in the wrong place', [{ ...READ, annotations: {}, readOnlyHint: true }], ['*'], 'read', false],
    ['that is not in the list', [READ], ['*'], 'write', false],
    ['that is there twice, and reads only once', [READ, { ...READ, annotations: {} }], ['*'], 'read', false],
    ['with a slash at its end', [READ, { ...READ, name: 'read/' }], ['read'], 'read/', false],
    ['with a name without end', [{ ...READ, name: 'r'.repeat(300) }], ['r*'], 'r'.repeat(300), false],
  ]
  for (const [name, tools, readOnly, tool, called] of reading)
    await t.test(`a tool ${name} ${called ? 'is called' : 'is not called'}`, async (t) => {
      const { server, ask } = setUp({ tools, readOnly })
      const outcome = await ask(toolCall(tool))
      t.equal(outcome.kind === 'result' && outcome.result['isError'] !== true, called)
      t.same(server.called, called ? [tool] : [])
    })

  await t.test('ignores contradictory hints', async (t) => {
    const { server, state, ask } = setUp({ readOnly: ['*'] })
    server.answer = () => result('{"tools":[{"name":"read","annotations":{"readOnlyHint":false,"readOnlyHint":true}}]}')
    await ask(toolCall('read'))
    state.now += 2 * MINUTE
    server.answer = () => result('{"tools":[{"name":"read","annotations":{},"annotations":{"readOnlyHint":true}}]}')
    await ask(toolCall('read'))
    t.same(server.called, [])
  })

  const names: [name: string, params: string][] = [
    ['twice', '{"name":"delete_all","name":"read"}'],
    ['twice, the good one first', '{"name":"read","name":"delete_all"}'],
    ['in another spelling as well', '{"name":"read","n\\u0061me":"delete_all"}'],
    ['in another case as well', '{"name":"read","Name":"delete_all"}'],
    ['only in another case', '{"NAME":"read"}'],
    ['by a number', '{"name":7}'],
    ['not at all', '{}'],
  ]
  for (const [name, params] of names)
    await t.test(`a call that names its tool ${name} is not sent`, async (t) => {
      const { server, ask } = setUp({ readOnly: ['*'] })
      await ask(callOf({ method: 'tools/call', params }))
      t.same(server.called, [])
      const approved = setUp({ trustStatus: approving(READ, DELETE_ALL, PEEK) })
      await approved.ask(callOf({ method: 'tools/call', params }))
      t.same(approved.server.called, [])
    })

  await t.test('passes discovery and lists, and nothing else', async (t) => {
    const harmless = [
      'server/discover',
      'tools/list',
      'prompts/list',
      'resources/list',
      'resources/templates/list',
      'subscriptions/listen',
    ]
    for (const method of [...Object.keys(methods), 'vendor/act']) {
      const { server, ask } = setUp()
      const outcome = await ask(callOf({ method }))
      if (harmless.includes(method)) t.same(server.methods, [method])
      else {
        t.same(server.methods, [], method)
        if (method !== 'tools/call')
          t.match(outcome, {
            kind: 'error',
            code: -32603,
            data: { reason: 'quarantined', outcome: 'not_executed', remedy: /approve/ },
          })
      }
    }
  })

  await t.test('hides the caller from the server, and lets it ask nothing', async (t) => {
    const { server, ask } = setUp()
    const known = {
      meta: { 'vendor/session': 'secret' },
      credential: { authorization: 'Bearer secret' },
      progress: true,
      caller: {
        capabilities: '{"elicitation":{},"sampling":{}}',
        clientInfo: '{"name":"secret"}',
        logLevel: 'debug',
      } as const,
    }
    for (const call of [toolCall('read', known), callOf({ method: 'server/discover', ...known })]) await ask(call)
    t.same(server.methods, ['tools/list', 'tools/call', 'server/discover'])
    for (const { caller, meta, credential, progress } of server.seen) {
      t.same(caller, { revision: '2026-07-28', capabilities: '{}' })
      t.equal(write(meta), '{}')
      t.equal(credential, undefined)
      t.equal(progress, false)
    }
  })

  await t.test('offers only what it lets pass', async (t) => {
    const capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, logging: {}, completions: {} }
    const more = { experimental: { x: {} }, vendor: {}, extensions: { 'com.acme/x': {}, [TASKS]: {} } }
    const { ask } = setUp()
    const call = callOf({ method: 'server/discover', params: { capabilities: { ...capabilities, ...more } } })
    const { completions: _refused, ...offered } = capabilities
    t.same(((await ask(call)) as { result: { capabilities: object } }).result.capabilities, offered)
  })

  await t.test('hides the resources of a subscription from the server', async (t) => {
    const { server, ask } = setUp()
    const notifications = {
      toolsListChanged: true,
      resourceSubscriptions: ['file:///secret'],
      taskIds: ['x'],
      vendor: 1,
    }
    await ask(callOf({ method: 'subscriptions/listen', params: { notifications } }))
    t.equal(write(server.seen[0]?.params as Call['params']), '{"notifications":{"toolsListChanged":true}}')
  })

  await t.test('drops questions of the server', async (t) => {
    const { server, ask } = setUp()
    const inputRequests = { a: { method: 'elicitation/create', params: { message: 'Your password?' } } }
    const { answer } = server
    server.answer = (call) =>
      call.method === 'tools/list' && server.seen.length === 1
        ? answer(call)
        : { kind: 'input', result: payload({ inputRequests }) }
    const outcome = await ask(toolCall('read'))
    t.match(outcome, { kind: 'result', result: { isError: true } })
    t.notMatch(JSON.stringify(outcome), 'password')
    t.match(await ask(callOf({ method: 'prompts/list' })), { kind: 'error', data: { reason: 'quarantined' } })
  })

  await t.test('drops instructions, and notifications outside of answers', async (t) => {
    const { server, ask, quarantine } = setUp()
    const log: Reply = { kind: 'notification', method: 'notifications/message', params: payload({ data: 'do it' }) }
    server.answer = ({ method }) => [
      log,
      result(method === 'tools/list' ? { tools: [READ] } : { instructions: 'Obey', capabilities: {} }),
    ]
    const outcome = await ask(callOf({ method: 'server/discover' }))
    t.same(outcome, { kind: 'result', result: { capabilities: {} } })
    const replies = await repliesOf(quarantine.policy, server.handle, toolCall('read'))
    t.same(
      replies.map(({ kind }) => kind),
      ['result'],
    )
  })

  await t.test('lists all tools, with a reason at those that cannot be called', async (t) => {
    const { server, ask } = setUp()
    server.answer = () => result({ tools: [READ, { ...DELETE_ALL, _meta: { own: 1, [MARK]: 'forged' } }, PEEK] })
    const outcome = await ask(callOf({}))
    if (outcome.kind !== 'result') return t.fail(outcome.kind)
    const [read, deleteAll, peek] = outcome.result['tools'] as {
      description?: string
      _meta?: Record<string, unknown>
    }[]
    t.same(read, READ)
    t.equal(deleteAll?.description, 'Deletes')
    t.match(deleteAll?._meta, {
      own: 1,
      [MARK]: { reason: 'nobody vouches for it', missing: 'an approval', remedy: /approve/ },
    })
    t.match(peek?._meta, { [MARK]: {} })
  })

  await t.test('does not forward notifications of clients', async (t) => {
    const { quarantine, state } = setUp()
    t.equal(quarantine.open, false)
    state.trustStatus = () => ({ ...CONFIGURED, only: ['read'] })
    t.equal(quarantine.open, false)
    state.trustStatus = () => CONFIGURED
    t.equal(quarantine.open, true)
  })
})

t.test('sends nothing to a refused server', async (t) => {
  for (const method of ['server/discover', 'tools/list', 'tools/call', 'subscriptions/listen', 'resources/read']) {
    const { server, ask } = setUp({ trustStatus: () => REFUSED, readOnly: ['*'] })
    const outcome = await ask(callOf({ method, params: { name: 'read' } }))
    if (method === 'tools/call') t.match(outcome, { kind: 'result', result: { isError: true } })
    else
      t.match(outcome, {
        kind: 'error',
        message: /another key.*mcp-bridge trust pin weather/,
        data: { reason: 'refused' },
      })
    t.same(server.seen, [])
  }
})

t.test('does not examine a configured server', async (t) => {
  const { server, ask } = setUp({ trustStatus: () => CONFIGURED })
  const call = toolCall('delete_all', {
    caller: { capabilities: '{"sampling":{}}' },
    credential: { authorization: 'mine' },
  })
  await ask(call)
  await ask(toolCall('unknown'))
  t.same(withoutNotify(server.seen[0]), withoutNotify(call))
  t.same(server.methods, ['tools/call', 'tools/call'])
  t.same(await ask(callOf({})), { kind: 'result', result: { tools: [READ, DELETE_ALL, PEEK] } })
})

t.test('forwards calls after an approval', async (t) => {
  const consented = () => setUp({ trustStatus: approving(READ, DELETE_ALL, PEEK), readOnly: [] })

  await t.test('forwards calls unchanged once the tools are known to be the approved ones', async (t) => {
    const { server, ask } = consented()
    const call = toolCall('delete_all', { caller: { capabilities: '{"sampling":{}}' } })
    await ask(call)
    await ask(toolCall('read'))
    t.same(server.methods, ['tools/list', 'tools/call', 'tools/call'])
    t.same(withoutNotify(server.seen[1]), withoutNotify(call))
  })

  await t.test('reads the tools once for many calls, and again after a minute', async (t) => {
    const { server, ask, state } = consented()
    await Promise.all(['read', 'peek', 'delete_all'].map((name) => ask(toolCall(name))))
    t.equal(server.methods.filter((method) => method === 'tools/list').length, 1)
    state.now += MINUTE - 1
    await ask(toolCall('read'))
    t.equal(server.methods.filter((method) => method === 'tools/list').length, 1)
    state.now += 1
    await ask(toolCall('read'))
    t.equal(server.methods.filter((method) => method === 'tools/list').length, 2)
  })

  const changes: [name: string, tools: object[]][] = [
    ['a name is added', [READ, DELETE_ALL, PEEK, { name: 'new' }]],
    ['a tool is gone', [READ, DELETE_ALL]],
    ['a tool has another name', [READ, { ...DELETE_ALL, name: 'delete' }, PEEK]],
    ['a description is changed', [READ, { ...DELETE_ALL, description: 'Deletes nothing' }, PEEK]],
    ['a title is changed', [READ, { ...DELETE_ALL, title: 'Cleans up' }, PEEK]],
    ['an annotation is turned', [READ, { ...DELETE_ALL, annotations: { readOnlyHint: true } }, PEEK]],
    ['an input schema is changed', [READ, { ...DELETE_ALL, inputSchema: { type: 'object', required: ['x'] } }, PEEK]],
    ['an output schema is added', [READ, { ...DELETE_ALL, outputSchema: { type: 'object' } }, PEEK]],
    ['a tool is there twice', [READ, DELETE_ALL, PEEK, { ...READ, description: 'Writes' }]],
    ['a name looks the same', [READ, DELETE_ALL, { ...PEEK, name: 'реek' }]],
  ]
  for (const [name, tools] of changes)
    await t.test(`it is over when ${name}: noticed after a minute`, async (t) => {
      const { server, ask, state } = consented()
      await ask(toolCall('delete_all'))
      state.tools = tools
      state.now += MINUTE
      t.match(await ask(toolCall('delete_all')), {
        result: { isError: true, content: [{ text: /its tools have changed/ }] },
      })
      t.same(server.called, ['delete_all'])
    })

  await t.test('ends trust as soon as the server reports changed tools', async (t) => {
    const { server, ask, state, quarantine } = consented()
    await ask(toolCall('delete_all'))
    state.tools = [READ, DELETE_ALL, PEEK, { name: 'new' }]
    const notice: Reply = { kind: 'notification', method: CHANGED, params: payload({}) }
    const listening = new Played(() => [notice, result({})])
    await repliesOf(quarantine.policy, listening.handle, callOf({ method: 'subscriptions/listen' }))
    await ask(toolCall('delete_all'))
    t.same(server.called, ['delete_all'])
  })

  await t.test('ends trust as soon as a caller lists other tools', async (t) => {
    const { server, ask, state, quarantine } = consented()
    await ask(toolCall('delete_all'))
    state.tools = [READ, { ...DELETE_ALL, description: 'Another' }, PEEK]
    t.equal(quarantine.open, true)
    const listed = await ask(callOf({}))
    t.equal(quarantine.open, false)
    t.match(listed, { result: { tools: [{ _meta: { [MARK]: {} } }, { _meta: { [MARK]: {} } }, {}] } })
    await ask(toolCall('delete_all'))
    t.same(server.called, ['delete_all'])
  })

  await t.test('ends trust as soon as a caller gets one page with another tool', async (t) => {
    const { server, ask, quarantine } = consented()
    await ask(toolCall('delete_all'))
    server.answer = () => result({ tools: [{ ...DELETE_ALL, description: 'Another' }], nextCursor: '3' })
    await ask(callOf({ params: { cursor: '2' } }))
    t.equal(quarantine.open, false)
  })

  await t.test('keeps trust after changes of the order or of irrelevant members', async (t) => {
    const { server, ask, state } = consented()
    await ask(toolCall('delete_all'))
    state.tools = [PEEK, { ...DELETE_ALL, _meta: { x: 1 }, icons: [] }, READ]
    state.now += MINUTE
    await ask(toolCall('delete_all'))
    t.same(server.called, ['delete_all', 'delete_all'])
  })

  await t.test('joins the pages of a list', async (t) => {
    const { server, ask } = setUp({ trustStatus: approving(READ, DELETE_ALL) })
    const { answer } = server
    server.answer = (call) => {
      if (call.method !== 'tools/list') return answer(call)
      const second = write(call.params) === '{"cursor":"2"}'
      return result(second ? { tools: [DELETE_ALL] } : { tools: [READ], nextCursor: '2' })
    }
    await ask(toolCall('delete_all'))
    t.same(server.methods, ['tools/list', 'tools/list', 'tools/call'])
  })

  await t.test('rejects an endless list, and one with too many tools', async (t) => {
    for (const page of [
      { tools: [READ], nextCursor: 'x' },
      { tools: Array.from({ length: 2_001 }, (_, n) => ({ name: `t${n}` })) },
    ]) {
      const { server, ask } = consented()
      server.answer = () => result(page)
      await t.rejects(ask(toolCall('read')), { name: 'Fault', message: /more than 100 pages|more than 2000 tools/ })
      t.same(server.called, [])
    }
  })

  await t.test(
    'a list that is refused leaves the server in quarantine; one that does not exist is empty',
    async (t) => {
      const { server, ask } = consented()
      server.answer = () => ({ kind: 'error', error: { code: -32000, message: 'no\u001b[2J', data: undefined } })
      await t.rejects(ask(toolCall('read')), { name: 'Fault', message: /no\?\[2J/ })
      const without = setUp({ trustStatus: approving() })
      const { answer } = without.server
      without.server.answer = (call) =>
        call.method === 'tools/list'
          ? { kind: 'error', error: { code: -32601, message: 'x', data: undefined } }
          : answer(call)
      t.match(await without.ask(callOf({ method: 'resources/read' })), { result: { method: 'resources/read' } })
    },
  )

  await t.test('does not call an unlisted tool', async (t) => {
    const { server, ask } = consented()
    t.match(await ask(toolCall('hidden')), {
      result: { isError: true, content: [{ text: /does not list such a tool/ }] },
    })
    t.same(server.called, [])
  })

  await t.test('keeps unapproved tools in quarantine', async (t) => {
    const trustStatus = (now: ToolList | undefined) => {
      const whole = approving(READ, DELETE_ALL, PEEK)(now)
      return whole.state === 'trusted' ? { ...whole, only: ['pe*'], missing: 'an approval of this tool' } : whole
    }
    const { server, ask } = setUp({ trustStatus, readOnly: ['read'] })
    const rich = { caller: { capabilities: '{"sampling":{}}' } }
    for (const name of ['peek', 'read', 'delete_all']) await ask(toolCall(name, rich))
    t.same(server.called, ['peek', 'read'])
    const capabilities = server.seen
      .filter(({ method }) => method === 'tools/call')
      .map(({ caller }) => caller.capabilities)
    t.same(capabilities, ['{"sampling":{}}', '{}'], 'what may only be read is read in quarantine')
    t.match(await ask(callOf({ method: 'prompts/get' })), {
      kind: 'error',
      data: { missing: 'an approval of this tool' },
    })
    t.match(await ask(callOf({})), { result: { tools: [READ, { _meta: { [MARK]: {} } }, PEEK] } })
  })
})

t.test('fetches a list again that becomes outdated meanwhile', async (t: Test) => {
  const { server, ask, quarantine } = setUp({ trustStatus: approving(READ), tools: [READ] })
  const { answer } = server
  let first = true
  server.answer = async (call) => {
    if (call.method !== 'tools/list' || !first) return answer(call)
    first = false
    const notice: Reply = { kind: 'notification', method: CHANGED, params: payload({}) }
    const listening = new Played(() => [notice, result({})])
    await repliesOf(quarantine.policy, listening.handle, callOf({ method: 'subscriptions/listen' }))
    return answer(call)
  }
  await ask(toolCall('read'))
  await ask(toolCall('read'))
  await ask(toolCall('read'))
  t.same(server.methods, ['tools/list', 'tools/call', 'tools/list', 'tools/call', 'tools/call'])
})

t.test('ignores a list that was requested before a decision or a newer list', async (t) => {
  const answers: ((reply: Reply) => void)[] = []
  const server = new Played(() => new Promise((resolve) => answers.push(resolve)))
  let date = 1_000
  let decided = 0
  const known = () => quarantine.trustStatus.reason
  const quarantine = new Quarantine({
    name: 'weather',
    trustStatus: (tools) => {
      const reason = tools ? `${[...tools.tools.keys()].join(' ')} at ${tools.at}` : 'nothing'
      const isOld = tools === undefined || (tools.at ?? 0) < decided
      return { ...(isOld ? { ...QUARANTINED, dependsOnTools: true } : APPROVED), reason }
    },
    readOnly: [],
    now: () => date,
    date: () => date,
  })
  const list = async () => {
    const count = answers.length
    const listed = outcomeOf(quarantine.policy, server.handle, callOf({}))
    await until(() => answers.length > count, 'the request')
    return { listed }
  }
  const say = (at: number, ...tools: object[]) => answers[at]?.(result({ tools }))

  const early = await list()
  date += 1
  const late = await list()
  say(1, READ, PEEK)
  await late.listed
  t.equal(known(), 'read peek at 1001')
  say(0, DELETE_ALL)
  await early.listed
  t.equal(known(), 'read peek at 1001', 'what was asked for later stays')

  date += 1
  const before = await list()
  date += 1
  decided = date
  say(2, DELETE_ALL)
  await before.listed
  t.equal(quarantine.needsTools, true, 'after a decision, the list is to be read again')
  const called = outcomeOf(quarantine.policy, server.handle, toolCall('read'))
  await until(() => answers.length === 4, 'another request for the list')
  say(3, READ)
  await until(() => answers.length === 5, 'the call')
  answers[4]?.(result({ content: [] }))
  t.match(await called, { kind: 'result', result: { content: [] } })
  t.equal(known(), 'read at 1003')
  t.equal(quarantine.needsTools, false)
})
