/**
 * What hosts send first, as their sources, logs and issues show it: most ask for `server/discover` before anything else. Each
 * is played over stdio and over HTTP, and goes on as its own source does.
 */

type Json = Record<string, unknown>

const MODERN = '2026-07-28'
const META = 'io.modelcontextprotocol/'

/** A host, and how it differs from the others. */
export interface Host {
  name: string
  clientInfo: Json
  capabilities: Json
  /** The ids of its first requests, in order. Later ones continue in the same way. */
  ids: (nth: number) => string | number
  /** It opens a session at once, and asks for this revision. */
  opens?: string
  /** What it says about its request for the list of tools. */
  listing?: Json
  /** Notifications between the probe and what follows. */
  between?: readonly Json[]
  /**
   * What it does when the probe was answered: `modern`: it stays modern. `initialize`: it opens a session all the same, as
   * Claude Code 2.1.280 over stdio, and as a tunnel does whose host is legacy. `twice`: two sessions on one pipe, as a tunnel
   * opens for each of its connections.
   */
  next: 'modern' | 'initialize' | 'twice'
  /** It listens for changes before it asks for anything. */
  listens?: boolean
}

const numbers = (first: number) => (nth: number) => first + nth
const probeThen = (id: string) => (nth: number) => (nth === 0 ? id : nth - 1)
const APPS = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
/** A capture of ChatGPT, which asks for the same on a tunnel. */
const CHATGPT = {
  clientInfo: { name: 'openai-mcp', version: '1.0.0' },
  capabilities: { experimental: { 'openai/visibility': { enabled: true } }, extensions: APPS },
  ids: probeThen('openai-mcp-discover'),
}

export const HOSTS: readonly Host[] = [
  {
    name: 'Claude Code over HTTP',
    // zoedsoupe/anubis-mcp#295
    clientInfo: {
      description: "Anthropic's agentic coding tool",
      name: 'claude-code',
      title: 'Claude Code',
      version: '2.1.260',
      websiteUrl: 'https://claude.com/claude-code',
    },
    capabilities: { elicitation: {}, roots: { listChanged: true } },
    ids: probeThen('server-discover-probe-1'),
    next: 'modern',
    listens: true,
  },
  {
    name: 'Claude Code over stdio',
    // anthropics/claude-code#96183
    clientInfo: { name: 'claude-code', title: 'Claude Code', version: '2.1.280' },
    capabilities: { elicitation: {}, roots: { listChanged: true } },
    ids: probeThen('server-discover-probe-1'),
    next: 'initialize',
  },
  {
    name: 'ChatGPT through a tunnel',
    // openai/tunnel-client, pkg/mcpclient/shared_connection_transport.go
    ...CHATGPT,
    next: 'twice',
  },
  {
    name: 'ChatGPT, which stays modern',
    ...CHATGPT,
    next: 'modern',
  },
  {
    name: 'Python SDK',
    // src/mcp/client/session.py
    clientInfo: { name: 'mcp', version: '0.1.0' },
    capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } },
    ids: numbers(0),
    next: 'modern',
  },
  {
    name: 'Go SDK',
    // mcp/client.go
    clientInfo: { name: 'go-client', version: 'v1.7.0' },
    capabilities: { roots: {} },
    ids: numbers(1),
    next: 'modern',
    listens: true,
  },
  {
    name: 'Antigravity, with the Go SDK',
    // 7xuanlu/wenlan#761
    clientInfo: { name: 'antigravity', version: '1.2.4' },
    capabilities: { roots: { listChanged: true } },
    ids: numbers(1),
    between: [{ jsonrpc: '2.0', method: 'notifications/roots/list_changed', params: {} }],
    next: 'initialize',
  },
  {
    name: 'C# SDK',
    // src/ModelContextProtocol.Core/Client/McpClientImpl.cs
    clientInfo: { name: 'Copilot', version: '1.0.0.0' },
    capabilities: {},
    ids: numbers(1),
    next: 'modern',
  },
  {
    name: 'mcporter',
    // openclaw/mcporter, src/runtime/transport.ts
    clientInfo: { name: 'mcporter', version: '0.13.0' },
    capabilities: { elicitation: { form: {}, url: {} } },
    ids: probeThen('server-discover-probe-1'),
    next: 'modern',
  },
  {
    name: 'Copilot in VS Code',
    // A trace of 1.140.0, and microsoft/vscode, mcpServerRequestHandler.ts: it does not ask for what there is.
    clientInfo: { name: 'Visual Studio Code', version: '1.140.0' },
    capabilities: {
      roots: { listChanged: true },
      sampling: {},
      elicitation: { form: {}, url: {} },
      tasks: {
        list: {},
        cancel: {},
        requests: { sampling: { createMessage: {} }, elicitation: { create: {} } },
      },
      extensions: APPS,
    },
    ids: numbers(1),
    opens: '2025-11-25',
    listing: {},
    next: 'initialize',
  },
  {
    name: 'Copilot CLI',
    // A capture of 1.0.84-5.
    clientInfo: { name: 'copilot-cli', version: '1.0.84-5' },
    capabilities: { sampling: {} },
    ids: numbers(1),
    next: 'modern',
  },
  {
    name: 'Codex',
    // A capture of 0.158.0: it does not ask for what there is.
    clientInfo: { name: 'codex-mcp-client', title: 'Codex', version: '0.158.0' },
    capabilities: { experimental: { 'codex/auth-change': {} }, elicitation: { form: {}, url: {} } },
    ids: numbers(0),
    opens: '2025-06-18',
    listing: { _meta: { progressToken: 0 } },
    next: 'initialize',
  },
  {
    name: 'Rust SDK',
    // crates/rmcp/src/service/client.rs of rmcp 3, with automatic negotiation
    clientInfo: { name: 'rmcp', version: '3.2.0' },
    capabilities: {},
    ids: numbers(0),
    next: 'modern',
  },
]

