/**
 * Ten published servers at one address, and seven kinds of clients that come and go, one after the other and at once: whole lists, and few
 * programs. Prints what it measured. Run by `npm run test:field`.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { arch, env, execPath } from 'node:process'
import { promisify } from 'node:util'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import t, { type Test } from 'tap'
import { childrenOf, programsOf } from '../support/built-bridge.js'
import { browserProgram } from '../support/chromium.js'
import { type Program, says, startProgram } from '../support/cli.js'
import { temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { install, type Package, programOf, registryProblem } from './install.js'

type Json = Record<string, unknown>

const run = promisify(execFile)
const problem = await registryProblem()

interface Listed extends Package {
  args?: (folder: string) => readonly (string | number)[]
  env?: Record<string, string>
  /** The name of its program, if it has several. */
  program?: string
}

/** They answer lists without a network, an account or a browser. */
const SERVERS: Readonly<Record<string, Listed>> = {
  files: { name: '@modelcontextprotocol/server-filesystem', version: '2026.8.31', args: (folder) => [folder] },
  memory: { name: '@modelcontextprotocol/server-memory', version: '2026.8.31' },
  thinking: { name: '@modelcontextprotocol/server-sequential-thinking', version: '2026.8.31' },
  everything: { name: '@modelcontextprotocol/server-everything', version: '2026.8.31' },
  browser: {
    name: '@playwright/mcp',
    version: '0.0.83',
    args: (folder) => ['--headless', '--executable-path', browserProgram, '--output-dir', folder],
  },
  notion: { name: '@notionhq/notion-mcp-server', version: '2.5.2', env: { NOTION_TOKEN: 'ntn_nobody' } },
  kubernetes: {
    name: 'kubernetes-mcp-server',
    version: '0.0.67',
    args: (folder) => ['--kubeconfig', kubeconfig(folder)],
  },
  microsoft: { name: '@softeria/ms-365-mcp-server', version: '0.155.0' },
  drawio: { name: 'drawio-mcp-server', version: '2.3.0' },
  devtools: { name: 'chrome-devtools-mcp', version: '1.11.0', args: () => ['--executablePath', browserProgram] },
}

/** A tool that needs nothing, which each client calls. */
const CALL = { name: 'memory__read_graph', arguments: {} }
/** Milliseconds for which programs stay after the last client has gone. */
const TIMES = { clientGone: 20_000, clientIdle: 40_000 }
/** How often the machine is looked at, in milliseconds. */
const LOOK_EVERY = 250
/** Many programs that start at once take their time. */
const PATIENT = { timeout: 300_000 }

/** A cluster that nobody is at. */
function kubeconfig(folder: string): string {
  const file = join(folder, 'kubeconfig')
  const cluster = { server: 'https://127.0.0.1:1' }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'none', cluster }],
    users: [{ name: 'none', user: {} }],
    contexts: [{ name: 'none', context: { cluster: 'none', user: 'none' } }],
    'current-context': 'none',
  }
  writeFileSync(file, JSON.stringify(config))
  return file
}

/** What one client did. */
interface Visit {
  client: string
  /** Undefined for a client that lists them and does not show how many there are. */
  tools: number | undefined
  /** Milliseconds from its start until it had the list, and of the list at the bridge. */
  ms: number
}

/** A server as it is started. */
interface Started {
  command: string
  args: readonly string[]
  cwd: string
  env: Record<string, string>
}

type Kind = (url: string, folder: string) => Promise<number | undefined>

const INSPECTOR: Package = { name: '@modelcontextprotocol/inspector', version: '2.12.0' }
const MCPORTER: Package = { name: 'mcporter', version: '0.12.3' }
const MCP_REMOTE: Package = { name: 'mcp-remote', version: '0.15.1' }
/** `opencode-ai` takes the program for this machine out of a package like this one, by a script. */
const OPENCODE: Package = { name: `opencode-linux-${arch}`, version: '1.18.33' }

const clean = (folder: string) => ({ PATH: env['PATH'], HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder })

async function sdk1(name: string, transport: Transport): Promise<number> {
  const client = new Client({ name, version: '1' })
  await client.connect(transport)
  const { tools } = await client.listTools(undefined, PATIENT)
  await client.callTool(CALL, undefined, PATIENT)
  if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession()
  await client.close()
  return tools.length
}

