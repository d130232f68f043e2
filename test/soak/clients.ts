/** What the clients of a soak do, each for one principal: calls, questions, subscriptions and sessions, some given up. */
import { setTimeout as sleep } from 'node:timers/promises'
import { below, oneOf, type Random } from '../hostile/corpus/random.js'
import { ADA, all, NAME, talk } from '../support/asking.js'
import { LegacyClient } from '../support/legacy-client.js'
import { listen } from '../support/listening.js'
import { type Answer, call } from '../support/modern.js'
import { SseClient } from '../support/sse-client.js'

/** One client, and the server that it uses. */
interface Client {
  url: string
  /** The headers that say who it is. */
  headers: Record<string, string>
  random: Random
  /** A word that no other call has. */
  word: string
}

/** What came of it: an answer, the bridge's or the server's error (which servers that are killed make likely), or nothing. */
export type Outcome = 'answered' | 'failed' | 'given up'
/** Rejects with a WrongAnswer where the answer is not that of the call. */
export type Deed = (client: Client) => Promise<Outcome>

/** An answer to something else. The message is its text. */
export class WrongAnswer extends Error {}

/** Milliseconds within which something is given up. */
const SOON = 40
/** Rounds of questions that a client answers at most. */
const ROUNDS = 16

const judge = ({ message, text, status }: Pick<Answer, 'message' | 'text' | 'status'>, word: string): Outcome => {
  if (message.error) return 'failed'
  if (status >= 500 || status === 429 || status === 404) return 'failed'
  if (!text.includes(word)) throw new WrongAnswer(text.slice(0, 500))
  return 'answered'
}

const params = (client: Client) => ({
  name: 'canary',
  arguments: { canary: client.word, ms: below(client.random, 20), late: below(client.random, 2) },
})

/** A call of a modern client. */
const plain: Deed = async (client) => {
  const meta = client.random() < 0.5 ? { progressToken: 't' } : {}
  return judge(await call(client.url, 'tools/call', params(client), { headers: client.headers, meta }), client.word)
}

/** A modern client that goes before its call is over, or just then. */
const dropped: Deed = async (client) => {
  const leaving = new AbortController()
  const timer = setTimeout(() => leaving.abort(), below(client.random, SOON))
  await call(client.url, 'tools/call', params(client), { headers: client.headers, signal: leaving.signal }).catch(
    () => {},
  )
  clearTimeout(timer)
  return 'given up'
}

const lists: Deed = async (client) => {
  const method = oneOf(client.random, ['tools/list', 'prompts/list', 'resources/list', 'server/discover'])
  return judge(await call(client.url, method, {}, { headers: client.headers }), '"result"')
}

/**
 * A call whose client is asked, and answers most of the time. The questions name no call, so it may also get that of another
 * call of its principal, which a client has left.
 */
const asks: Deed = async (client) => {
  const { random, headers } = client
  const modern = talk(client.url, { by: 'session' })
  let round = await modern.steps([{ ask: [NAME] }], {}, { headers })
  if (round.keys.length === 0) return 'failed'
  for (let rounds = 0; round.keys.length > 0 && rounds < ROUNDS; rounds++) {
    if (random() < 0.2) return 'given up'
    round = await modern.again(round, all(round, ADA), {}, { headers })
  }
  return judge(round, 'Ada')
}

const subscribes: Deed = async ({ url, headers, random }) => {
  const filter = { toolsListChanged: true, resourceSubscriptions: [`test://x/${below(random, 10)}`] }
  const stream = await listen(url, filter, { headers })
  await sleep(below(random, 20 * SOON))
  stream.leave()
  return stream.status === 200 ? 'answered' : 'failed'
}

/** A legacy session with some calls, a stream, and an end that is told most of the time. */
const session: Deed = async (client) => {
  const { url, headers, random, word } = client
  const legacy = await LegacyClient.open(url, { headers })
  if (legacy.opened.status !== 200) return 'failed'
  const stream = await legacy.listen()
  let outcome: Outcome = 'answered'
  for (let calls = 1 + below(random, 4); calls > 0 && outcome === 'answered'; calls--) {
    const id = `call ${calls}`
    const answering = legacy.request('tools/call', params(client), { id })
    if (random() < 0.2) {
      await legacy.notify('notifications/cancelled', { requestId: id }).catch(() => {})
      await Promise.race([answering, sleep(5 * SOON)]).catch(() => {})
      answering.catch(() => {})
    } else outcome = judge(await answering, word)
  }
  stream.leave()
  if (random() < 0.7) await legacy.end()
  return outcome
}

const sse: Deed = async ({ url, headers, random }) => {
  const client = await SseClient.open(url, '2024-11-05', {}, headers)
  try {
    if (random() < 0.2) return 'given up'
    const answer = await client.request('tools/list')
    return 'result' in answer ? 'answered' : 'failed'
  } finally {
    client.stream.leave()
  }
}

/** What is done, and how often compared with the others. */
export const DEEDS: [share: number, name: string, deed: Deed][] = [
  [50, 'calls', plain],
  [15, 'dropped calls', dropped],
  [10, 'lists', lists],
  [8, 'questions', asks],
  [6, 'subscriptions', subscribes],
  [8, 'sessions', session],
  [2, 'HTTP+SSE', sse],
]

const SHARES = DEEDS.reduce((sum, [share]) => sum + share, 0)

export function anyDeed(random: Random): (typeof DEEDS)[number] {
  let at = below(random, SHARES)
  for (const row of DEEDS) {
    if (at < row[0]) return row
    at -= row[0]
  }
  throw new RangeError('beyond all shares')
}
