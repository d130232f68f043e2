/** What a tool of the legacy server is, and what it gets to work with. */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type {
  CallToolRequest,
  CallToolResult,
  CreateTaskResult,
  ServerNotification,
  ServerRequest,
  Tool as ToolDefinition,
} from '@modelcontextprotocol/sdk/types.js'
import type { Changes } from './changes.js'
import type { Tasks } from './task-store.js'

export type { ToolDefinition }

export interface Tool {
  definition: ToolDefinition
  /** What is thrown here is answered as a JSON-RPC error; an `isError` result has to be returned. */
  call(call: ToolCall): Result | Promise<Result>
}

type Result = CallToolResult | CreateTaskResult

export interface ToolCall {
  server: Server
  arguments: Record<string, unknown>
  /** Wish of the client that the call be a task. */
  task: CallToolRequest['params']['task']
  extra: RequestHandlerExtra<ServerRequest, ServerNotification>
  changes: Changes
  tasks: Tasks
}

export const NO_ARGUMENTS: ToolDefinition['inputSchema'] = { type: 'object', additionalProperties: false }

/** Schema of arguments that are strings and all required. */
export function strings(descriptions: Record<string, string>): ToolDefinition['inputSchema'] {
  const properties = Object.entries(descriptions).map(([name, description]) => [name, { type: 'string', description }])
  return { type: 'object', properties: Object.fromEntries(properties), required: Object.keys(descriptions) }
}