/** Kinds of clients. Each lists the tools once, and resolves to their number. */
const CLIENTS: Readonly<Record<string, Kind>> = {
  'SDK 1': (url) => sdk1('sdk-1', new StreamableHTTPClientTransport(new URL(url)) as Transport),
  'SDK 2': async (url) => {
    const client = new ModernClient(
      { name: 'sdk-2', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    await client.connect(new ModernHttp(new URL(url)))
    const { tools } = await client.listTools(undefined, PATIENT)
    await client.callTool(CALL, PATIENT)
    await client.close()
    return tools.length
  },
  'Inspector CLI': async (url, folder) => {
    const program = await programOf(await install(INSPECTOR))
    const args = [program, '--cli', url, '--quiet', '--method', 'tools/list']
    const { stdout } = await run(execPath, args, { env: clean(folder), maxBuffer: 2 ** 26 })
    return (JSON.parse(stdout) as { tools: unknown[] }).tools.length
  },
  mcporter: async (url, folder) => {
    const program = await programOf(await install(MCPORTER))
    // It ends before a pipe has taken all that it writes.
    const file = join(folder, 'listed')
    const command = [execPath, program, 'list', url, '--json', '--allow-http'].map((word) => `'${word}'`).join(' ')
    await run('/bin/sh', ['-c', `${command} > '${file}'`], { env: clean(folder) })
    return (JSON.parse(readFileSync(file, 'utf8')) as { tools: unknown[] }).tools.length
  },
  'mcp-remote': async (url, folder) => {
    const program = await programOf(await install(MCP_REMOTE), 'mcp-remote')
    const transport = {
      command: execPath,
      args: [program, url],
      env: { ...clean(folder), MCP_REMOTE_CONFIG_DIR: folder } as never,
    }
    return sdk1('behind-mcp-remote', new StdioClientTransport({ ...transport, stderr: 'ignore' }))
  },
  opencode: async (url, folder) => {
    const program = join(await install(OPENCODE), 'bin/opencode')
    mkdirSync(join(folder, 'opencode'))
    writeFileSync(
      join(folder, 'opencode/opencode.json'),
      JSON.stringify({ mcp: { all: { type: 'remote', url, timeout: PATIENT.timeout } } }),
    )
    // It says that a server is connected when it has listed its tools.
    const { stdout } = await run(program, ['mcp', 'list'], { cwd: folder, env: clean(folder) })
    if (!/all.*connected/s.test(stdout)) throw new Error(stdout)
    return undefined
  },
  curl: async (url) => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } })
    const headers = [
      'content-type: application/json',
      'accept: application/json, text/event-stream',
      'mcp-protocol-version: 2026-07-28',
      'mcp-method: tools/list',
    ]
    const { stdout } = await run('curl', ['-sS', url, ...headers.flatMap((header) => ['-H', header]), '-d', body], {
      maxBuffer: 2 ** 26,
    })
    const text = stdout.startsWith('{') ? stdout : String(/^data: (\{.*"result".*)$/m.exec(stdout)?.[1])
    return (JSON.parse(text) as { result: { tools: unknown[] } }).result.tools.length
  },
}

/** What runs below a process, without the shell that watches over it, with the memory of all. */
function below(pid: number): { programs: number; processes: number; memory: number } {
  const all: number[] = []
  const add = (parent: number) => {
    for (const child of childrenOf(parent)) {
      all.push(child)
      add(child)
    }
  }
  add(pid)
  const memory = [pid, ...all].reduce((sum, one) => sum + memoryOf(one), 0)
  return { programs: programsOf(pid).length, processes: 1 + all.length, memory }
}

/** Memory that only this process has, and its part of what it shares with others, in bytes. */
function memoryOf(pid: number): number {
  try {
    return 1_024 * Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1])
  } catch {
    return 0
  }
}

/** Looks at the machine again and again, and keeps the most. */
function watch(pid: number) {
  const most = { programs: 0, processes: 0, memory: 0 }
  const look = () => {
    const now = below(pid)
    for (const what of ['programs', 'processes', 'memory'] as const) most[what] = Math.max(most[what], now[what])
  }
  const timer = setInterval(look, LOOK_EVERY)
  return () => {
    look()
    clearInterval(timer)
    return { ...most, memory: `${Math.round(most.memory / 2 ** 20)} MiB` }
  }
}

/** Lists that the bridge has answered: how long each took, in milliseconds. */
function listTimes(bridge: Program): number[] {
  return bridge
    .stderr()
    .split('\n')
    .filter((line) => line.includes('"tools/list"') && line.includes('"event":"call"'))
    .map((line) => JSON.parse(line) as Json)
    .filter(({ server }) => server === undefined || server === 'all')
    .map(({ ms }) => Number(ms))
}

