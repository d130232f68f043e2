/**
 * A client as the suite starts it, with the address of a server as its argument: one of the legacy era, that speaks to
 * the bridge over stdio. What it has to do is known by the name of the scenario.
 */
import process from 'node:process'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'

/** A call of a tool, as the suite asks for it. */
interface ToolCall {
  name: string
  arguments?: Record<string, unknown>
}

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

const [url = ''] = process.argv.slice(2)
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
const run = scenarios[scenario]
if (!run) throw new Error(`This client does not know the scenario "${scenario}"`)
const client = connectable()
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: ['dist/main.js', '--listen', 'stdio', '--log-format', 'json', '--log-level', 'warn', '--upstream', url],
    stderr: 'inherit',
  }),
)
try {
  await run(client)
} finally {
  await client.close()
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
function contextOf(): { toolCalls?: ToolCall[] } {
  return JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as { toolCalls?: ToolCall[] }
}
