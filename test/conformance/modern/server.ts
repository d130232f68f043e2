/**
 * The modern server: handlers of the SDK's low-level class, because those of the high-level one would turn every error
 * of a tool into a result. It is wrapped into the high-level class all the same, because the SDK compares headers with
 * arguments for that one only.
 */
import { McpServer, ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Changes } from '../shared/changes.js'
import { jobs } from '../shared/jobs.js'
import { changingPrompt, complete, prompts } from '../shared/prompts.js'
import { questions } from '../shared/questions.js'
import { readResource, resources, templates } from '../shared/resources.js'
import { changingTool, tools } from '../shared/tools.js'
import { verifyState, withClient } from './asking.js'
import { logOf, progressOf } from './call.js'
import { callJob, knowsTasks, TASKS, type Tasks, tasksRequired } from './tasks.js'

/** What outlives a request. */
export interface Shared {
  changes: Changes
  tasks: Tasks
}

const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {},
  extensions: { [TASKS]: {} },
}

export function createServer(shared: Shared): McpServer {
  const server = new ModernServer(shared)
  serveTools(server, shared)
  servePrompts(server, shared)
  serveResources(server)
  serveTasks(server, shared)
  return server
}

class ModernServer extends McpServer {
  readonly #shared: Shared

  constructor(shared: Shared) {
    super(
      { name: 'modern-fixture', version: '1.0.0' },
      { capabilities: CAPABILITIES, requestState: { verify: verifyState } },
    )
    this.#shared = shared
  }

  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return definitions(this.#shared).find((definition) => definition.name === name)?.inputSchema
  }
}

function serveTools({ server }: McpServer, shared: Shared): void {
  server.setRequestHandler('tools/list', () => ({ tools: definitions(shared) }))
  server.setRequestHandler('tools/call', ({ params }, ctx) => {
    const given = params.arguments ?? {}
    const job = jobs.find(({ definition: { name } }) => name === params.name)
    if (job) return callJob(job, given, shared.tasks, ctx)
    const tool = plainTools(shared).find(({ definition: { name } }) => name === params.name)
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${params.name}`)
    const { changes } = shared
    const more = { arguments: given, changes, progress: progressOf(ctx), log: logOf(ctx) }
    return withClient(ctx, (client) => tool.call({ client, ...more }), tool)
  })
}

function plainTools({ changes }: Shared) {
  return [...tools, ...questions, ...(changes.tool ? [changingTool] : [])]
}

function definitions(shared: Shared) {
  return [...plainTools(shared), ...jobs].map(({ definition }) => definition)
}

function servePrompts({ server }: McpServer, { changes }: Shared): void {
  const all = () => [...prompts, ...(changes.prompt ? [changingPrompt] : [])]
  server.setRequestHandler('prompts/list', () => ({ prompts: all().map(({ definition }) => definition) }))
  server.setRequestHandler('prompts/get', ({ params }, ctx) => {
    const prompt = all().find(({ definition: { name } }) => name === params.name)
    if (!prompt) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${params.name}`)
    return withClient(ctx, (client) => prompt.get(params.arguments ?? {}, client))
  })
  server.setRequestHandler('completion/complete', ({ params }) => complete(params.argument.value))
}

function serveResources({ server }: McpServer): void {
  server.setRequestHandler('resources/list', () => ({ resources }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: templates }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const found = readResource(uri)
    if (!found) throw new ResourceNotFoundError(uri)
    return found
  })
}

/** The SDK has no tasks; it lets methods through that are given their schemas. */
function serveTasks({ server }: McpServer, { tasks }: Shared): void {
  const methods = {
    'tasks/get': (taskId: string) => tasks.get(taskId) ?? {},
    'tasks/update': (taskId: string, answers: Record<string, unknown>) => {
      tasks.update(taskId, answers)
      return {}
    },
    'tasks/cancel': (taskId: string) => {
      tasks.cancel(taskId)
      return {}
    },
  }
  const params = z.looseObject({ taskId: z.string() })
  for (const [method, answer] of Object.entries(methods)) {
    server.setRequestHandler(method, { params }, ({ taskId }, ctx) => {
      if (!knowsTasks(ctx)) throw tasksRequired()
      if (!tasks.get(taskId)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown task: ${taskId}`)
      return answer(taskId, ctx.mcpReq.inputResponses ?? {})
    })
  }
}
