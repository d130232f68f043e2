/**
 * Callers of every kind while replicas restart one after another, as behind a balancer: they go to the first replica, and to the second
 * one from when the first has said that it shuts down until it is back. What they get is counted.
 */
import { Agent, type OutgoingHttpHeaders, request } from 'node:http'
import { type EventStream, openStream } from './events.js'
import { pause, until } from './eventually.js'
import { LegacyClient } from './legacy-client.js'
import { ALL_LISTS, listen } from './listening.js'
import { type Answer, envelope, headersFor, post } from './modern.js'
import { SseClient } from './sse-client.js'

/** `opened again`: the session is known to be lost (404), so nothing was done. */
export type Outcome = 'answered' | 'told' | 'refused' | 'opened again' | `broken: ${string}`

/** Where a caller is, and how it leaves. */
interface Place {
  readonly origin: string
  leave(): void
}

/** One call of a caller. */
export type Lane = (place: Place) => Promise<Outcome>

/** Milliseconds between two calls. */
const GAP = 20

/** Calls again and again. A published port takes connections also while nobody listens behind it, and resets them. */
export async function keepCalling(
  [first, second]: readonly [string, string],
  round: () => number,
  isOver: () => boolean,
  lane: Lane,
): Promise<Map<Outcome, number>> {
  const counts = new Map<Outcome, number>()
  let leftIn = -1
  const place: Place = {
    get origin() {
      return leftIn === round() ? second : first
    },
    leave() {
      leftIn = round()
    },
  }
  while (!isOver()) {
    const outcome = await lane(place).catch(outcomeOfError)
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    if (outcome === 'told' || outcome === 'refused') place.leave()
    await pause(GAP)
  }
  return counts
}

function outcomeOfError(error: NodeJS.ErrnoException & { stream?: EventStream }): Outcome {
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

/** Calls of a modern client. */
export function modern(path: string, name: string, args: object = { message: 'x' }): Lane {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const params = { name, arguments: args }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: envelope() } })
  return async (place) => outcomeOf(await keptPost(agent, place, path, body, headersFor('tools/call', params)))
}

/** A session of a legacy client. One that is passed on to the server is never lost. */
export function session(path: string, name: string, { isPassedOn }: { isPassedOn: boolean }): Lane {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let client: LegacyClient | undefined
  return async (place) => {
    const { origin } = place
    if (!client) {
      const opening = await LegacyClient.open(origin + path)
      if (opening.opened.status !== 200) return outcomeOf(opening.opened)
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
export function sse(path: string, name: string): Lane {
  let client: SseClient | undefined
  let id = 100
  return async ({ origin }) => {
    if (!client || client.stream.over) {
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
export function subscription(path: string): Lane {
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
export function question(path: string): Lane {
  return async (place) => {
    const client = await LegacyClient.open(place.origin + path, { capabilities: { sampling: {} } })
    if (client.opened.status !== 200) return outcomeOf(client.opened)
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
    await pause(100)
    const result = { role: 'assistant', model: 'm', content: { type: 'text', text: 'an answer' } }
    const said = await answered(place, path, client, { id: asked()?.['id'], result })
    if (said !== 'answered') return said
    await calling.ended()
    return JSON.stringify(calling.answer(7)).includes('an answer') ? 'answered' : `broken: ${calling.text.slice(-300)}`
  }
}

/** Posts the answer to a question, at the other replica if the first one takes none any more. */
async function answered(place: Place, path: string, client: LegacyClient, answer: object): Promise<Outcome> {
  const text = JSON.stringify({ jsonrpc: '2.0', ...answer })
  const first = await post(place.origin + path, text, client.headers).then(outcomeOf, outcomeOfError)
  if (first === 'answered' || first.startsWith('broken')) return first
  place.leave()
  return post(place.origin + path, text, client.headers).then(outcomeOf)
}
