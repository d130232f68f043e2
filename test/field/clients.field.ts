/** Published clients through the bridge: they get what a server offers, whichever era each speaks. Run by `npm run test:field`. */
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { type Command, legacyClient, startBridge } from './clients.js'
import { install, type Package, programOf, registryProblem } from './install.js'
import { offerOf } from './offer.js'
import { asModern, withoutDialects } from './same.js'
import { type FieldServer, servers } from './servers.js'

type Json = Record<string, unknown>

const run = promisify(execFile)
const problem = await registryProblem()

/** A server, and how the bridge is told to reach it. */
interface Behind {
  name: string
  server: FieldServer
  /** Flags of the bridge. */
  flags: readonly string[]
}

const named = (name: string) => servers.find((server) => server.name === name) as FieldServer
const BEHIND: readonly Behind[] = [
  { name: 'a legacy server', server: named('@modelcontextprotocol/server-everything'), flags: [] },
  // It speaks both eras: asked for the modern one, the bridge has to translate for clients of the other.
  { name: 'a modern server', server: named('@upstash/context7-mcp'), flags: ['--era', 'modern'] },
]

interface Started {
  command: Command
  url: string
  server: FieldServer
  /** What a client of the first SDK gets without the bridge, by what it asks for. */
  direct(asked: string): Json
}

async function start(t: Test, { server, flags }: Behind): Promise<Started> {
  const program = await programOf(await install(server))
  const command: Command = { command: execPath, args: [program, ...(server.args ?? [])], env: server.env ?? {} }
  const offer = new Map(withoutDialects(asModern(await offerOf(await legacyClient(t, command), server))))
  const direct = (asked: string) => {
    const answer = offer.get(asked)
    if (!answer) throw new Error(`Nobody has asked for ${asked}`)
    return answer as Json
  }
  return { command, url: await startBridge(t, command, flags), server, direct }
}

const toolsOf = ({ tools }: Json) => tools as { name: string; description?: string; inputSchema: Json }[]
const callOf = (name: string, args: Json) => `tools/call ${JSON.stringify({ name, arguments: args })}`

/** A module of an installed package. */
async function load<Module>(name: string, folder: string): Promise<Module> {
  const path = createRequire(join(folder, 'package.json')).resolve(name)
  return (await import(pathToFileURL(path).href)) as Module
}

const INSPECTOR: Package = { name: '@modelcontextprotocol/inspector', version: '2.12.0' }
const MCP_REMOTE: Package = { name: 'mcp-remote', version: '0.15.1' }
const AI_SDK: Package = { name: '@ai-sdk/mcp', version: '2.0.99', beside: ['zod@4.6.7'] }
const LANGCHAIN: Package = { name: '@langchain/mcp-adapters', version: '1.1.4' }

for (const behind of BEHIND) {
  for (const era of ['legacy', 'modern']) {
    t.test(`Inspector, speaking the ${era} era, with ${behind.name}`, { skip: problem ?? false }, async (t) => {
      const program = await programOf(await install(INSPECTOR))
      const { url, server, direct } = await start(t, behind)
      // It keeps its own files in the home folder.
      const env = { PATH: process.env['PATH'], HOME: t.testdir({}) }
      const inspect = async (...args: string[]): Promise<Json> => {
        const all = [program, '--cli', url, '--protocol-era', era, '--quiet', ...args]
        return JSON.parse((await run(execPath, all, { env, maxBuffer: 2 ** 24 })).stdout) as Json
      }
      t.strictSame(bare(await inspect('--method', 'tools/list')), bare(direct('tools/list {}')))
      const [first] = server.calls
      const [name, args] = first ?? ['', {}]
      const called = ['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)]
      const result = await inspect(...called).catch(({ stdout }: { stdout: string }) => JSON.parse(stdout) as Json)
      t.strictSame(bare(result), bare(direct(callOf(name, args))))
    })
  }

  t.test(`mcp-remote, with ${behind.name}`, { skip: problem ?? false }, async (t) => {
    const program = await programOf(await install(MCP_REMOTE), 'mcp-remote')
    const { url, server, direct } = await start(t, behind)
    const env = { MCP_REMOTE_CONFIG_DIR: t.testdir({}) }
    const client = await legacyClient(t, { command: execPath, args: [program, url], env })
    for (const [asked, answer] of withoutDialects(asModern(await offerOf(client, server)))) {
      if (asked === 'what it says of itself') continue
      t.strictSame(answer, direct(asked), asked)
    }
  })

  t.test(`the AI SDK, with ${behind.name}`, { skip: problem ?? false }, async (t) => {
    type Tool = { description?: string; execute(args: Json, options: Json): Promise<Json> }
    type Client = { tools(): Promise<Record<string, Tool>>; close(): Promise<void> }
    type AiSdk = { createMCPClient(config: Json): Promise<Client> }
    const { createMCPClient } = await load<AiSdk>(AI_SDK.name, await install(AI_SDK))
    const { url, server, direct } = await start(t, behind)
    const client = await createMCPClient({ transport: { type: 'http', url } })
    t.teardown(() => client.close())
    const tools = await client.tools()
    t.same(Object.keys(tools).sort(), names(direct))
    for (const [name, args] of server.calls) {
      const { content, error } = direct(callOf(name, args)) as { content?: unknown; error?: { message: string } }
      const used = tools[name]?.execute(args, { toolCallId: '1', messages: [] }) ?? Promise.reject(new Error('No tool'))
      const said = await used.then((result) => result['content']).catch((failed: Error) => failed.message)
      t.same(said, content ?? error?.message, `${name} ${JSON.stringify(args)}`)
    }
  })

  t.test(`langchain, with ${behind.name}`, { skip: problem ?? false }, async (t) => {
    type Tool = { name: string; description: string; invoke(args: Json): Promise<unknown> }
    type Client = { getTools(): Promise<Tool[]>; close(): Promise<void> }
    type Langchain = { MultiServerMCPClient: new (config: Json) => Client }
    const { MultiServerMCPClient } = await load<Langchain>(LANGCHAIN.name, await install(LANGCHAIN))
    const { url, server, direct } = await start(t, behind)
    const client = new MultiServerMCPClient({ mcpServers: { field: { transport: 'http', url } } })
    t.teardown(() => client.close())
    const tools = await client.getTools()
    t.same(tools.map(({ name }) => name).sort(), names(direct))
    const [name, args] = server.calls[0] ?? ['', {}]
    const { isError, content } = direct(callOf(name, args)) as { isError?: boolean; content: { text: string }[] }
    const said = await tools
      .find((tool) => tool.name === name)
      ?.invoke(args)
      .catch((error: Error) => error.message)
    if (isError) t.type(said, 'string', 'it fails')
    else t.equal(said, content[0]?.text)
  })
}

function names(direct: Started['direct']): string[] {
  return toolsOf(direct('tools/list {}'))
    .map(({ name }) => name)
    .sort()
}

/** An answer without what is told to the clients of one era only. */
function bare(answer: Json): Json {
  return withoutDialects(asModern([['', answer]]))[0]?.[1] as Json
}
