import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js'
import type { Test } from 'tap'
import { z } from 'zod'
import { bridgeCommand, environmentFlags, says, startProgram } from '../support/cli.js'
import type { Asker } from './offer.js'

type Json = Record<string, unknown>

/** How a program is started. */
export interface Command {
  command: string
  args: string[]
  env: Record<string, string>
}

/** The bridge in front of a program, as people put it in the place of that program. */
export function bridged({ command, args, env }: Command): Command {
  return { ...bridgeCommand('--listen', 'stdio', ...environmentFlags(env), '--', command, ...args), env: {} }
}

/** Starts the bridge in front of a program, with more flags, and resolves to its address. It ends with the test. */
export async function startBridge(
  t: Test,
  { command, args, env }: Command,
  flags: readonly string[] = [],
): Promise<string> {
  const listen = ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', ...flags]
  const program = startProgram(t, [...listen, ...environmentFlags(env), '--', command, ...args])
  const [, url = ''] = await says(program, /"url":"(http[^"]+\/mcp)"/)
  return url
}

/** A client of the first SDK, with a program or at an address. */
export async function legacyClient(t: Test, target: Command | string): Promise<Asker> {
  const transport =
    typeof target === 'string'
      ? new StreamableHTTPClientTransport(new URL(target))
      : new StdioClientTransport({ ...target, env: withPath(target.env), stderr: 'ignore' })
  const client = new Client({ name: 'field', version: '1' })
  t.teardown(() => client.close())
  const opening = firstResult(transport as Transport)
  await client.connect(transport as Transport)
  const ask: Asker['ask'] = (method, params) =>
    client.request({ method, params } as never, ResultSchema).catch((error: Error) => {
      // This SDK puts the code in front of what the server has said.
      error.message = error.message.replace(/^MCP error -?\d+: /, '')
      throw error
    })
  return { opened: opening(), ask }
}

/** A client of the second SDK that speaks 2026-07-28 and nothing else. */
export async function modernClient(t: Test, target: Command | string): Promise<Asker> {
  const transport =
    typeof target === 'string'
      ? new ModernHttp(new URL(target))
      : new ModernStdio({ ...target, env: withPath(target.env), stderr: 'ignore' })
  const client = new ModernClient(
    { name: 'field', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  t.teardown(() => client.close())
  await client.connect(transport)
  const opened = {
    capabilities: client.getServerCapabilities(),
    serverInfo: client.getServerVersion(),
    instructions: client.getInstructions(),
  }
  return {
    opened: JSON.parse(JSON.stringify(opened)) as Json,
    ask: (method, params) => client.request({ method, params }, z.looseObject({})) as Promise<Json>,
  }
}

/** Programs find others by the path, and nothing else of this environment is for them. */
function withPath(env: Record<string, string>): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/', ...env }
}

/** Keeps the first result that a transport reads, which is the answer to `initialize`, as it came. */
function firstResult(transport: Transport): () => Json {
  let first: Json | undefined
  let read: Transport['onmessage']
  const both: Transport['onmessage'] = (message, extra) => {
    if (!first && 'result' in message) first = message.result as Json
    read?.(message, extra)
  }
  Object.defineProperty(transport, 'onmessage', {
    get: () => read && both,
    set: (given: Transport['onmessage']) => {
      read = given
    },
  })
  return () => first ?? {}
}
