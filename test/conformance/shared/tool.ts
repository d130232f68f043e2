/** What a tool of the reference servers is, in whichever era it is offered, and what it gets to work with. */
import type { Changes } from './changes.js'
import type { Client } from './client.js'
import type { Content } from './content.js'
import type { Schema } from './schemas.js'

export interface ToolDefinition {
  name: string
  description: string
  inputSchema: Schema
}

export type ToolResult = {
  content: Content[]
  isError?: boolean
}

export interface Tool {
  definition: ToolDefinition
  /** What is thrown here is answered as a JSON-RPC error; an `isError` result has to be returned. */
  call(call: ToolCall): ToolResult | Promise<ToolResult>
  /** The answers count only with the state that went out with the questions, where an era has such a thing. */
  stateful?: boolean
}

export interface ToolCall {
  arguments: Record<string, unknown>
  client: Client
  changes: Changes
  /** Says nothing where nobody wants to know. */
  progress(progress: number, total: number, message: string): Promise<void>
  log: Log
}

export interface Log {
  /** The usual way of the era. */
  info(data: string): Promise<void>
  /** On the stream of the call. Where a session has a level, nobody asks which one is wanted. */
  onCall(data: string, logger: string): Promise<void>
}

export const NO_ARGUMENTS: Schema = { type: 'object', additionalProperties: false }

/** Schema of arguments that are strings and all required. */
export function strings(descriptions: Record<string, string>): Schema {
  const properties = Object.entries(descriptions).map(([name, description]) => [name, { type: 'string', description }])
  return { type: 'object', properties: Object.fromEntries(properties), required: Object.keys(descriptions) }
}
