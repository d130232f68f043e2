/** `wrap` and `unwrap` with files as the programs write them: what becomes of each entry, and that all comes back. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseCommand } from '../../src/command/parse.js'
import { CLIENTS, layoutOf } from '../../src/command/wrap/clients.js'
import { entriesIn, unwrapped, wrapped } from '../../src/command/wrap/plan.js'
import { isAsJoined, joined, parted } from '../../src/command/wrap/together.js'
import { readJson } from '../../src/config/formats/document.js'

const LAUNCHER = { command: '/usr/bin/node', args: ['/opt/main.js'] }
const machine = { platform: 'linux', home: '/home/me', cwd: '/project', env: {} }
const URL = 'https://x.example/mcp'
const EVERYTHING = ['npx', '-y', '@modelcontextprotocol/server-everything', 'stdio']

const atProgram = (...program: string[]) => [
  '/opt/main.js',
  '--listen',
  'stdio',
  '--pass-environment',
  '--',
  ...program,
]
const atAddress = (...flags: string[]) => [
  ...['/opt/main.js', '--listen', 'stdio', '--upstream', 'env:MCP_BRIDGE_URL'],
  ...flags,
]
const HEADER = '--header-env=X-A=MCP_BRIDGE_HEADER_X_A'
const { command } = LAUNCHER
const list = (words: string[]) => [command, ...words]

interface Case {
  file: string
  /** The entries after wrapping, as they are in the file; a reason for those that stay. */
  after: Record<string, object | RegExp>
  /** Names of those that --together moves. */
  together: string[]
}

const CASES: Record<string, Case> = {
  opencode: {
    file: 'opencode.jsonc',
    after: {
      files: { type: 'local', command: list(atProgram(...EVERYTHING)), environment: { A: '1' } },
      remote: {
        type: 'local',
        command: list(atAddress(HEADER)),
        environment: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '{env:TOKEN}' },
      },
      quiet: {
        type: 'local',
        command: list(atAddress('--no-oauth')),
        environment: { MCP_BRIDGE_URL: URL },
        enabled: true,
      },
      proxied: {
        type: 'local',
        command: list(atAddress(HEADER)),
        environment: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' },
        enabled: false,
      },
      signed: /signs in to this server by itself \("oauth"\)/,
    },
    together: ['files', 'quiet'],
  },
  zed: {
    file: 'zed.json',
    after: {
      old: { source: 'custom', command: { path: command, args: atProgram(...EVERYTHING), env: { A: '1' } } },
      older: { command: { path: command, args: atProgram('some-server'), env: null }, settings: {} },
      'old-proxied': {
        command: {
          path: command,
          args: atAddress(HEADER),
          env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' },
        },
      },
      now: { enabled: true, command, args: atProgram(...EVERYTHING), env: {} },
      remote: { command, args: atAddress(HEADER), env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' } },
      'mcp-server-context7': /neither a command nor an address/,
    },
    together: ['old', 'older', 'old-proxied', 'now', 'remote'],
  },
  gemini: {
    file: 'gemini.json',
    after: {
      files: { command, args: atProgram(...EVERYTHING), env: { A: '1' } },
      remote: {
        command,
        args: atAddress(HEADER),
        type: 'stdio',
        env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' },
        trust: true,
        includeTools: ['echo'],
      },
      old: { command, args: atAddress(), env: { MCP_BRIDGE_URL: 'sse+https://x.example/sse' }, type: 'stdio' },
      older: {
        command,
        args: atAddress('--header-env=Authorization=MCP_BRIDGE_HEADER_AUTHORIZATION'),
        env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_AUTHORIZATION: 'Bearer $TOKEN' },
        timeout: 5000,
      },
      google: /signs in to this server by itself/,
    },
    together: ['files', 'remote', 'old'],
  },
  windsurf: {
    file: 'windsurf.json',
    after: {
      files: { command, args: atProgram(...EVERYTHING), env: { A: '${env:A}' }, disabledTools: ['add'] },
      remote: {
        command,
        args: atAddress(HEADER),
        env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '${env:TOKEN}' },
        disabled: false,
      },
      proxied: { command, args: atAddress(HEADER), env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' } },
    },
    together: ['proxied'],
  },
  codex: {
    file: 'codex.toml',
    after: {
      files: {
        command,
        args: atProgram(...EVERYTHING),
        env: { A: '1' },
        tools: { echo: { approval_mode: 'approve' } },
      },
      remote: {
        command,
        args: atAddress(HEADER, '--header=Authorization: Bearer ${TOKEN}'),
        env_vars: ['TOKEN'],
        startup_timeout_sec: 20,
        env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' },
      },
      'with dots.and spaces': {
        command,
        args: atAddress(HEADER, '--header-env=X-B=B_TOKEN'),
        env_vars: ['B_TOKEN'],
        env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' },
        enabled: true,
      },
      proxied: {
        command,
        args: atAddress(HEADER),
        env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' },
        env_vars: ['PATH'],
      },
      signed: /signs in to this server by itself \("oauth_resource"\)/,
      inline: { command, args: atProgram('some-server'), env: { A: '1' } },
      dotted: { command, args: atAddress(HEADER), env: { MCP_BRIDGE_URL: URL, MCP_BRIDGE_HEADER_X_A: '1' } },
    },
    together: ['files', 'inline', 'dotted'],
  },
}

