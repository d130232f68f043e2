/** What a caller does while replicas restart: a lane for each kind of caller, and what it gets of one call. */
import { Agent, type OutgoingHttpHeaders, request } from 'node:http'
import { type EventStream, openStream } from './events.js'
import { pause, until } from './eventually.js'
import { BOTH, LegacyClient } from './legacy-client.js'
import { ALL_LISTS, listen } from './listening.js'
import { type Answer, envelope, headersFor, post } from './modern.js'
import { SseClient } from './sse-client.js'

/** `opened again`: the session is known to be lost (404), so nothing was done. */
export type Outcome = 'answered' | 'told' | 'refused' | 'opened again' | `broken: ${string}`

/** Where a caller is, and how it leaves. */
export interface Place {
  readonly origin: string
  leave(): void
}

/** One call of a caller. */
export type Lane = (place: Place) => Promise<Outcome>

/** Callers of each kind, of which nothing may be lost. The server `demo` is server-everything; the group has a program, too. */
export const LANES: readonly (readonly [name: string, lane: () => Lane])[] = [
  ['calls of modern clients to the group', () => modern('/mcp', 'demo__echo')],
  ['calls of modern clients to a program', () => modern('/modern/mcp', 'find_train', { to: 'Oslo' })],
  ['sessions of legacy clients with the group', () => session('/mcp', 'demo__echo', { isPassedOn: false })],
  ['sessions that are passed on', () => session('/demo/mcp', 'echo', { isPassedOn: true })],
  ['clients over HTTP+SSE', () => sse('/demo/mcp', 'echo')],
  ['subscriptions to the group', () => subscription('/mcp')],
  ['questions in calls', () => question('/demo/mcp')],
  ['questions beside calls to the group', () => roots('/mcp', 'demo__get-roots-list')],
  ['questions beside calls that are passed on', () => roots('/demo/mcp', 'get-roots-list')],
]

export function outcomeOfError(error: NodeJS.ErrnoException & { stream?: EventStream }): Outcome {
  if (error.stream) return outcomeOf(error.stream)
  return error.code === 'ECONNREFUSED' ? 'refused' : `broken: ${error.code ?? error.message}`
}

function outcomeOf(answer: Pick<Answer, 'status' | 'headers' | 'text'>): Outcome {
  const { status, headers, text } = answer
  if (status === 200 || status === 202) return 'answered'
  if (status === 503 && headers['mcp-bridge-error'] === 'draining' && headers['retry-after'] !== undefined)
    return 'told'
  return `broken: ${status} ${text.slice(0, 200)}`
}

/** Posts over a connection that is kept. The caller leaves a place that is about to close it, as a balancer does. */
function keptPost(agent: Agent, { origin, leave }: Place, path: string, body: string, headers: OutgoingHttpHeaders) {
  return new Promise<Pick<Answer, 'status' | 'headers' | 'text'>>((resolve, reject) => {
    const sent = request(origin + path, { method: 'POST', agent, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('end', () => {
        if (answer.headers.connection === 'close') leave()
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text })
      })
      answer.on('error', reject)
    })
    sent.on('error', reject).end(body)
  })
}

const ROOT = { uri: 'file:///a/root', name: 'a root' }

/** Calls of a modern client. */
function modern(path: string, name: string, args: object = { message: 'x' }): Lane {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const params = { name, arguments: args }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: envelope() } })
  return async (place) => outcomeOf(await keptPost(agent, place, path, body, headersFor('tools/call', params)))
}

/** A session of a legacy client. One that is passed on to the server is never lost. */
function session(path: string, name: string, { isPassedOn }: { isPassedOn: boolean }): Lane {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let client: LegacyClient | undefined
  return async (place) => {
    if (!client) {
      const opening = await opened(place, path, {})
      if (!(opening instanceof LegacyClient)) return opening
      client = opening
    }
    const text = client.text('tools/call', { name, arguments: { message: 'x' } }, {})
    const answer = await keptPost(agent, place, path, text, defined(client.headers))
    if (answer.status === 404 && !isPassedOn) {
      client = undefined
      return 'opened again'
    }
    return outcomeOf(answer)
  }
}

function defined(headers: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >
}

/** A client over HTTP+SSE. Its session ends with its stream; what was taken before is answered. */
function sse(path: string, name: string): Lane {
  let client: SseClient | undefined
  let at: string | undefined
  let id = 100
  return async (place) => {
    if (client?.stream.over && at === place.origin) place.leave()
    const { origin } = place
    if (!client || client.stream.over || at !== origin) {
      client?.stream.leave()
      client = undefined
      at = origin
      client = await SseClient.open(origin + path, '2024-11-05')
      return 'opened again'
    }
    const taking = client
    const { stream } = taking
    const params = { name, arguments: { message: 'x' } }
    const answer = await client.post({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params })
    if (answer.status === 404) {
      client = undefined
      return 'told'
    }
    if (answer.status !== 202) return outcomeOf(answer)
    const isAnswered = () => taking.messages.some((message) => message['id'] === id)
    await until(() => isAnswered() || stream.over, 'an answer')
    return isAnswered() ? 'answered' : 'broken: a call that was taken is lost'
  }
}

