/** Starts what a leg needs: the servers that are reached over HTTP, and the bridge in front of all. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../support/free-port.js'
import { type Child, start } from './children.js'
import { type GroupLeg, MEMBERS, type ServerLeg, servers, type Transport } from './legs.js'
import { startRenaming } from './renaming.js'

const HOST = '127.0.0.1'
const MODERN = '2026-07-28'
/** How the suite names itself where it waits for 600 ms only. Sessions with programs belong to one name and version. */
const CLIENT = { name: 'conformance-client', version: '1.0.0' }
const UNAVAILABLE = 'io.github.mcp-bridge/unavailable'
/** A server of a group that does not answer. */
const DEAD = 'dead'
const NAMES = [...MEMBERS.map(({ name }) => name), DEAD]
const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']
/** Milliseconds until everything has to be up. */
const START = 30_000
const AGAIN = 100
const LOG_END = 1_000

/**
 * Resolves to the address that the suite is given: that of the bridge, when it listens and has been warmed up. With policies, the bridge
 * looks at every call, and changes none. A bridge within another program has none.
 */
export async function startBridge(leg: ServerLeg, folder: string, hasPolicies: boolean): Promise<string> {
  const settings = hasPolicies && { audit: { file: join(folder, 'audit.jsonl') } }
  const ofServer = { tasks: 'async', ...(hasPolicies && { tools: ['*'] }) }
  if (leg.server === 'group') return startGroup(leg, folder, settings, ofServer)
  const upstream = await startServer(leg, folder)
  if (leg.transport === 'direct') return upstream
  // Tools of a legacy server that may be tasks are, for clients that know them: the suite has no other way to look at them.
  if (leg.within) return startWithin(leg.within, upstream, leg, folder)
  if (!hasPolicies) return startBefore(['--tasks', 'async', '--upstream', upstream], leg, folder)
  const where =
    leg.transport === 'stdio'
      ? { command: 'node', args: argumentsOf(leg.server, leg.transport, []) }
      : { url: upstream }
  return startConfigured({ mcpServers: { test: { ...where, ...ofServer } }, ...settings }, leg, folder)
}

function startConfigured(config: object, leg: ServerLeg, folder: string): Promise<string> {
  const file = join(folder, 'config.json')
  writeFileSync(file, JSON.stringify(config))
  return startBefore(['--config', file], leg, folder)
}

/** Starts a program that has the bridge in it, and resolves to its address. */
async function startWithin(
  within: 'plugin' | 'fetch',
  upstream: string,
  leg: ServerLeg,
  folder: string,
): Promise<string> {
  const url = await addressOf()
  return startServing(url, ['--import', 'tsx', 'test/conformance/within.ts', within, url, upstream], leg.warm, folder)
}

async function startGroup(leg: GroupLeg, folder: string, settings: object | false, ofServer: object): Promise<string> {
  const servers = await Promise.all(
    MEMBERS.map(async ({ name, server, transport }, i): Promise<[string, object]> => {
      const part = ['--part', `${i}/${MEMBERS.length}`]
      const entry =
        transport === 'stdio'
          ? { command: 'node', args: argumentsOf(server, transport, part) }
          : { url: await startServer({ server, transport }, folder, part), ...(transport === 'sse' && { type: 'sse' }) }
      return [name, { ...entry, ...ofServer }]
    }),
  )
  const dead: [string, object] = [DEAD, { url: `http://${HOST}:${await freePort()}/mcp` }]
  const mcpServers = Object.fromEntries([...servers.slice(0, 2), dead, ...servers.slice(2)])
  const group = { path: '/mcp', prefix: leg.prefix, resources: leg.prefix === 'never' ? 'as-is' : 'prefix' }
  const url = await startConfigured({ mcpServers, groups: { all: group }, ...settings }, leg, folder)
  if (leg.prefix === 'never') return url
  const renamed = await startRenaming(url, NAMES)
  // It learns the names from lists, and the suite uses names that it has not listed.
  await Promise.all(LISTS.map((method) => request(renamed, method, {})))
  return renamed
}

