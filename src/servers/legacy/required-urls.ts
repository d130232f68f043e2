/**
 * URLs that a server requires the user to open before it executes a call: `URLElicitationRequiredError` (MCP 2025-11-25,
 * client/elicitation). The client is asked to open them, then the call is sent again.
 */

import { Fault } from '../../base/fault/fault.js'
import type { Response } from '../../base/rpc/message.js'
import { type Json, objectIn, type Payload, parseObject, raw, value } from '../../base/rpc/splice.js'
import type { Signal } from '../../base/time/hang-up.js'
import type { Call, Final } from '../../mcp/protocol/call.js'
import { isShowable, uncovered, wellFormed } from '../../mcp/protocol/input.js'
import { methodTraits } from '../../mcp/protocol/methods.js'
import type { CompletedElicitations } from './completed-elicitations.js'
import type { LegacySession } from './session.js'

export interface RequiredUrl {
  url: string
  message: string
  /** The id under which the server reports that the user is done; empty if it gave none. */
  id: string
}

/** The reply that asks the client to open URLs, if an answer of a session requires that; undefined otherwise. */
export type WhenRequired = (call: Call, response: Response, session: LegacySession) => Final | undefined

const URL_ELICITATION_REQUIRED = -32042
/** Milliseconds that a user who has agreed to open the URLs has for what they require. */
const VISIT = 45_000
/** Milliseconds until the call is repeated if the server reports nothing. They double each time. */
const SEND_AGAIN = 5_000
/** Query parameters of OAuth with another value for each visit. */
const OF_ONE_VISIT = ['state', 'nonce', 'code_challenge'] as const

/** Thrown if the server still requires URLs that the client has accepted, because the user has not finished there. */
export class StillRequired extends Error {
  override name = 'StillRequired'
  readonly urls: readonly RequiredUrl[]

  constructor(urls: readonly RequiredUrl[]) {
    super('The server still requires URLs that the client has accepted')
    this.urls = urls
  }
}

/** The URLs that the client of a call has accepted, and the time that the user has for them. */
export class UrlElicitation {
  readonly accepted: readonly RequiredUrl[]
  readonly #until = performance.now() + VISIT
  #pause = SEND_AGAIN

  constructor(accepted: readonly RequiredUrl[]) {
    this.accepted = accepted
  }

  /** The URLs about which the client has to be asked. The others wait for the user, while there is time. */
  toAsk(urls: readonly RequiredUrl[], completed: CompletedElicitations): readonly RequiredUrl[] {
    if (performance.now() >= this.#until) return urls
    const pending = this.accepted.filter(({ id }) => !completed.has(id))
    return urls.filter((one) => !pending.some((other) => isSame(one, other)))
  }

  /** Waits until the server reports that the user has finished one visit, or until it is time to repeat the call. */
  async wait(urls: readonly RequiredUrl[], completed: CompletedElicitations, signal: Signal): Promise<void> {
    const ids = [...this.accepted, ...urls].map(({ id }) => id).filter((id) => !completed.has(id))
    await completed.next(ids, Math.min(this.#pause, this.#until - performance.now()), signal)
    this.#pause *= 2
  }
}

/** Whether two requirements are for the same visit. Servers create a new id each time, and often put it into the URL. */
function isSame(one: RequiredUrl, other: RequiredUrl): boolean {
  return (one.id !== '' && one.id === other.id) || pageOf(one) === pageOf(other)
}

function pageOf({ url, id }: RequiredUrl): string {
  const page = new URL(id === '' ? url : url.replaceAll(id, ''))
  for (const name of OF_ONE_VISIT) page.searchParams.delete(name)
  return page.href
}

/**
 * The URLs that an answer requires the user to open first; undefined if it is another answer. Throws a Fault if the
 * client did not declare URL elicitation.
 */
export function requiredUrls(call: Call, { outcome }: Response): RequiredUrl[] | undefined {
  const error = outcome.kind === 'error' ? outcome.payload : undefined
  if (!error || value(error, 'code') !== URL_ELICITATION_REQUIRED || !methodTraits(call.method).asks) return undefined
  const data = objectIn(error, 'data')
  const wanted =
    data && (value(data, 'elicitations') as { elicitationId?: unknown; url?: unknown; message?: unknown }[])
  if (!Array.isArray(wanted) || wanted.length === 0 || !wanted.every((one) => isShowable(one?.url))) return undefined
  const lacking = uncovered('elicitation/create', parseObject('{"mode":"url"}'), parseObject(call.caller.capabilities))
  if (lacking !== undefined) {
    const requiredCapabilities = { elicitation: { url: {} } }
    throw new Fault('missingCapability', 'The server requires URL elicitation, which the client did not declare', {
      data: { requiredCapabilities },
    })
  }
  return wanted.map(({ message, url, elicitationId }) => ({
    url: url as string,
    message: typeof message === 'string' ? message : 'Please open this URL',
    id: typeof elicitationId === 'string' ? elicitationId : '',
  }))
}

/** The URLs by their keys in `inputRequests`. */
export function keyed(urls: readonly RequiredUrl[]): Map<string, RequiredUrl> {
  return new Map(urls.map((one, at) => [`address-${at + 1}`, one]))
}

export function urlRequests(urls: ReadonlyMap<string, RequiredUrl>): Json {
  const requests = [...urls].map(([key, { url, message }]) => {
    return [key, { method: 'elicitation/create', params: { mode: 'url', message, url } }]
  })
  return JSON.stringify(Object.fromEntries(requests))
}

/** The valid answers about URLs: whether each was accepted. Throws a Fault if all answers are invalid. */
export function urlAnswers(urls: ReadonlyMap<string, RequiredUrl>, responses: Payload): Map<string, boolean> {
  const answers = new Map<string, boolean>()
  const given = [...urls.keys()].filter((key) => raw(responses, key) !== undefined)
  for (const key of given) {
    const answer = objectIn(responses, key)
    if (answer && wellFormed('elicitation/create', answer)) answers.set(key, value(answer, 'action') === 'accept')
  }
  if (given.length > 0 && answers.size === 0)
    throw new Fault('invalidParams', 'inputResponses contains no valid answer to any request in inputRequests')
  return answers
}
