/** Keys of several people in a group, some sent with each call and some entered once: nobody gets anybody else's. */
import { env } from 'node:process'
import t, { type Test } from 'tap'
import { bearer } from '../support/asked-to-sign-in.js'
import { Browser } from '../support/browser.js'
import { startCompany } from '../support/company.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'
import { PlainHttp, sendText } from '../support/plain-http.js'

t.setTimeout(3_600_000)

const CALLS = Number(env['KEY_CALLS'] ?? 100_000)
const AT_ONCE = 16
const PEOPLE = ['alice', 'bob', 'carol', 'dave'] as const
const tokenOf = (who: string) => `token-of-${who}-0123456789`
const keyOf = (who: string, where: string) => `key-of-${who}-for-${where}-0123456789`
type Json = Record<string, unknown>

/** A server that knows people by a header, and says who they are. Counts what must not happen. */
async function keyed(t: Test, where: string, header: string, era: 'modern' | 'legacy', wrong: string[]) {
  const sessions = new Map<string, string>()
  const server: PlainHttp = await PlainHttp.start(t, ({ message, headers }, response) => {
    server.received.length = 0
    const [, who, place] = /^key-of-(\w+)-for-(\w+)-/.exec(String(headers[header])) ?? []
    const strangers = Object.values(headers)
      .flat()
      .filter((value) => value?.includes('key-of-')).length
    if (who !== undefined && (place !== where || strangers > 1)) wrong.push(`${where} got ${JSON.stringify(headers)}`)
    if (who === undefined) return response.writeHead(401).end()
    const session = headers['mcp-session-id']
    if (typeof session === 'string' && sessions.get(session) !== who) wrong.push(`${who} in a session of another`)
    if (message?.['id'] === undefined) return response.writeHead(message ? 202 : 405).end()
    const complete = era === 'modern' ? { resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' } : {}
    const serverInfo = { name: where, version: '1' }
    const results: Record<string, Json> = {
      'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo },
      'tools/list': { tools: ['whoami', `of-${who}`].map((name) => ({ name, inputSchema: { type: 'object' } })) },
      'tools/call': { content: [{ type: 'text', text: who }] },
      ping: {},
    }
    const method = String(message['method'])
    const result = era === 'legacy' && method === 'server/discover' ? undefined : results[method]
    if (method === 'initialize') {
      const id = crypto.randomUUID()
      sessions.set(id, who)
      response.setHeader('mcp-session-id', id)
    }
    const error = { code: -32601, message: 'Method not found' }
    const answer = result ? { result: { ...complete, ...result } } : { error }
    return sendText(response, JSON.stringify({ jsonrpc: '2.0', id: message['id'], ...answer }))
  })
  return server.url
}

t.test(`${CALLS} calls of ${PEOPLE.length} people in a group have only their own keys`, async (t) => {
  const wrong: string[] = []
  const mcpServers: Record<string, Json> = {}
  for (const era of ['modern', 'legacy'] as const) {
    const [sent, renamed, entered] = [`sent${era}`, `renamed${era}`, `entered${era}`] as const
    mcpServers[sent] = { url: await keyed(t, sent, `x-${sent}`, era, wrong), forward: { [`x-${sent}`]: true } }
    const forward = { [`x-${renamed}`]: 'authorization' }
    mcpServers[renamed] = { url: await keyed(t, renamed, 'authorization', era, wrong), forward }
    mcpServers[entered] = { url: await keyed(t, entered, 'x-own', era, wrong), account: { header: 'x-own' } }
  }
  const names = Object.keys(mcpServers)
  const { origin, bridges } = await startCompany(t, {
    auth: { tokens: Object.fromEntries(PEOPLE.map((who) => [who, tokenOf(who)])) },
    settings: { mcpServers, groups: { team: {} }, log: { level: 'error' } },
  })
  const url = `${origin}/team/mcp`
  const sentBy = (who: string) => ({
    ...bearer(tokenOf(who)),
    ...Object.fromEntries(names.map((name) => [`x-${name}`, keyOf(who, name)])),
  })
  const clients = new Map<string, LegacyClient>()
  for (const who of PEOPLE) {
    const browser = new Browser()
    await browser.press(await browser.go(`${origin}/sign-in`), 'Sign in', { token: tokenOf(who) })
    for (const name of names.filter((one) => one.startsWith('entered')))
      await browser.press(await browser.go(`${origin}/sign-in/${name}`), 'Store', { key: keyOf(who, name) })
    clients.set(who, await LegacyClient.open(url, { headers: sentBy(who) }))
  }
  let next = 0
  const asking = async () => {
    while (next < CALLS && wrong.length < 10) {
      const nth = next++
      const who = PEOPLE[nth % PEOPLE.length] as string
      const name = names[Math.floor(nth / PEOPLE.length) % names.length] as string
      const isList = nth % 10 === 0
      const [method, params] = isList
        ? (['tools/list', {}] as const)
        : (['tools/call', { name: `${name}__whoami`, arguments: {} }] as const)
      const isLegacy = nth % 3 === 0
      const { message, text } = isLegacy
        ? await (clients.get(who) as LegacyClient).request(method, params)
        : await call(url, method, params, { headers: sentBy(who) })
      const { content, tools } = (message.result ?? {}) as { content?: { text: string }[]; tools?: { name: string }[] }
      const own = tools?.filter((tool) => tool.name.endsWith(`__of-${who}`)).length
      const isRight = isList ? own === names.length && tools?.length === 2 * names.length : content?.[0]?.text === who
      if (!isRight) wrong.push(`${who} at ${name}: ${text.slice(0, 300)}`)
      for (const { log } of bridges) log.length = 0
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, asking))
  t.same(wrong, [])
  t.equal(next, CALLS)
})
