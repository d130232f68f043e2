/** What is asked, in the words of either era, and whether the answer is right. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, envelope, headersFor, post } from '../support/modern.js'

export type Era = 'modern' | 'legacy'

export interface Question {
  method: string
  params: Record<string, unknown>
  /** Whether a result is the one that the minimal servers give. */
  right: (result: Record<string, unknown>) => boolean
}

/** A question as it goes to one candidate, the id left open: two texts with room for it in between. */
export interface Wire {
  headers: Record<string, string>
  body: [string, string]
}

const LEGACY = '2025-11-25'
const ID = 99_999
/** Milliseconds from the start of a process to its first right answer, at most. */
const PATIENCE = 10_000
const POLL = 1

/** Says a question as the client's era does, in a session that is opened at the port where that takes one. */
export async function prepare(era: Era, question: Question, port: number): Promise<Wire> {
  if (era === 'modern') {
    const { method, params } = question
    return { headers: headersFor(method, params), body: bodyOf(method, { ...params, _meta: envelope() }) }
  }
  return { headers: legacyHeaders(await openSession(port)), body: bodyOf(question.method, question.params) }
}

/** Asks until something listens, and answers with the text of the right answer around its id. Throws for a wrong one. */
export async function firstAnswer(port: number, { headers, body }: Wire, era: Era, right: Question['right']) {
  const { status, text, message } = await persist(() => post(urlAt(port), body.join(String(ID)), headers))
  const { result } = message
  const typed = era === 'modern' ? result?.['resultType'] === 'complete' : result && !('resultType' in result)
  const [before, after, ...more] = text.split(`"id":${ID},`)
  if (status !== 200 || !result || !typed || !right(result) || after === undefined || more.length > 0)
    throw new Error(`Not the answer that was expected: HTTP ${status}, ${text.slice(0, 500)}`)
  return [`${before}"id":`, `,${after}`] as [string, string]
}

/** Shakes hands as a legacy client. Resolves to the id of the session. */
export async function openSession(port: number): Promise<string> {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'bench', version: '1' } }
  const body = bodyOf('initialize', params).join(String(ID))
  const { headers } = await persist(() => post(urlAt(port), body, legacyHeaders(undefined)))
  const session = headers['mcp-session-id']
  if (typeof session !== 'string') throw new Error('No session was opened')
  return session
}

export function urlAt(port: number): string {
  return `http://127.0.0.1:${port}/mcp`
}

/** Headers of a message in a session, or of the one that opens it. */
export function legacyHeaders(session: string | undefined): Record<string, string> {
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': LEGACY,
    ...(session !== undefined && { 'mcp-session-id': session }),
  }
}

function bodyOf(method: string, params: object): [string, string] {
  return ['{"jsonrpc":"2.0","id":', `,"method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`]
}

/** Tries as long as nobody listens. */
async function persist(attempt: () => Promise<Answer>): Promise<Answer> {
  const until = performance.now() + PATIENCE
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const refused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
      if (!refused || performance.now() > until) throw error
      await sleep(POLL)
    }
  }
}
