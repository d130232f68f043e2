/** Servers that answer as they should not, behind every front: each call is answered once, in time, and by JSON-RPC. */
import type { BuiltBridge } from '../../support/built-bridge.js'
import { LegacyClient } from '../../support/legacy-client.js'
import { call, envelope } from '../../support/modern.js'
import { SseClient } from '../../support/sse-client.js'
import type { BadAnswer } from '../corpus/answers.js'
import { TOKENS } from './fronts.js'
import type { Verdict } from './verdict.js'

/** Milliseconds that a call may take. Calls themselves have less: see `timeouts.call` of these servers. */
const PATIENCE = 25_000
/** Calls to one server at once. */
const AT_ONCE = 4

type Json = Record<string, unknown>
const headers = { authorization: `Bearer ${TOKENS.mallory}` }

/** Makes one call of `raw`, and gives all that came with its id. */
type Caller = (args: Json) => Promise<Json[]>

const answersIn = (messages: readonly Json[], id: unknown) =>
  messages.filter((message) => message['id'] === id && !('method' in message))

export const CALLERS: Record<string, (url: string) => Caller> = {
  'modern HTTP': (url) => async (args) => {
    const { messages } = await call(url, 'tools/call', { name: 'raw', arguments: args }, { headers, id: 'the id' })
    return answersIn(messages, 'the id')
  },
  'legacy HTTP': (url) => async (args) => {
    const client = await LegacyClient.open(url, { headers })
    const { messages } = await client.call('raw', args, { id: 'the id', meta: { progressToken: 't' } })
    await client.end()
    return answersIn(messages, 'the id')
  },
  'HTTP+SSE': (url) => async (args) => {
    const client = await SseClient.open(url, '2024-11-05', {}, headers)
    try {
      await client.request('tools/call', { name: 'raw', arguments: args }, 'the id')
      return answersIn(client.messages, 'the id')
    } finally {
      client.stream.leave()
    }
  },
}

/** Calls over a bridge's standard input, which all of them share. */
export function pipeCaller(bridge: BuiltBridge): Caller {
  const answers = new Map<unknown, Json>()
  let rest = ''
  let lastId = 0
  bridge.child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const message = JSON.parse(line) as Json
      if (!('method' in message)) answers.set(message['id'], message)
    }
  })
  return async (args) => {
    const id = `call ${++lastId}`
    const params = { name: 'raw', arguments: args, _meta: envelope({ progressToken: id }) }
    bridge.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`)
    for (let waited = 0; waited < PATIENCE && bridge.ended === undefined; waited += 5) {
      if (answers.has(id)) break
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const answer = answers.get(id)
    return answer ? [answer] : []
  }
}

/**
 * How far the bridge answers for what a server says. `unchanged`: it passes on what there is of an answer as it is. `direct`: a
 * legacy client has a session of its own with the server. In both cases it is the client that says how long it waits.
 */
export type Passing = 'translated' | 'unchanged' | 'direct'

/** Milliseconds for which an answer is waited for that need not come. */
const BRIEFLY = 2_000

/** Has a server give all these answers. */
export async function runAnswers(
  where: string,
  make: Caller,
  all: readonly BadAnswer[],
  verdict: Verdict,
  passing: Passing = 'translated',
): Promise<void> {
  const waiting = [...all]
  const worker = async () => {
    for (let bad = waiting.shift(); bad; bad = waiting.shift()) {
      verdict.inputs++
      verdict.runs++
      const shown = `${where}, answered with ${bad.name}`
      const args = { hex: Buffer.from(bad.bytes, 'latin1').toString('hex'), after: bad.after }
      try {
        const answers = await inTime(make(args), passing === 'translated' ? PATIENCE : BRIEFLY)
        if (passing !== 'translated' && answers === undefined) continue
        if (answers === undefined) verdict.fail('hangs', shown)
        else if (passing === 'unchanged') continue
        else if (answers.length !== 1) verdict.fail('garbage', `${shown}: ${answers.length} answers`)
        else if (!('result' in (answers[0] as Json)) && !('error' in (answers[0] as Json)))
          verdict.fail('garbage', `${shown}: ${JSON.stringify(answers[0])}`)
      } catch (error) {
        if (passing !== 'unchanged') verdict.fail('garbage', `${shown}: ${String(error).slice(0, 200)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

async function inTime<T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, milliseconds, undefined)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