/** How messages of a host reach the bridge. `ask` resolves to the answer, `tell` needs none. */
export interface Line {
  ask(message: Json): Promise<Json>
  tell(message: Json): Promise<unknown>
}

/** What a host has learned when it is connected. */
export interface Met {
  era: 'modern' | 'legacy'
  tools: string[]
  said: unknown
}

/** Plays a host: its first messages, the list of tools, and a call of `echo`. `impatient`: it does not wait for its probe. */
export async function play(host: Host, line: Line, { impatient = false } = {}): Promise<Met> {
  const { clientInfo, capabilities, ids, between = [], next, listens = false, opens, listing = {} } = host
  let nth = 0
  const request = (method: string, params: Json): Json => ({ jsonrpc: '2.0', id: ids(nth++), method, params })
  const meta = {
    [`${META}protocolVersion`]: MODERN,
    [`${META}clientInfo`]: clientInfo,
    [`${META}clientCapabilities`]: capabilities,
  }
  const probe = async () => {
    const message = request('server/discover', { _meta: meta })
    if (!impatient) return (await line.ask(message))['result']
    // What it cancels is not answered.
    await line.tell(message)
    await line.tell({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: message['id'] } })
    return undefined
  }
  const result = opens === undefined ? await probe() : undefined
  for (const message of between) await line.tell(message)
  const isModern =
    (result as { supportedVersions?: string[] } | undefined)?.supportedVersions?.includes(MODERN) === true
  const go = async (more: Json): Promise<Omit<Met, 'era'>> => {
    const listed = (await line.ask(request('tools/list', { ...listing, ...more })))['result'] as {
      tools: { name: string }[]
    }
    const called = (await line.ask(request('tools/call', { name: 'echo', arguments: {}, ...more })))['result'] as Json
    return { tools: listed.tools.map(({ name }) => name), said: called['content'] }
  }
  if (isModern && next === 'modern') {
    if (listens)
      await line.tell(request('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: meta }))
    return { era: 'modern', ...(await go({ _meta: meta })) }
  }
  let met: Omit<Met, 'era'> = { tools: [], said: undefined }
  for (let sessions = next === 'twice' ? 2 : 1; sessions > 0; sessions--) {
    const opened = await line.ask(
      request('initialize', { protocolVersion: opens ?? '2025-11-25', capabilities, clientInfo }),
    )
    if (!opened['result']) throw new Error(`${host.name} was refused: ${JSON.stringify(opened)}`)
    await line.tell({ jsonrpc: '2.0', method: 'notifications/initialized' })
    met = await go({})
  }
  return { era: 'legacy', ...met }
}