/** Milliseconds until the last of the servers has listed its tools, if all are started at once without a bridge. */
async function withoutBridge(servers: readonly Started[]): Promise<number> {
  const before = performance.now()
  const clients = servers.map(async ({ command, args, cwd, env: own }) => {
    const given = { ...clean(cwd), ...own } as Record<string, string>
    const transport = new StdioClientTransport({ command, args: [...args], cwd, env: given, stderr: 'ignore' })
    const client = new Client({ name: 'by-hand', version: '1' })
    await client.connect(transport, PATIENT)
    await client.listTools(undefined, PATIENT)
    return client
  })
  const open = await Promise.all(clients)
  const took = performance.now() - before
  await Promise.all(open.map((client) => client.close()))
  return Math.round(took)
}

interface Visited {
  url: string
  bridge: Program
  pid: number
  folder: string
  servers: readonly Started[]
}

async function start(t: Test): Promise<Visited> {
  const folder = temporaryFolder(t)
  const entries = Object.entries(SERVERS).map(async ([name, server]): Promise<[string, Started]> => {
    const own = join(folder, name)
    mkdirSync(own)
    const program = await programOf(await install(server), server.program)
    const args = [program, ...(server.args?.(own) ?? []).map(String)]
    return [name, { command: execPath, args, cwd: own, env: { HOME: own, ...server.env } }]
  })
  const port = await freePort()
  const mcpServers = Object.fromEntries(await Promise.all(entries))
  const settings = {
    mcpServers,
    listen: `http://127.0.0.1:${port}/mcp`,
    timeouts: TIMES,
  }
  const file = join(folder, 'mcp.json')
  writeFileSync(file, JSON.stringify(settings))
  const bridge = startProgram(t, ['--config', file, '--log-format', 'json'])
  await says(bridge, /"url":"http[^"]+\/mcp"/)
  const servers = Object.values(mcpServers)
  return { url: `http://127.0.0.1:${port}/mcp`, bridge, pid: bridge.child.pid ?? 0, folder, servers }
}

t.test('ten servers at one address', { skip: problem ?? false, timeout: 1_200_000 }, async (t) => {
  const { url, bridge, pid, folder, servers } = await start(t)
  const begun = performance.now()
  const visit = async ([client, come]: [string, Kind], n: number): Promise<Visit> => {
    const own = join(folder, `client ${n}`)
    mkdirSync(own, { recursive: true })
    const before = performance.now()
    const tools = await come(url, own).catch((error: Error) => {
      t.fail(client, { error: error.message.slice(0, 1_000) })
      return 0
    })
    return { client, tools, ms: Math.round(performance.now() - before) }
  }
  const figures: Json = {}
  const kinds = Object.entries(CLIENTS)
  const inTurn: Visit[] = []
  let stop = watch(pid)
  for (const [n, kind] of kinds.entries()) inTurn.push(await visit(kind, n))
  figures['in turn'] = { visits: inTurn, most: stop(), lists: listTimes(bridge) }
  stop = watch(pid)
  const atOnce = await Promise.all(kinds.map((kind, n) => visit(kind, kinds.length + n)))
  figures['at once'] = { visits: atOnce, most: stop(), lists: listTimes(bridge).slice(kinds.length) }
  const left = performance.now()
  const deadline = left + 4 * (TIMES.clientGone + TIMES.clientIdle)
  while (programsOf(pid).length > 0 && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 500))
  figures['after the last client'] = {
    programs: programsOf(pid).length,
    seconds: Math.round((performance.now() - left) / 1_000),
    memory: `${Math.round(below(pid).memory / 2 ** 20)} MiB`,
  }
  figures['seconds in all'] = Math.round((performance.now() - begun) / 1_000)
  figures['ms of the slowest server when all start without a bridge'] = await withoutBridge(servers)
  t.comment(JSON.stringify(figures, undefined, 1))
  const [first] = inTurn
  t.ok((first?.tools ?? 0) > 100)
  // One of the servers has another tool for clients with roots.
  for (const { client, tools } of [...inTurn, ...atOnce])
    if (tools !== undefined)
      t.ok(tools - (first?.tools ?? 0) === 0 || tools - (first?.tools ?? 0) === 1, `the list of ${client}`)
  t.equal(programsOf(pid).length, 0, 'nothing runs when all have gone')
})
