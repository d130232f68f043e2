/** What has gone wrong in a run, counted by kind, with an example of each. */
import type { Want } from '../corpus/input.js'
import type { Outcome } from './exchange.js'

/** What must not happen, by the name under which it is counted. */
export const FAILURES = {
  crashes: 'a bridge ended, or had to be started again',
  hangs: 'neither an answer nor an end of the connection in time',
  serverErrors: 'answered with 5xx, though the mistake is the client’s',
  taken: 'taken, though it has to be refused',
  executed: 'refused, and run nevertheless',
  dropped: 'the connection ended without an answer to a whole request',
  notJsonRpc: 'a refusal that is no JSON-RPC',
  reflected: 'a refusal that gives back more of what was sent than it may',
  garbage: 'a call to a bad server was not answered once, by JSON-RPC',
  statesAccepted: 'a forged, foreign or expired state was accepted',
  stuck: 'after an input nothing more was answered',
  mistakes: 'the bridge logged a mistake of its own',
  healthy: 'a healthy client was not answered as it should be',
} as const
export type Failure = keyof typeof FAILURES

/** Examples of each that are kept. */
const KEPT = 12
/** Bytes that a refusal may have. */
const REFUSAL_AT_MOST = 4_096

export class Verdict {
  inputs = 0
  runs = 0
  /** What was judged last. */
  last = 'nothing yet'
  readonly counts = new Map<Failure, number>()
  readonly examples = new Map<Failure, string[]>()

  fail(failure: Failure, example: string): void {
    this.counts.set(failure, (this.counts.get(failure) ?? 0) + 1)
    const examples = this.examples.get(failure) ?? []
    if (examples.length === KEPT) return
    this.examples.set(failure, [...examples, example])
    console.log(`${failure}: ${example}`)
  }

  count(failure: Failure): number {
    return this.counts.get(failure) ?? 0
  }

  /** Looks at what an input of a client was answered with. What a server has answered is its own. */
  judge(where: string, outcome: Outcome, { want, broken }: { want: Want; broken?: boolean }, unchanged: boolean): void {
    this.runs++
    this.last = where
    const { kind, status, body, type } = outcome
    const shown = `${where}: ${kind} ${status || ''} ${body.slice(0, 160)}`.trim()
    if (kind === 'hung') this.fail('hangs', shown)
    if (kind === 'closed' && !broken) this.fail('dropped', shown)
    if (status >= 500) this.fail('serverErrors', shown)
    if (unchanged) return
    if (kind === 'answered' && want === 'refused' && !isRefusal(outcome)) this.fail('taken', shown)
    if (status >= 400 && body !== '' && !isError(body)) this.fail('notJsonRpc', `${shown} (${type})`)
    if (status >= 400 && body.length > REFUSAL_AT_MOST) this.fail('reflected', shown)
  }

  get failures(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0)
  }
}

function isRefusal({ status, body }: Outcome): boolean {
  return status >= 400 || messagesIn(body).some((message) => 'error' in message)
}

const isError = (body: string) => messagesIn(body).every(({ jsonrpc, error }) => jsonrpc === '2.0' && isObject(error))

const isObject = (value: unknown) => typeof value === 'object' && value !== null

/** Messages of JSON or of events; one without members where it is neither. */
function messagesIn(body: string): Record<string, unknown>[] {
  const texts = /^(event|data|id|:)/.test(body)
    ? body.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []))
    : [body]
  return texts.flatMap((text) => {
    try {
      const parsed = JSON.parse(text) as unknown
      return (Array.isArray(parsed) ? parsed : [parsed]) as Record<string, unknown>[]
    } catch {
      return [{}]
    }
  })
}
