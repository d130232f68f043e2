/** Starts what a leg needs: the server, if it is reached over HTTP, and the bridge in front of it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../support/free-port.js'
import { type Child, start } from './children.js'
import { type ServerLeg, servers } from './legs.js'

const HOST = '127.0.0.1'
const MODERN = '2026-07-28'
/** Milliseconds until everything has to be up. */
const START = 30_000
const AGAIN = 100
const LOG_END = 1_000

/** Resolves to the address that the suite is given: that of the bridge, when it listens and has been warmed up. */
export async function startBridge(leg: ServerLeg, folder: string): Promise<string> {
  const upstream = await startServer(leg, folder)
  if (leg.transport === 'direct') return upstream
  const log = join(folder, 'bridge.log')
  const url = `http://${HOST}:${await freePort()}/mcp`
  const logging = ['--log-format', 'json', '--log-level', 'warn']
  // Tools of a legacy server that may be tasks are, for clients that know them: the suite has no other way to look at them.
  const tasks = ['--tasks', 'async']
  const bridge = start(['dist/main.js', '--listen', url, ...logging, ...tasks, '--upstream', upstream], log)
  const ready = async () => {
    await listening(url)
    await Promise.all(leg.warm.map((capabilities) => discover(url, capabilities)))
  }
  await Promise.race([ready(), failed(bridge, 'The bridge', log)])
  return url
}

/** What the bridge takes for `--upstream`. */
async function startServer({ server, transport }: ServerLeg, folder: string): Promise<string> {
  const script = servers[server]
  if (transport === 'stdio') return `stdio:node --import tsx ${script} stdio`
  const log = join(folder, 'server.log')
  const child = start(['--import', 'tsx', script, 'http'], log)
  return Promise.race([firstLine(child), failed(child, 'The server', log)])
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

/** Has the bridge reach for the server, and open a session for a client with these capabilities if it has sessions. */
async function discover(url: string, capabilities: object): Promise<void> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': 'server/discover',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: envelope } }),
    signal: AbortSignal.timeout(START),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`The bridge refuses server/discover: ${text}`)
}
