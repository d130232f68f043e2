/** Fronts over HTTP as a hostile client uses them: how a text is sent to each, and how it is seen that they still answer. */

import { LegacyClient } from '../../support/legacy-client.js'
import { call } from '../../support/modern.js'
import { SseClient } from '../../support/sse-client.js'
import type { Era, Text } from '../corpus/input.js'
import { requestOf } from '../corpus/input.js'

/** What requests are filled with, by the names that they have in them. */
export type Places = Record<string, string>

export interface Front {
  name: string
  era: Era
  /** Requests go to the server as they are: what it says to them is its own. */
  unchanged: boolean
  /** Where requests go. */
  url: string
  places: Places
  /** The request that brings a text. */
  requestWith(text: Text): Buffer
  /** Whether a good request is answered. Opens another session where the one before has ended. */
  answers(): Promise<boolean>
  end(): Promise<void>
}

/** Milliseconds that a good request may take. */
const PATIENCE = 20_000
const PING = '{"jsonrpc":"2.0","id":"still there","method":"ping"}'

export const TOKENS = { mallory: 'token-of-mallory-0123456789', alice: 'token-of-alice-0123456789' }
const authorization = `Bearer ${TOKENS.mallory}`

const common = (url: string): Places => ({
  host: new URL(url).host,
  path: new URL(url).pathname,
  token: TOKENS.mallory,
  authorization,
})
const COMMON = ['host: {host}', 'authorization: {authorization}', 'content-type: application/json']
const BOTH = 'accept: application/json, text/event-stream'
/** The name of what is in front of a server of its own era, over the same transport. */
export const UNCHANGED = 'unchanged'
/** Methods whose requests have a header for what they are about. */
const NAMED = ['tools/call', 'prompts/get', 'resources/read', 'tasks/get']

export function modernFront(name: string, url: string): Front {
  return {
    unchanged: name === UNCHANGED,
    name: `modern HTTP, ${name}`,
    era: 'modern',
    url,
    places: common(url),
    requestWith({ body, method = 'tools/call', tool = 'echo' }) {
      const about = NAMED.includes(method) ? [`mcp-name: ${tool}`] : []
      const own = [BOTH, 'mcp-protocol-version: 2026-07-28', `mcp-method: ${method}`, ...about]
      return requestOf(['POST {path} HTTP/1.1', ...COMMON, ...own], body)
    },
    async answers() {
      const answer = await inTime(call(url, 'tools/list', {}, { headers: { authorization } }))
      return answer?.message.result !== undefined
    },
    end: async () => {},
  }
}

export async function legacyFront(name: string, url: string): Promise<Front> {
  const open = (token: string) => LegacyClient.open(url, { headers: { authorization: `Bearer ${token}` } })
  const foreign = await open(TOKENS.alice)
  let own = await open(TOKENS.mallory)
  const places = { ...common(url), session: own.session, foreign: foreign.session }
  return {
    name: `legacy HTTP, ${name}`,
    era: 'legacy',
    unchanged: name === UNCHANGED,
    url,
    places,
    requestWith({ body }) {
      const session = ['mcp-protocol-version: 2025-11-25', 'mcp-session-id: {session}']
      return requestOf(['POST {path} HTTP/1.1', ...COMMON, BOTH, ...session], body)
    },
    async answers() {
      const answer = await inTime(own.post(PING))
      if (answer?.status === 404 || answer?.status === 400) {
        own = await open(TOKENS.mallory)
        places.session = own.session
        return own.session !== 'undefined'
      }
      return answer?.message.result !== undefined
    },
    async end() {
      await Promise.all([inTime(own.end()), inTime(foreign.end())])
    },
  }
}

export async function sseFront(name: string, url: string): Promise<Front> {
  const open = (token: string) => SseClient.open(url, '2024-11-05', {}, { authorization: `Bearer ${token}` })
  const foreign = await open(TOKENS.alice)
  let own = await open(TOKENS.mallory)
  const pathOf = (address: string) => new URL(address).pathname + new URL(address).search
  const places = {
    ...common(url),
    stream: pathOf(new URL('sse', url).href),
    messages: new URL(own.messagesUrl).pathname,
    own: pathOf(own.messagesUrl),
    foreignMessages: pathOf(foreign.messagesUrl),
  }
  let pings = 0
  return {
    name: `HTTP+SSE, ${name}`,
    era: 'legacy',
    unchanged: name === UNCHANGED,
    url: own.messagesUrl,
    places,
    requestWith: ({ body }) => requestOf(['POST {own} HTTP/1.1', ...COMMON], body),
    async answers() {
      if (own.stream.over) {
        own = await open(TOKENS.mallory)
        places.own = pathOf(own.messagesUrl)
      }
      const answer = await inTime(own.request('ping', undefined, `still there ${++pings}`))
      return answer !== undefined
    },
    async end() {
      own.stream.leave()
      foreign.stream.leave()
    },
  }
}

/** Puts what a front and a run know into a request. */
export function fill(bytes: Buffer, places: Places): Buffer {
  const text = bytes.toString('latin1')
  const head = text.indexOf('\r\n\r\n')
  const filled = (part: string) =>
    part.replaceAll(/\{(\w+)\}/g, (place, name: string) => (Object.hasOwn(places, name) ? String(places[name]) : place))
  // Only what stands before the body has places; a body may have anything.
  return Buffer.from(head < 0 ? filled(text) : filled(text.slice(0, head)) + text.slice(head), 'latin1')
}

/** What comes of it, or nothing where that takes too long or fails. */
async function inTime<T>(work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, PATIENCE, undefined)
  })
  try {
    return await Promise.race([work, late])
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
