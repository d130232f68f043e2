/** Calls of people whom a server wants to sign in, and the question that they get. */
import type { Browser, Shown } from './browser.js'
import { type Answer, CAPABILITIES, type CallOptions, call } from './modern.js'

export const WHOAMI = { name: 'whoami', arguments: {} }
/** A client that can open addresses. */
const ABLE = { [CAPABILITIES]: { elicitation: { url: {} } } }

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

export interface Question {
  url: string
  message: string
  state: string
}

/** The question in an answer; empty texts if it is none. */
export function questionIn({ message }: Answer): Question {
  const { inputRequests = {}, requestState } = (message.result ?? {}) as {
    inputRequests?: Record<string, { params: { url: string; message: string } }>
    requestState?: string
  }
  const { params } = Object.values(inputRequests)[0] ?? {}
  return { url: params?.url ?? '', message: params?.message ?? '', state: requestState ?? '' }
}

/** Calls a tool of a server that knows who calls, as a client that can open addresses. */
export function whoami(
  url: string,
  token: string,
  params: object = WHOAMI,
  options: CallOptions = {},
): Promise<Answer> {
  return call(url, 'tools/call', params as Record<string, unknown>, { headers: bearer(token), meta: ABLE, ...options })
}

/** The same call again, with the answer to its question. */
export function again(asked: Answer, action = 'accept', params: object = WHOAMI): object {
  const { inputRequests = {} } = asked.message.result as { inputRequests: object }
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action }]))
  return { ...params, inputResponses, requestState: questionIn(asked).state }
}

/** Goes to the page, and on to the server's own sign-in and back. */
export async function agree(browser: Browser, address: string): Promise<Shown> {
  return browser.press(await browser.go(address), 'Continue')
}