/** A modern client that listens. Its stream ends with a result. */
function subscription(path: string): Lane {
  let stream: EventStream | undefined
  let at: string | undefined
  return async ({ origin }) => {
    if (at !== origin && stream && !stream.over) {
      stream.leave()
      stream = undefined
    }
    at = origin
    if (stream?.over) {
      const last = stream.messages.at(-1)
      stream = undefined
      return last && 'result' in last ? 'told' : `broken: the stream ended after ${JSON.stringify(last)}`
    }
    stream ??= await listen(origin + path, ALL_LISTS)
    if (stream.status === 200) return 'answered'
    const refused = stream
    stream = undefined
    await refused.ended()
    return outcomeOf(refused)
  }
}

/** A tool asks the client while its call is in flight. Any replica takes the answer. */
function question(path: string): Lane {
  return async (place) => {
    const client = await opened(place, path, { sampling: {} })
    if (!(client instanceof LegacyClient)) return client
    const params = { name: 'trigger-sampling-request', arguments: { prompt: 'x', maxTokens: 10 } }
    const calling = await openStream(
      'POST',
      place.origin + path,
      client.headers,
      client.text('tools/call', params, { id: 7 }),
    )
    if (calling.status !== 200) {
      await calling.ended()
      return outcomeOf(calling)
    }
    const asked = () => calling.messages.find(({ method }) => method === 'sampling/createMessage')
    await until(() => asked() !== undefined || calling.over, 'the question')
    if (!asked()) return `broken: not asked, but ${calling.text.slice(-300)}`
    await pause(100)
    const result = { role: 'assistant', model: 'm', content: { type: 'text', text: 'an answer' } }
    const said = await answered(place, path, client, { id: asked()?.['id'], result })
    if (said !== 'answered') return said
    await calling.ended()
    return JSON.stringify(calling.answer(7)).includes('an answer') ? 'answered' : `broken: ${calling.text.slice(-300)}`
  }
}

/**
 * A server asks the client for its roots while a call is in flight: on the stream for what belongs to no call, which ends with its
 * replica and is opened again at another.
 */
function roots(path: string, name: string): Lane {
  return async (place) => {
    const client = await opened(place, path, { roots: {} })
    if (!(client instanceof LegacyClient)) return client
    const listenAgain = () =>
      openStream('GET', place.origin + path, { ...client.headers, accept: BOTH.accept, 'content-type': undefined })
    let listening = await listenAgain()
    const text = client.text('tools/call', { name, arguments: {} }, { id: 7 })
    // The head of its answer comes with the answer itself, for which the server waits for the roots.
    let calling: EventStream | undefined
    let failure: Error | undefined
    openStream('POST', place.origin + path, client.headers, text).then(
      (stream) => {
        calling = stream
      },
      (error: Error) => {
        failure = error
      },
    )
    const heard = new Set<unknown>()
    while (!calling?.over) {
      if (listening.over) {
        place.leave()
        listening = await listenAgain()
      }
      for (const { id, method } of [...(calling?.messages ?? []), ...listening.messages]) {
        if (method !== 'roots/list' || heard.has(id)) continue
        heard.add(id)
        const said = await answered(place, path, client, { id, result: { roots: [ROOT] } })
        if (said !== 'answered') return said
      }
      await pause(10)
      if (failure) throw failure
    }
    listening.leave()
    if (calling.status !== 200) return outcomeOf(calling)
    return calling.text.includes(ROOT.uri) ? 'answered' : `broken: ${calling.text.slice(-300)}`
  }
}

/** Opens a session. Its second message may have to go to the other replica. */
async function opened(place: Place, path: string, capabilities: object): Promise<LegacyClient | Outcome> {
  const client = await LegacyClient.open(place.origin + path, { capabilities: { ...capabilities }, ready: false })
  if (client.opened.status !== 200) return outcomeOf(client.opened)
  const said = await answered(place, path, client, { method: 'notifications/initialized' })
  return said === 'answered' ? client : said
}

/** Posts what gets no answer, at the other replica if the first one takes none any more. */
async function answered(place: Place, path: string, client: LegacyClient, answer: object): Promise<Outcome> {
  const text = JSON.stringify({ jsonrpc: '2.0', ...answer })
  const first = await post(place.origin + path, text, client.headers).then(outcomeOf, outcomeOfError)
  if (first === 'answered' || first.startsWith('broken')) return first
  place.leave()
  return post(place.origin + path, text, client.headers).then(outcomeOf)
}
