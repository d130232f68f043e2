/** What reaches a bound is answered alike everywhere: with a status, a reason, and when to try again. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { startInspector, TOKEN } from '../support/inspector.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ModernHttp } from '../support/modern-http.js'
import { raw } from '../support/raw.js'
import { tickingRing } from '../support/sights.js'

/** The text up to the parenthesis that closes the one before it. */
function untilClosed(text: string, start: number): string {
  let depth = 1
  let at = start
  for (; depth > 0 && at < text.length; at++) depth += text[at] === '(' ? 1 : text[at] === ')' ? -1 : 0
  return text.slice(start, at)
}

t.test('every fault about a bound says when to retry', (t) => {
  const source = fileURLToPath(new URL('../../src/', import.meta.url))
  let faults = 0
  for (const file of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue
    const text = readFileSync(source + file, 'utf8')
    for (const { 0: begun, index } of text.matchAll(/new Fault\(\s*'(?:overloaded|rateLimited)'/g)) {
      faults++
      const made = untilClosed(text, index + 'new Fault('.length)
      // What a filter asks for in total does not become less.
      const isAboutParams = made.includes('status: 200')
      t.ok(isAboutParams || made.includes('retryAfter'), `${file}: ${begun} ${made.slice(0, 120)}`)
    }
  }
  t.ok(faults > 15, `${faults} faults`)
  t.end()
})

t.test('the 17th viewer of the inspector gets a time to retry', async (t) => {
  const url = `${await startInspector(t, tickingRing())}/inspect/events`
  const headers = { authorization: `Bearer ${TOKEN}` }
  const abort = new AbortController()
  t.teardown(() => abort.abort())
  for (let n = 0; n < 16; n++) t.equal((await fetch(url, { headers, signal: abort.signal })).status, 200)
  const refused = await fetch(url, { headers })
  t.equal(refused.status, 503)
  t.equal(refused.headers.get('retry-after'), '1')
  t.equal(refused.headers.get('mcp-bridge-error'), 'overloaded')
})

t.test('refuses two Host headers at `admin`, as for clients', async (t) => {
  const { bridge } = await startBridge(t, legacyStdio(t).server, { admin: 'http://127.0.0.1:0' })
  const admin = String(bridge.adminUrl)
  const { host } = new URL(admin)
  for (const path of ['/metrics', '/healthz', '/readyz', '/nowhere'])
    for (const other of [host, 'evil.example']) {
      const answer = await raw(admin, [`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nhost: ${other}\r\n\r\n`])
      t.equal(answer.status, 400, `${path} ${other}`)
      t.match(JSON.parse(answer.body), { error: { code: -32600, message: /host was sent twice/ } })
    }
})

t.test('names a method that is too long for headers', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url })
  const client = await LegacyClient.open(url)
  const { message } = await client.request('x'.repeat(14_500))
  t.match(message.error, { code: -32602, message: /^The method is too long for HTTP headers/ })
})
