/** Many callers of several principals at once, of whom servers ask something: nobody sees or answers what is another's. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Pool } from 'undici'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { listen } from '../support/listening.js'
import { CAPABILITIES, envelope, headersFor } from '../support/modern.js'
import { startFixture } from '../support/process.js'

type Json = Record<string, unknown>

/** Calls in all, and with each of the two servers. */
const TOTAL = Number(process.env['QUESTION_CALLS'] ?? 20_000)
const CALLS = TOTAL / 2
const CONNECTIONS = 64
/** Of so many calls one asks something. */
const ASKS = 10

const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
/** Whoever shares a token and capabilities is the same to a server; nobody else is. */
const KINDS = [
  { name: 'alice-form', token: TOKENS.alice, capabilities: { elicitation: {} } },
  {
    name: 'alice-all',
    token: TOKENS.alice,
    capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
  },
  { name: 'bob-form', token: TOKENS.bob, capabilities: { elicitation: {} } },
  { name: 'bob-all', token: TOKENS.bob, capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } },
]
type Kind = (typeof KINDS)[number]

const CANARY = /canary-(\w+-\w+)-\d+/g
const URI = 'test://static'

t.test(
  `${CONNECTIONS} connections, ${TOTAL} calls of two principals with two sets of capabilities, a tenth of them asking`,
  async (t) => {
    const folder = temporaryFolder(t)
    const files = { stdio: join(folder, 'stdio'), http: join(folder, 'http') }
    const plan = { asks: true, by: 'session' }
    const rows: [name: string, server: object, file: string][] = [
      ['over stdio', legacyStdio(t, { ...plan, executions: files.stdio }).server, files.stdio],
      [
        'over HTTP',
        { url: (await startFixture(t, 'legacy-http.mjs', JSON.stringify({ ...plan, executions: files.http }))).url },
        files.http,
      ],
    ]
    for (const [name, server, file] of rows) {
      const { url } = await startBridge(t, server, {
        auth: { tokens: TOKENS },
        log: { level: 'warn' },
        timeouts: { drainTimeout: 100 },
      })
      const streams = await Promise.all(
        KINDS.map(({ token, capabilities }) => {
          const headers = { authorization: `Bearer ${token}` }
          return listen(url, { resourceSubscriptions: [URI] }, { id: 1, capabilities, headers })
        }),
      )
      for (const stream of streams) await stream.has(1)
      const { captures, wrong, asked } = await storm(url)
      t.same(wrong, [], `${name}: everybody was told what is theirs`)
      for (const [n, { name: kind }] of KINDS.entries()) {
        const all = [...(captures[n] ?? []), streams[n]?.text ?? '']
        const seen = new Set(all.flatMap((text) => [...text.matchAll(CANARY)].map(([, whose]) => whose)))
        t.same([...seen], [kind], `${name}: nothing of anybody else was sent to ${kind}`)
        streams[n]?.leave()
      }
      t.ok(asked >= CALLS / ASKS, `${name}: ${asked} questions were asked`)
      const executed = readFileSync(file, 'utf8').split('\n').filter(Boolean)
      t.equal(executed.length, CALLS, `${name}: every call was made`)
      t.equal(new Set(executed).size, CALLS, `${name}: and none of them twice`)
      await until(() => streams.every((stream) => stream.over))
    }
  },
)

/** Makes all the calls, and answers all that is asked in them. */
async function storm(url: string): Promise<{ captures: string[][]; wrong: string[]; asked: number }> {
  const pool = new Pool(new URL(url).origin, { connections: CONNECTIONS, pipelining: 1 })
  const captures: string[][] = KINDS.map(() => [])
  const wrong: string[] = []
  let asked = 0
  let next = 0
  const send = async (method: string, params: Json, { token, capabilities }: Kind, capture: string[]) => {
    const meta = envelope({ [CAPABILITIES]: capabilities, progressToken: 't' })
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } })
    const headers = { ...headersFor(method, params), authorization: `Bearer ${token}` }
    const response = await pool.request({ path: '/mcp', method: 'POST', headers, body })
    const text = await response.body.text()
    capture.push(text)
    const [last = '{}'] = text
      .split('\n')
      .filter((line) => line.startsWith('{') || line.startsWith('data: {'))
      .slice(-1)
    return JSON.parse(last.replace(/^data: /, '')) as { id?: unknown; result?: Json }
  }
  const caller = async (number: number) => {
    const at = number % KINDS.length
    const kind = KINDS[at] as Kind
    const capture = captures[at] as string[]
    while (next < CALLS) {
      const n = next++
      const canary = `canary-${kind.name}-${n}`
      const { method, params, expected } = n % ASKS === 0 ? asking(n, canary) : telling(n, canary)
      let { id, result } = await send(method, params, kind, capture)
      for (let rounds = 0; result?.['resultType'] === 'input_required' && rounds < 20; rounds++) {
        const requests = result['inputRequests'] as Record<string, { params: { message: string } }>
        const answers: Json = {}
        for (const [key, { params: question }] of Object.entries(requests)) {
          asked++
          // Which of several calls of one client a question belongs to is not said.
          if (!question.message.startsWith(`canary-${kind.name}-`))
            wrong.push(`${canary} was asked ${question.message}`)
          answers[key] = { action: 'accept', content: { said: `answer to ${question.message}` } }
        }
        const retry = { ...params, inputResponses: answers, requestState: result['requestState'] }
        ;({ id, result } = await send(method, retry, kind, capture))
      }
      if (id !== 1 || !JSON.stringify(result ?? '').includes(expected))
        wrong.push(`${canary}: ${JSON.stringify(result)}`)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, number) => caller(number)))
  await pool.destroy()
  return { captures, wrong: wrong.slice(0, 3), asked }
}

/** A call that tells its canary, with its progress or by way of what has changed. */
function telling(n: number, canary: string) {
  const touch = n % ASKS === 5
  const args = touch ? { key: canary, uris: [`${URI}/${canary}`] } : { key: canary, canary, ms: 10 }
  const params = { name: touch ? 'touch' : 'shuffle', arguments: args }
  return { method: 'tools/call', params, expected: touch ? 'touched' : canary }
}

/** A call in the middle of which its canary is asked. */
function asking(n: number, canary: string) {
  const question = { method: 'elicitation/create', params: { message: canary, requestedSchema: { type: 'object' } } }
  const steps = { key: canary, by: 'session', steps: [{ ask: [question] }] }
  const expected = `answer to ${canary}`
  if (n % (3 * ASKS) === 0) return { method: 'tools/call', params: { name: 'steps', arguments: steps }, expected }
  const json = JSON.stringify(steps)
  if (n % (3 * ASKS) === ASKS)
    return { method: 'prompts/get', params: { name: 'greet', arguments: { key: canary, json } }, expected }
  return { method: 'resources/read', params: { uri: 'test://ask', arguments: { key: canary, json } }, expected }
}
