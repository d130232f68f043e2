/** What is asked, in the words of either era, and whether the answer is right. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { envelope, headersFor, post } from '../support/modern.js'

export type Era = 'modern' | 'legacy'

export interface Question {
  method: string
  params: Record<string, unknown>
  /** Messages before the answer: as many progress notifications are asked for. */
  progress?: number
  /** Whether a result is the one that the minimal servers give. */
  right: (result: Record<string, unknown>) => boolean
}

/** A question as it goes to one candidate, the id left open: texts with room for it in between. */
export interface Wire {
  headers: Record<string, string>
  body: string[]
}

const LEGACY = '2025-11-25'
/** Stands for the id, and for the progress token. Occurs nowhere else. */
const ID = 987_654_321
/** Milliseconds from the start of a process to its first right answer, at most. */
const PATIENCE = 20_000
const POLL = 1

/** Says a question as the client's era does, in a session that is opened at the port where that takes one. */
export async function prepare(era: Era, question: Question, port: number, sessions = true): Promise<Wire> {
  const body = bodyFor(era, question).split(String(ID))
  if (era === 'modern') return { headers: headersFor(question.method, question.params), body }
  return { headers: legacyHeaders(sessions ? await openSession(port) : undefined), body }
}

/** The same in a session that is open. */
export function inSession({ headers }: Wire, question: Question): Wire {
  return { headers, body: bodyFor('legacy', question).split(String(ID)) }
}

/** A request with this id as its progress token too, if progress is asked for. */
export function bodyFor(era: Era, { method, params, progress }: Question): string {
  const token = progress === undefined ? {} : { progressToken: ID }
  if (era === 'modern') return bodyOf(method, { ...params, _meta: envelope(token) })
  return bodyOf(method, progress === undefined ? params : { ...params, _meta: token })
}

/**
 * Asks until something listens, and answers with the text of the right answer around its id: the body, or the messages of an
 * event stream in lines. Throws for a wrong answer.
 */
export async function firstAnswer(port: number, { headers, body }: Wire, era: Era, question: Question) {
  const answer = await persist(() => post(urlAt(port), body.join(String(ID)), headers))
  const { status, text, messages, message } = answer
  const before = messages.slice(0, -1).filter(({ method }) => method === 'notifications/progress')
  const whole = messages.length === 1 + before.length && before.length === (question.progress ?? 0)
  if (status !== 200 || !whole || !isRight(message, era, question))
    throw new Error(`Not the answer that was expected: HTTP ${status}, ${text.slice(0, 500)}`)
  const events = String(answer.headers['content-type']).startsWith('text/event-stream')
  return (events ? messagesOf(text) : text).split(String(ID))
}

/** Whether a message is the right answer in the words of an era. */
function isRight({ result }: { result?: Record<string, unknown> }, era: Era, { right }: Question): boolean {
  if (result === undefined) return false
  const typed = era === 'modern' ? result['resultType'] === 'complete' : !('resultType' in result)
  return typed && right(result)
}

/** The messages of an event stream, in lines. The same as `messagesOf` in load.mjs. */
function messagesOf(text: string): string {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && line.length > 6)
    .map((line) => line.slice(6).trimEnd())
    .join('\n')
}

/** Shakes hands as a legacy client. Resolves to the id of the session. */
export async function openSession(port: number): Promise<string> {
  const opened = await persist(() => post(urlAt(port), initializeBody(), legacyHeaders(undefined)))
  const session = opened.headers['mcp-session-id']
  if (typeof session !== 'string')
    throw new Error(`No session was opened: HTTP ${opened.status} ${opened.text.slice(0, 300)}`)
  const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  const { status } = await post(urlAt(port), initialized, legacyHeaders(session))
  if (status !== 202) throw new Error(`HTTP ${status} for a notification`)
  return session
}

/** The same of a client on a pipe, with the text of the right answer around its id. */
export async function prepareOnPipe(
  era: Era,
  question: Question,
  ask: Ask,
): Promise<{ body: string[]; expected: string[] }> {
  if (era === 'legacy') {
    await ask(initializeBody(), ID)
    await ask('{"jsonrpc":"2.0","method":"notifications/initialized"}')
  }
  return askOnPipe(era, question, ask)
}

/** Asks in a session that is open. */
export async function askOnPipe(era: Era, question: Question, ask: Ask) {
  const body = bodyFor(era, question)
  const answer = (await ask(body, ID)) ?? ''
  if (!isRight(JSON.parse(answer), era, question))
    throw new Error(`Not the answer that was expected: ${answer.slice(0, 500)}`)
  return { body: body.split(String(ID)), expected: answer.split(String(ID)) }
}
/** Says a message, and resolves to the answer with this id. */
export type Ask = (body: string, id?: number) => Promise<string | undefined>

/** The request with which a legacy client begins. */
function initializeBody(): string {
  const clientInfo = { name: 'bench', version: '1' }
  return bodyOf('initialize', { protocolVersion: LEGACY, capabilities: {}, clientInfo })
}

export function urlAt(port: number, path = '/mcp'): string {
  return `http://127.0.0.1:${port}${path}`
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

function bodyOf(method: string, params: object): string {
  return `{"jsonrpc":"2.0","id":${ID},"method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`
}

/** Resolves when a server listens on the port. */
export async function listening(port: number): Promise<void> {
  await persist(async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
  })
}

/** Tries as long as nobody listens. */
async function persist<T>(attempt: () => Promise<T>): Promise<T> {
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
