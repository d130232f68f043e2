/** A33: where the token of a caller goes, which is nowhere but to its issuer, if that has to be asked. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { parseListen } from '../../src/config/settings.js'
import { createBridge } from '../support/bridge.js'
import { temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { overheard } from '../support/overheard.js'
import { startSdkV1 } from '../support/sdk-v1.js'
import { SseClient } from '../support/sse-client.js'
import { TokenIssuer } from '../support/token-issuer.js'

const OPAQUE = 'opaque-0123456789-0123456789'
const program = fileURLToPath(new URL('../fixtures/legacy-stdio.mjs', import.meta.url))

/** A bridge in front of servers of every kind, and everything that they and the issuer are sent. */
async function start(t: Test) {
  const issuer = await TokenIssuer.start(t)
  const legacy = await overheard(
    t,
    await startSdkV1(t, (one) => {
      one.registerTool('read', { description: 'Reads.' }, () => ({ content: [] }))
    }),
  )
  const modern = await overheard(t, (await ModernHttp.start(t)).url)
  const folder = temporaryFolder(t)
  const [heard, audit] = [join(folder, 'heard'), join(folder, 'audit')]
  // What a program gets: its environment, and what it reads.
  const listening = `env > ${heard}; tee -a ${heard} | "${execPath}" "${program}"`
  const origin = `http://127.0.0.1:${await freePort()}`
  const introspection = { clientId: 'bridge', clientSecret: 'bridge-secret-0123456789' }
  const { bridge, log } = createBridge(
    t,
    { url: legacy.url },
    {
      mcpServers: {
        legacy: { url: legacy.url },
        modern: { url: modern.url },
        program: { command: 'sh', args: ['-c', listening] },
      },
      publicUrl: origin,
      auth: { issuers: [{ issuer: issuer.url, audience: 'api://bridge', introspection }] },
      audit: { file: audit },
    },
  )
  const listen = parseListen(`${origin}/mcp`)
  if (listen.kind !== 'http') throw new TypeError('not HTTP')
  await bridge.listen(listen)
  const sent = () => ({
    'a legacy server': legacy.sent(),
    'a modern server': modern.sent(),
    'a program': readFileSync(heard, 'utf8'),
    'the audit log': readFileSync(audit, 'utf8'),
    'the log': JSON.stringify(log),
  })
  return { origin, issuer, sent }
}

for (const kind of ['a JWT', 'a token for introspection'] as const)
  t.test(`${kind} is sent nowhere but to introspection, whichever client and server`, async (t) => {
    const { origin, issuer, sent } = await start(t)
    const claims = { sub: 'alice', aud: 'api://bridge', exp: Math.floor(Date.now() / 1_000) + 600 }
    issuer.opaque.set(OPAQUE, { active: true, ...claims })
    const token = kind === 'a JWT' ? await issuer.token(claims) : OPAQUE
    const headers = { authorization: `Bearer ${token}` }
    for (const name of ['legacy', 'modern', 'program']) {
      const url = `${origin}/${name}/mcp`
      t.equal((await call(url, 'tools/list', {}, { headers })).status, 200, `a modern client of ${name}`)
      const client = await LegacyClient.open(url, { headers })
      t.equal((await client.request('tools/list', {}, { headers })).status, 200, `a legacy client of ${name}`)
      const stream = await SseClient.open(url, '2025-11-25', {}, headers)
      const body = { jsonrpc: '2.0', id: 7, method: 'tools/list', params: {} }
      t.equal((await stream.post(body, headers)).status, 202)
      t.match(await stream.answer(7), { result: {} }, `a client of HTTP+SSE of ${name}`)
      await call(url, 'tools/call', { name: 'read', arguments: {} }, { headers })
    }
    for (const [where, text] of Object.entries(sent())) {
      t.ok(text.length > 0, `${where} was written to`)
      t.notOk(text.includes(token), where)
      if (kind === 'a JWT') t.notOk(text.includes(token.split('.')[2] ?? token), `${where}, not even its signature`)
    }
    t.match(sent()['the audit log'], /alice/)
    const asked = issuer.received.filter(({ text }) => text.includes(token)).map(({ path }) => path)
    t.same(asked, kind === 'a JWT' ? [] : ['/introspect'], 'asked once, and kept')
  })