/** Starts the bridge, and resolves to its address. */
async function startBefore(servers: readonly string[], leg: ServerLeg, folder: string): Promise<string> {
  const logging = ['--log-format', 'json', '--log-level', 'warn']
  const url = await addressOf()
  return startServing(url, ['dist/main.js', '--listen', url, ...logging, ...servers], leg.warm, folder)
}

async function addressOf(): Promise<string> {
  return `http://${HOST}:${await freePort()}/mcp`
}

/** Starts what serves at an address, and resolves to that address when it has been warmed up. */
export async function startServing(
  url: string,
  args: readonly string[],
  warm: readonly object[],
  folder: string,
): Promise<string> {
  const log = join(folder, 'bridge.log')
  const bridge = start(args, log)
  const ready = async () => {
    await listening(url)
    await Promise.all(warm.map((capabilities) => awake(url, capabilities)))
  }
  await Promise.race([ready(), failed(bridge, 'The bridge', log)])
  return url
}

interface Which {
  server: keyof typeof servers
  transport: Transport
}

/** What the bridge takes for `--upstream`. */
async function startServer(
  { server, transport }: Which,
  folder: string,
  more: readonly string[] = [],
): Promise<string> {
  const args = argumentsOf(server, transport === 'direct' ? 'http' : transport, more)
  if (transport === 'stdio') return `stdio:node ${args.join(' ')}`
  const log = join(folder, `${server}-${transport}.log`)
  const child = start(args, log)
  return Promise.race([firstLine(child), failed(child, 'The server', log)])
}

function argumentsOf(server: Which['server'], transport: Transport, more: readonly string[]): string[] {
  return ['--import', 'tsx', servers[server], transport, ...more]
}

async function firstLine({ lines }: Child): Promise<string> {
  for await (const line of lines) return line
  // It has ended without a word, and `failed` says so.
  return new Promise(() => {})
}

async function failed({ ended }: Child, what: string, log: string): Promise<never> {
  const code = await ended
  throw new Error(`${what} exited with code ${code}, after it wrote:\n${readFileSync(log, 'utf8').slice(-LOG_END)}`)
}

/** Waits until the bridge listens. */
async function listening(url: string): Promise<void> {
  const deadline = Date.now() + START
  for (;;) {
    try {
      // It refuses this, whatever it is configured for.
      const response = await fetch(url)
      await response.body?.cancel()
      return
    } catch (cause) {
      if (Date.now() > deadline) throw new Error('The bridge does not listen', { cause })
      await sleep(AGAIN)
    }
  }
}

/** Has the bridge reach for all servers that there are, and open sessions for a client with these capabilities. */
async function awake(url: string, capabilities: object): Promise<void> {
  const deadline = Date.now() + START
  await request(url, 'server/discover', capabilities)
  for (;;) {
    const { _meta } = await request(url, 'tools/list', capabilities)
    const missing = (_meta?.[UNAVAILABLE] ?? []).filter(({ server }) => server !== DEAD)
    if (missing.length === 0) return
    if (Date.now() > deadline) throw new Error(`These do not answer: ${JSON.stringify(missing)}`)
    await sleep(AGAIN)
  }
}

interface Result {
  _meta?: { [UNAVAILABLE]?: { server: string }[] }
}

async function request(url: string, method: string, capabilities: object): Promise<Result> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': CLIENT,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { _meta: envelope } }),
    signal: AbortSignal.timeout(START),
  })
  const text = await response.text()
  const json = text
    .split('\n')
    .map((line) => line.replace(/^data: /, ''))
    .filter((line) => line.startsWith('{'))
    .at(-1)
  if (!response.ok || json === undefined) throw new Error(`The bridge refuses ${method}: ${text}`)
  return (JSON.parse(json) as { result?: Result }).result ?? {}
}
