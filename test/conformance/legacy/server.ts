/**
 * The legacy server: one object of the SDK's low-level class per session. The high-level class would turn every error
 * of a tool into a result, and rewrite the schemas.
 */
import { InMemoryTaskMessageQueue } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type ServerCapabilities,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { Changes } from './changes.js'
import { changingPrompt, complete, prompts } from './prompts.js'
import { questions } from './questions.js'
import { readResource, resources, templates } from './resources.js'
import { Tasks } from './task-store.js'
import { taskTools } from './tasks.js'
import type { Tool } from './tool.js'
import { changingTool, tools } from './tools.js'

const CAPABILITIES: ServerCapabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {},
  tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
}

/** A server for one session. It stops watching `changes` when it is closed. */
export function createServer(changes: Changes): Server {
  const tasks = new Tasks()
  const server = new Server(
    { name: 'legacy-fixture', version: '1.0.0' },
    { capabilities: CAPABILITIES, taskStore: tasks, taskMessageQueue: new InMemoryTaskMessageQueue() },
  )
  server.oninitialized = () => changes.watch(server)
  server.onclose = () => {
    changes.unwatch(server)
    tasks.cleanup()
  }
  server.onerror = (error) => process.stderr.write(`${error.message}\n`)
  serveTools(server, changes, tasks)
  servePrompts(server, changes)
  serveResources(server)
  return server
}

function serveTools(server: Server, changes: Changes, tasks: Tasks): void {
  const all = (): Tool[] => [...tools, ...questions, ...taskTools, ...(changes.tool ? [changingTool] : [])]
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: all().map(({ definition }) => definition) }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const tool = all().find(({ definition: { name } }) => name === params.name)
    if (!tool) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${params.name}`)
    return tool.call({ server, arguments: params.arguments ?? {}, task: params.task, extra, changes, tasks })
  })
}

function servePrompts(server: Server, changes: Changes): void {
  const all = () => [...prompts, ...(changes.prompt ? [changingPrompt] : [])]
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: all().map(({ definition }) => definition) }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    const prompt = all().find(({ definition: { name } }) => name === params.name)
    if (!prompt) throw new McpError(ErrorCode.InvalidParams, `Unknown prompt: ${params.name}`)
    return prompt.get(params.arguments ?? {}, server)
  })
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => complete(params.argument.value))
}

function serveResources(server: Server): void {
  const subscribed = new Set<string>()
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: templates }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => readResource(params.uri))
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscribed.add(params.uri)
    return {}
  })
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscribed.delete(params.uri)
    return {}
  })
}