for (const [id, { file, after, together }] of Object.entries(CASES)) {
  const client = CLIENTS.find((one) => one.id === id) as (typeof CLIENTS)[number]
  const layout = layoutOf(client, machine)
  const text = readFileSync(new globalThis.URL(`../fixtures/wrap/${file}`, import.meta.url), 'utf8')
  const entries = entriesIn(text, layout)

  t.test(`wraps a file of ${client.program}, and unwraps it byte for byte`, async (t) => {
    const plan = wrapped(text, layout, entries, LAUNCHER)
    const now = entriesIn(plan.text, layout)
    for (const { name, own, entry } of now) {
      const expected = after[name] as object | RegExp
      if (expected instanceof RegExp) t.match(plan.left.find((one) => one.name === name)?.why, expected, name)
      else {
        t.same(own, expected, name)
        const { args, env } = entry as { args: string[]; env?: Record<string, string> }
        t.equal(
          parseCommand(args.slice(1), { PATH: process.env['PATH'], TOKEN: 't', B_TOKEN: 'b', ...env }).kind,
          'run',
          'as the bridge takes it',
        )
      }
    }
    t.same(
      Object.keys(after),
      now.map(({ name }) => name),
      'all are there',
    )
    t.equal(wrapped(plan.text, layout, now, LAUNCHER).text, plan.text, 'wrapping twice changes nothing')
    t.equal(unwrapped(plan.text, layout, now, text).text, text, 'byte for byte')
    const [first] = entries
    const one = wrapped(text, layout, first ? [first] : [], LAUNCHER).text
    t.equal(unwrapped(one, layout, entriesIn(one, layout).slice(0, 1), text).text, text, 'one of them')
    const alone = entriesIn(unwrapped(plan.text, layout, now, undefined).text, layout)[0]
    t.same(alone?.own, first?.own, 'a program without a backup')
  })

  t.test(`wraps the servers of a file of ${client.program} together, and unwraps them`, async (t) => {
    const joining = { layout, launcher: LAUNCHER, configPath: '/c.mcp-bridge.json', config: undefined }
    const plan = joined(text, joining)
    t.same(
      plan.changed.map(({ name }) => name),
      together,
    )
    t.same(Object.keys((readJson(plan.config).value as { mcpServers: object }).mcpServers), together)
    const [all] = entriesIn(plan.text, layout).filter(({ name }) => name === 'all')
    t.match(all?.entry, { command, args: ['/opt/main.js', '--listen', 'stdio', '--config', '/c.mcp-bridge.json'] })
    t.ok(isAsJoined(plan.text, plan.config, text, joining))
    const back = all && parted(plan.text, layout, all, { config: plan.config, backup: text })
    t.same(entriesIn(back ?? '', layout).toSorted(byName), entries.toSorted(byName))
  })
}

function byName({ name: a }: { name: string }, { name: b }: { name: string }): number {
  return a < b ? -1 : 1
}
