/** Many callers with the same ids and tokens at once: each gets its own answers, and nothing else. */
import t from 'tap'
import { Pool } from 'undici'
import { startBridge } from '../support/bridge.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope, headersFor } from '../support/modern.js'
import { startFixture } from '../support/process.js'

const CONNECTIONS = 64
const CALLS = 20_000

t.test('64 connections, 20,000 calls, one id, one token: everybody gets what is theirs', async (t) => {
  const servers: [name: string, server: object][] = [
    ['over stdio', legacyStdio(t).server],
    ['over HTTP', { url: (await startFixture(t, 'legacy-http.mjs')).url }],
  ]
  for (const [name, server] of servers) {
    const { url } = await startBridge(t, server, { log: { level: 'warn' } })
    t.same(await storm(url), { answered: CALLS, wrong: [] }, name)
  }
})

/** What was answered, and what was not the caller's own, of as many calls as there are. */
async function storm(url: string): Promise<{ answered: number; wrong: string[] }> {
  const pool = new Pool(new URL(url).origin, { connections: CONNECTIONS, pipelining: 1 })
  const wrong: string[] = []
  let next = 0
  let answered = 0
  const caller = async (caller: number) => {
    while (next < CALLS) {
      const canary = `canary-${caller}-${next++}`
      const progress = next % 2 === 0 ? { progressToken: 't' } : {}
      const params = { name: 'shuffle', arguments: { canary, ms: 20 }, _meta: envelope(progress) }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      const response = await pool.request({
        path: '/mcp',
        method: 'POST',
        headers: headersFor('tools/call', params),
        body,
      })
      const text = await response.body.text()
      answered++
      const canaries = new Set(text.match(/canary-\d+-\d+/g))
      const complete =
        text.includes('"id":1,"result"') && text.includes('"progressToken":"t"') === 'progressToken' in progress
      if (response.statusCode !== 200 || canaries.size !== 1 || !canaries.has(canary) || !complete)
        wrong.push(`${canary}: ${text}`)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, number) => caller(number)))
  await pool.destroy()
  return { answered, wrong: wrong.slice(0, 3) }
}
