/**
 * A client as the suite starts it, with the front of the bridge (`stdio` or `http`) and the address of a server as its
 * arguments: one of the legacy era, that speaks to the bridge. What it has to do is known by the name of the scenario.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { freePort } from '../support/free-port.js'

/** A call of a tool, as the suite asks for it. */
interface ToolCall {
  name: string
  arguments?: Record<string, unknown>
}

/** What the suite has to say of a scenario. */
interface Context {
  toolCalls?: ToolCall[]
  client_id?: string
  client_secret?: string
  private_key_pem?: string
  signing_algorithm?: string
  valid_jwt?: string
  idp_client_id?: string
  idp_id_token?: string
  idp_issuer?: string
}

/** The client metadata document that the suite knows. */
const METADATA = 'https://conformance-test.local/client-metadata.json'
/** Milliseconds that a request waits for the person, who is a script. */
const WAIT = 10_000
const CAPABILITIES = { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} }

const scenarios: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  initialize: (client) => client.listTools(),
  tools_call: (client) => callAll(client, [{ name: 'add_numbers', arguments: { a: 5, b: 3 } }]),
  // What is to be seen there is on the request by which the bridge finds out what there is.
  'request-metadata': (client) => client.ping(),
  'http-standard-headers': useAll,
  'http-custom-headers': (client) => callAll(client, contextOf().toolCalls ?? []),
  'http-invalid-tool-headers': useAll,
  'json-schema-ref-no-deref': (client) => client.listTools(),
  'json-schema-2020-12-preservation': async (client) => {
    const { tools } = await client.listTools()
    const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema
    await client.callTool({ name: 'json_schema_echo', arguments: { schema } })
  },
  'sep-2322-client-request-state': useAll,
  'elicitation-sep1034-client-defaults': useAll,
  'sse-retry': useAll,
}

const [front = 'stdio', url = ''] = process.argv.slice(2)
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
const run = scenario.startsWith('auth/') ? signIn : scenarios[scenario]
if (!run) throw new Error(`This client does not know the scenario "${scenario}"`)
const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-conformance-'))
const config = join(folder, 'config.json')
writeFileSync(config, JSON.stringify({ mcpServers: { suite: { url, oauth: { wait: WAIT, ...oauthOf(scenario) } } } }))
const browser = `${process.execPath} test/fixtures/willing-browser.mjs`
const args = ['--config', config, '--token-store', join(folder, 'tokens'), '--browser', browser]
const bridge = ['dist/main.js', '--log-format', 'json', '--log-level', 'warn', ...args]
const client = connectable()
const { transport, end } = front === 'http' ? await overHttp() : overStdio()
try {
  await client.connect(transport)
  await run(client)
} finally {
  await client.close()
  end()
  rmSync(folder, { recursive: true, force: true })
}

function overStdio() {
  const args = [...bridge, '--listen', 'stdio']
  return { transport: new StdioClientTransport({ command: process.execPath, args, stderr: 'inherit' }), end: () => {} }
}

async function overHttp() {
  const port = await freePort()
  const address = `http://127.0.0.1:${port}/mcp`
  const child = spawn(process.execPath, [...bridge, '--listen', address], { stdio: ['ignore', 'inherit', 'inherit'] })
  for (let tries = 0; tries < 100; tries++) {
    // It refuses this, whatever it is configured for.
    const answered = await fetch(address).then(
      (response) => response.body?.cancel().then(() => true),
      () => false,
    )
    if (answered) break
    await sleep(100)
  }
  return { transport: new StreamableHTTPClientTransport(new URL(address)) as Transport, end: () => child.kill() }
}

/** What a server that wants sign-in is asked for. What fails is for the suite to judge. */
async function signIn(client: Client): Promise<void> {
  const { tools } = await client.listTools()
  for (const { name } of tools) await client.callTool({ name, arguments: {} })
}

/** What the configuration says of signing in, for what a scenario cannot be done without. */
function oauthOf(scenario: string): object {
  const context = contextOf()
  const { client_id: clientId, client_secret: clientSecret, private_key_pem: pem, signing_algorithm: alg } = context
  if (scenario === 'auth/basic-cimd') return { clientMetadataUrl: METADATA }
  if (scenario === 'auth/pre-registration') return { clientId, clientSecret }
  if (scenario === 'auth/client-credentials-basic') return { grant: 'client_credentials', clientId, clientSecret }
  if (scenario === 'auth/client-credentials-jwt')
    return { grant: 'client_credentials', clientId, key: { file: fileWith(pem), alg } }
  if (scenario === 'auth/wif-jwt-bearer')
    return { grant: 'jwt-bearer', clientId, assertionFile: fileWith(context.valid_jwt) }
  if (scenario !== 'auth/enterprise-managed-authorization') return {}
  const { idp_issuer: issuer, idp_client_id: idpClient, idp_id_token: idToken } = context
  const idp = { issuer, clientId: idpClient, subjectTokenFile: fileWith(idToken) }
  return { grant: 'id-jag', clientId, clientSecret, idp }
}

/** A file of the scenario with a secret. */
function fileWith(secret = ''): string {
  const file = join(folder, 'secret')
  writeFileSync(file, secret, { mode: 0o600 })
  return file
}

/** A client that answers what it is asked: yes, and with the defaults where there are any. */
function connectable(): Client {
  const client = new Client({ name: 'conformance', version: '1.0.0' }, { capabilities: CAPABILITIES })
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    const confirms = 'requestedSchema' in params && 'confirmed' in params.requestedSchema.properties
    return { action: 'accept', content: confirms ? { confirmed: true } : {} }
  })
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Nothing comes to mind.' },
  }))
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [] }))
  return client
}

/** Lists what the server offers, and makes use of all of it. */
async function useAll(client: Client): Promise<void> {
  const offered = client.getServerCapabilities() ?? {}
  if (offered.tools) {
    const { tools } = await client.listTools()
    await callAll(
      client,
      tools.map(({ name, inputSchema }) => ({ name, arguments: wordsFor(inputSchema.required) })),
    )
  }
  if (offered.resources) {
    const { resources } = await client.listResources()
    await Promise.all(resources.map(({ uri }) => client.readResource({ uri })))
  }
  if (offered.prompts) {
    const { prompts } = await client.listPrompts()
    await Promise.all(prompts.map(({ name }) => client.getPrompt({ name })))
  }
}

/** All at once, so that none may be taken for another. That one fails does not keep the others from being made. */
async function callAll(client: Client, calls: readonly ToolCall[]): Promise<void> {
  await client.listTools()
  const answers = await Promise.allSettled(calls.map((call) => client.callTool({ ...call })))
  const failed = answers.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}

function wordsFor(required: readonly string[] = []): Record<string, unknown> {
  return Object.fromEntries(required.map((name) => [name, 'any']))
}

/** What the suite has to say of the scenario. */
function contextOf(): Context {
  return JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Context
}
