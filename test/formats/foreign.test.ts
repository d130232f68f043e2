/** Entries as other programs write them: members that say nothing, names that stand twice, and switches. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfigFile } from '../../src/config/formats/config-file.js'
import { OPTIONS } from '../../src/config/settings.js'
import { check } from '../support/check.js'
import { temporaryFolder } from '../support/folder.js'

const read = (text: unknown, path = '/x/mcp.json') =>
  readConfigFile(typeof text === 'string' ? text : JSON.stringify(text), { path, home: '/home/ada', options: OPTIONS })

t.test('members that are null or empty are absent', async (t) => {
  const empty = { url: '', serverUrl: null, cwd: '', headers: null, type: '', env: { A: null, B: '' }, args: null }
  t.same(read({ mcpServers: { a: { command: 'x', ...empty } } }).servers, { a: { command: 'x', env: { B: '' } } })
  const none = { command: '', args: null, env: null, cwd: null, oauth: null, headers: { A: null } }
  t.same(read({ mcpServers: { a: { url: 'http://x/mcp', ...none } } }).servers, {
    a: { url: 'http://x/mcp', headers: {} },
  })
  const file = join(temporaryFolder(t), 'mcp.json')
  writeFileSync(
    file,
    JSON.stringify({ mcpServers: { a: { command: 'x', ...empty }, b: { url: 'http://x/mcp', ...none } } }),
  )
  t.match(check(file), { code: 0, said: /is valid: 2 servers/ })
})

t.test('an entry in which everything is empty is no server', async (t) => {
  const file = join(temporaryFolder(t), 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { a: { command: '', url: null } } }))
  t.match(check(file), { code: 78, said: /mcpServers\.a has to have either "command" .* or "url"/ })
})

const OFF: object[] = [
  { isActive: false },
  { isActive: 'false' },
  { active: false },
  { enabled: false },
  { isEnabled: false },
  { disabled: true },
  { disabled: 'true' },
  { disabled: true, isActive: true },
]
const ON: object[] = [{ isActive: true }, { enabled: true }, { disabled: false }, { isActive: null }, {}]

t.test("does not start a server that is disabled in another program's file", async (t) => {
  const paths = ['/x/mcp.json', '/x/.cursor/mcp.json', '/x/mcp_config.json', '/x/claude_desktop_config.json']
  for (const path of paths) {
    for (const own of OFF)
      t.same(read({ mcpServers: { a: { command: 'x', ...own } } }, path).servers, {
        a: { command: 'x', disabled: true },
      })
    for (const own of ON) {
      const { disabled = false, command } = read({ mcpServers: { a: { command: 'x', ...own } } }, path).servers?.[
        'a'
      ] as { disabled?: boolean; command: string }
      t.same({ command, disabled }, { command: 'x', disabled: false }, JSON.stringify(own))
    }
  }
})

t.test('reports a duplicate name, with the place of the one that counts', async (t) => {
  const text = `{\n "mcpServers": {\n  "a": { "command": "x" },\n  "a": { "command": "y", "env": {}, "env": {} }\n }\n}`
  const file = read(text)
  t.match(file.servers, { a: { command: 'y' } })
  t.match(file.notes, [
    { path: 'mcpServers.a', message: /is the name of two servers: the last one counts/, line: 4, column: 3 },
    { path: 'mcpServers.a.env', message: /appears twice/, line: 4 },
  ])
  t.same(read('{"mcpServers":{"a":{"command":"x","env":{"B":"1"}}}}').notes, [])
})
