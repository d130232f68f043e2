/** Whoever calls, as far as there is something to ask there: the user, the model, the roots. */
import type { Form } from './schemas.js'

/**
 * Questions have keys, for eras in which they travel together in one result. Where they are requests, they go out on a
 * stream, which is that of the session unless it is said to be that of the call.
 */
export interface Client {
  capabilities: { elicitation?: object | undefined; sampling?: object | undefined }
  elicit(key: string, question: Question, stream?: Stream): Promise<Answer>
  /** What the model says. */
  sample(key: string, prompt: string, stream?: Stream): Promise<string>
  roots(key: string, stream?: Stream): Promise<{ uri: string }[]>
}

export type Stream = 'session' | 'call'

export interface Question {
  message: string
  requestedSchema: Form
}

export interface Answer {
  action: string
  content?: Record<string, unknown> | undefined
}

/** What the model is asked. */
export function sampling(prompt: string) {
  return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: prompt } }], maxTokens: 100 }
}

/** The text of what the model has said. */
export function said({ content }: { content: unknown }): string {
  const { type, text } = content as { type?: unknown; text?: unknown }
  return type === 'text' ? String(text) : `something that is ${String(type)}`
}
