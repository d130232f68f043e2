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
import type { Changes, Watcher } from '../shared/changes.js'
import { jobs } from '../shared/jobs.js'
import { changingPrompt, complete, prompts } from '../shared/prompts.js'
import { questions } from '../shared/questions.js'
import { readResource, resources, templates } from '../shared/resources.js'
import { changingTool, tools } from '../shared/tools.js'
import { clientOf, logOf, progressOf } from './call.js'
import { Tasks } from './task-store.js'
import { callJob, listed } from './tasks.js'

/** What was the code for a resource that is not there, before 2026-07-28. */
const RESOURCE_NOT_FOUND = -32002

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
  const watcher: Watcher = {
    tools: () => server.sendToolListChanged(),
    prompts: () => server.sendPromptListChanged(),
  }
  server.oninitialized = () => changes.watch(watcher)
  server.onclose = () => {
    changes.unwatch(watcher)
    tasks.cleanup()
  }
  server.onerror = (error) => process.stderr.write(`${error.message}\n`)
  serveTools(server, changes, tasks)
  servePrompts(server, changes)
  serveResources(server)
  return server
}

function serveTools(server: Server, changes: Changes, tasks: Tasks): void {
  const all = () => [...tools, ...questions, ...(changes.tool ? [changingTool] : [])]
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...all().map(({ definition }) => definition), ...jobs.map(listed)],
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const job = jobs.find(({ definition: { name } }) => name === params.name)
    if (job) return callJob(job, { server, tasks, params, extra })
    const tool = all().find(({ definition: { name } }) => name === params.name)
    if (!tool) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${params.name}`)
    return tool.call({
      arguments: params.arguments ?? {},
      client: clientOf(server, extra),
      changes,
      progress: progressOf(extra),
      log: logOf(server, extra),
    })
  })
}

function servePrompts(server: Server, changes: Changes): void {
  const all = () => [...prompts, ...(changes.prompt ? [changingPrompt] : [])]
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: all().map(({ definition }) => definition) }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params }, extra) => {
    const prompt = all().find(({ definition: { name } }) => name === params.name)
    if (!prompt) throw new McpError(ErrorCode.InvalidParams, `Unknown prompt: ${params.name}`)
    return prompt.get(params.arguments ?? {}, clientOf(server, extra))
  })
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => complete(params.argument.value))
}

function serveResources(server: Server): void {
  const subscribed = new Set<string>()
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: templates }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    const found = readResource(uri)
    if (!found) throw new McpError(RESOURCE_NOT_FOUND, 'Resource not found', { uri })
    return found
  })
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscribed.add(params.uri)
    return {}
  })
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscribed.delete(params.uri)
    return {}
  })
}
