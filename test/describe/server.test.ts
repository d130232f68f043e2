/** What `probe` and `check` say of the part of a server that clients see. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { DECEPTIVE, printableLines } from '../../src/base/texts/printable.js'
import { parseSettings } from '../../src/config/settings.js'
import { groupInWords } from '../../src/middle/describe/group.js'
import { describeServer, serverInWords } from '../../src/middle/describe/server.js'
import { createBridge } from '../support/bridge.js'
import { check } from '../support/check.js'
import { temporaryFile } from '../support/folder.js'
import { LegacyHttp, type Received } from '../support/legacy-http.js'

t.test('probe shows what clients see, and which patterns match nothing', async (t) => {
  const http = await LegacyHttp.start(t, { pages: 2 })
  const entry = {
    url: http.url,
    tools: {
      allow: ['e*', 'act', 'log', 'lst_*'],
      deny: ['act', '*_admin'],
      override: { echo: { name: 'log', description: 'Says it' }, eco: { title: 'Echo' } },
    },
    prompts: { deny: ['*'] },
    resources: { allow: ['TEST://static', 'test://item/*', 'test://x'], deny: ['test://x?y', 'docs://*'] },
  }
  const { bridge } = createBridge(t, entry)
  const choice = parseSettings({ mcpServers: { a: entry } }, { env: {}, read: () => '' }).mcpServers['a']
  const inspection = await describeServer(bridge.server, { tools: 'attempted', ...(choice && { choice }) })
  t.same(inspection.tools, [{ name: 'log', description: 'Says it' }])
  t.same(inspection.left, [
    {
      option: 'tools',
      shown: 1,
      of: 11,
      unmatched: ['allow "lst_*"', 'deny "*_admin"', 'override "eco"'],
      displaced: ['log'],
    },
    { option: 'prompts', shown: 0, of: 2, unmatched: [], displaced: [] },
    { option: 'resources', shown: 1, of: 4, unmatched: ['allow "TEST://static"', 'deny "docs://*"'], displaced: [] },
  ])
  t.match(
    serverInWords('x', inspection),
    new RegExp(
      [
        '  tools      1',
        '  for clients  1 of 11 tools',
        '    tools.allow "lst_\\*" matches nothing',
        '    tools.deny "\\*_admin" matches nothing',
        '    tools.override "eco" matches nothing',
        '    log is hidden, because another tool has this name for clients',
        '  for clients  0 of 2 prompts',
        '  for clients  1 of 4 resources',
      ].join('\\n'),
    ),
  )
})

t.test('a list that fails names the reason, and a list that the server does not have is empty', async (t) => {
  const failing = ({ message }: Received, response: ServerResponse) => {
    if (message['method'] !== 'prompts/list') return false
    const error = { code: -32000, message: 'Busy' }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], error }))
    return true
  }
  const http = await LegacyHttp.start(t, { capabilities: { tools: {}, prompts: {} }, override: failing })
  const { bridge } = createBridge(t, { url: http.url })
  const inspection = await describeServer(bridge.server, {
    choice: { prompts: { deny: [] }, resources: { deny: ['x'] } },
  })
  t.match(inspection.left, [
    { option: 'prompts', error: /Busy/ },
    { option: 'resources', of: 0, unmatched: ['deny "x"'] },
  ])
  t.match(serverInWords('x', inspection), /for clients {2}prompts could not be listed: .*Busy/)
})

t.test('probe shows tools that are not as MCP defines them', async (t) => {
  const tools = [
    null,
    'text',
    { name: null },
    { name: 'a', title: 7, description: ['x'] },
    { name: 'b', description: 'B' },
  ]
  const odd = ({ message }: Received, response: ServerResponse) => {
    if (message['method'] !== 'tools/list') return false
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: { tools } }))
    return true
  }
  const http = await LegacyHttp.start(t, { capabilities: { tools: {} }, override: odd })
  const { bridge } = createBridge(t, { url: http.url })
  const description = await describeServer(bridge.server)
  t.same(description.tools.slice(-2), [{ name: 'a' }, { name: 'b', description: 'B' }])
  t.match(serverInWords('x', description), /a tool without a name/)
})

t.test('says how many tokens of a model the tools of one server take, if they are many', async (t) => {
  for (const count of [1_000, 500]) {
    const item = { description: 'x'.repeat(70), inputSchema: { type: 'object' } }
    const tools = Array.from({ length: count }, (_, i) => ({ name: `t${i}`, ...item }))
    const many = ({ message }: Received, response: ServerResponse) => {
      if (message['method'] !== 'tools/list') return false
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: { tools } }))
      return true
    }
    const http = await LegacyHttp.start(t, { capabilities: { tools: {} }, override: many })
    const description = await describeServer(createBridge(t, { url: http.url }).bridge.server)
    t.equal(description.toolBytes, JSON.stringify(tools).length)
    const words = serverInWords('x', description)
    if (count === 1_000) t.match(words, /large {6}the tools are about 3\d,000 tokens for a model: choose some/)
    else t.notMatch(words, /tokens/)
  }
})

t.test('check shows what clients see of a server, and which rewritten tools are hidden from them', async (t) => {
  const file = temporaryFile(t, 'mcp.json', {
    mcpServers: {
      all: { command: 'x' },
      some: {
        command: 'x',
        tools: { allow: ['get_*'], deny: ['*_admin'], override: { get_x: { name: 'x' }, put_x: { title: 'Put' } } },
        prompts: { allow: [] },
        resources: { deny: ['file:*'] },
      },
      short: { command: 'x', tools: ['search'] },
    },
  })
  const { code, said } = check(file)
  t.equal(code, 0)
  t.match(said, /tools\.override\.put_x has no effect: "allow" or "deny" hides this tool/)
  t.ok(
    said.endsWith(
      [
        `Clients see only a part of these servers (mcp-bridge probe some --config ${file} lists it):`,
        '  some: tools get_* but not *_admin; prompts (none); all resources but not file:*; rewritten: get_x as x, put_x',
        '  short: tools search',
        '',
      ].join('\n'),
    ),
    said,
  )
  t.match(check(file, { args: ['--offline'] }).said, '  short: tools search')
})

t.test('what a server says cannot control the terminal, add lines or hide text', async (t) => {
  const hostile = 'a\u001b[2Jb\nc\u202ed\u009b31m'
  const tools = [{ name: hostile, description: hostile }]
  const left = [{ option: 'tools' as const, shown: 1, of: 1, unmatched: [], displaced: [hostile] }]
  const server = {
    ...{ era: 'legacy' as const, revision: hostile, transport: 'http' as const, why: hostile, left, tools },
    ...{ server: { name: hostile, version: hostile }, instructions: hostile, capabilities: { [hostile]: {} } },
    toolsError: hostile,
  }
  const group = {
    ...{ servers: ['a'], unavailable: [{ server: 'a', message: hostile }], toolBytes: 1, tooLong: [hostile] },
    ...{ tools: [hostile], prompts: [], resources: [], unusual: [hostile] },
    leftOut: [{ server: 'a', name: hostile, why: 'taken' as const }],
  }
  for (const [text, lines] of [
    [serverInWords('x', server), 11],
    [groupInWords('x', group), 8],
    [printableLines({ tools: [hostile] }), 5],
  ] as const) {
    t.equal(text.split('\n').length, lines, text)
    t.notMatch(text.replaceAll('\n', ''), DECEPTIVE)
  }
})
