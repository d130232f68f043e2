/** Starts the bridge as an authorization server that stands before a provider where clients cannot register. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Entra } from '../support/entra.js'
import { freePort } from '../support/free-port.js'
import { startServing } from './bridge.js'
import { start } from './children.js'
import { servers } from './legs.js'

/** Resolves to what the suite is told: the issuer, the client, the server that tokens are for, and the port of its callback. */
export async function startFacade(folder: string): Promise<string[]> {
  const [callback, port] = [await freePort(), await freePort()]
  const provider = start(['--import', 'tsx', 'test/conformance/provider.program.ts', String(callback)], logOf(folder))
  const issuer = await firstLine(provider.lines)
  const origin = `http://127.0.0.1:${port}`
  const scopes = [`api://${Entra.id}/mcp`, 'offline_access']
  const facade = { clientId: Entra.id, clientSecret: Entra.secret, scopes }
  const config = {
    publicUrl: origin,
    mcpServers: { test: { command: process.execPath, args: ['--import', 'tsx', servers.legacy, 'stdio'] } },
    auth: { issuers: [{ issuer, audience: Entra.id, facade }] },
  }
  const file = join(folder, 'config.json')
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  const url = `${origin}/mcp`
  await startServing(url, ['dist/main.js', '--listen', url, '--log-format', 'json', '--config', file], [], folder)
  return ['--url', `${origin}/oauth`, '--client-id', Entra.id, '--resource', url, '--port', String(callback)]
}

function logOf(folder: string): string {
  return join(folder, 'provider.log')
}

async function firstLine(lines: AsyncIterable<string>): Promise<string> {
  for await (const line of lines) return line
  throw new Error('The provider has not started')
}
