/** Tokens of two principals, while they call, renew and sign in at the same time: none is ever sent for the other. */
import { join } from 'node:path'
import { env } from 'node:process'
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { temporaryFolder } from '../support/folder.js'
import { BOTH, initialize } from '../support/legacy-client.js'
import { call, post } from '../support/modern.js'
import { PlainHttp, sendText } from '../support/plain-http.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { personParts } from '../support/sign-in-parts.js'
import { storeToken } from '../support/stored-token.js'

t.setTimeout(3_600_000)

/** auth.md wants 100,000; as many as one likes with `A25_CALLS`. */
const CALLS = Number(env['A25_CALLS'] ?? 3_000)
const AT_ONCE = 32
/** Calls after which a principal signs out and in again. */
const SIGNED_IN_FOR = Math.max(500, CALLS / 40)
/** Seconds that a token holds: it is renewed all the time. */
const LIFETIME = 2
const LEGACY = '2025-11-25'
const PRINCIPALS = ['alice', 'bob'] as const
type Principal = (typeof PRINCIPALS)[number]
const tokenOf = (principal: Principal) => principal.repeat(6)

t.test(`tokens of two principals do not mix in ${CALLS} calls, with renewals and sign-ins between them`, async (t) => {
  let signingIn: Principal = 'alice'
  let renewals = 0
  let signIns = 0
  /** The tokens that hold, by whose they are. */
  const owners = new Map<string, Principal>()
  const grant = (owner: Principal, nth: number) => {
    const access = `CANARY-access-of-${owner}-${nth}`
    owners.set(`Bearer ${access}`, owner)
    const refresh_token = `CANARY-refresh-of-${owner}-${nth}`
    return [200, { access_token: access, token_type: 'Bearer', expires_in: LIFETIME, refresh_token }] as const
  }
  const as = await ScriptedAs.start(t, {
    callback: (params) => params.set('code', `CANARY-code-of-${signingIn}-${++signIns}`),
    token: ({ params }, nth) => {
      const given = params.get('refresh_token') ?? params.get('code') ?? ''
      if (params.has('refresh_token')) renewals++
      return grant(/of-(\w+)-/.exec(given)?.[1] as Principal, nth)
    },
  })

  let mixed = 0
  const answered = { alice: 0, bob: 0 }
  const server = await PlainHttp.start(t, ({ message, path, headers }, response) => {
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return sendText(response, JSON.stringify({ resource: server.url, authorization_servers: [as.issuer] }))
    const owner = owners.get(headers.authorization ?? '')
    if (owner === undefined) return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    // What arrives is not kept: there is much of it.
    server.received.length = 0
    const reply = (result: object) =>
      sendText(
        response,
        JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { resultType: 'complete', ...result } }),
      )
    const { arguments: given } = (message?.['params'] ?? {}) as { arguments?: { who?: string } }
    switch (message?.['method']) {
      case 'server/discover':
        return reply({
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
          ttlMs: 0,
          cacheScope: 'private',
        })
      case 'tools/list':
        // It says that everybody may have it, which is wrong.
        return reply({
          tools: [{ name: owner, inputSchema: { type: 'object' } }],
          ttlMs: 60_000,
          cacheScope: 'public',
        })
      case 'tools/call':
        if (given?.who !== owner) mixed++
        answered[owner]++
        return reply({ content: [{ type: 'text', text: owner }] })
      default:
        return response.writeHead(404).end()
    }
  })

  const folder = join(temporaryFolder(t), 'tokens')
  for (const account of PRINCIPALS) {
    const [, { access_token: access, refresh_token: refresh }] = grant(account, 0)
    const expires = Date.now() + LIFETIME * 1_000
    await storeToken(folder, server.url, {
      account,
      access,
      refresh,
      expires,
      issuer: as.issuer,
      resource: server.url,
    })
  }
  const { signIn } = personParts(t, { folder })
  const tokens = Object.fromEntries(PRINCIPALS.map((principal) => [principal, tokenOf(principal)]))
  const settings = { auth: { tokens }, log: { level: 'error' } }
  const { url, bridge, log } = await startBridge(t, { url: server.url }, settings, { signIn })
  const sessions = Object.fromEntries(
    await Promise.all(
      PRINCIPALS.map(async (principal) => {
        const { headers } = await post(url, initialize(LEGACY), {
          ...BOTH,
          authorization: `Bearer ${tokenOf(principal)}`,
        })
        return [principal, String(headers['mcp-session-id'])] as const
      }),
    ),
  )

  const wrong: string[] = []
  let waiting = 0
  /** One call of a principal, of one of three kinds. */
  const ask = async (principal: Principal, nth: number) => {
    const authorization = `Bearer ${tokenOf(principal)}`
    const params = { name: 'whoami', arguments: { who: principal } }
    const kind = nth % 20 === 0 ? 'list' : nth % 3 === 0 ? 'legacy' : 'modern'
    const body = JSON.stringify({ jsonrpc: '2.0', id: nth, method: 'tools/call', params })
    const session = { 'mcp-protocol-version': LEGACY, 'mcp-session-id': sessions[principal] }
    const headers = { authorization }
    const { text, message } =
      kind === 'legacy'
        ? await post(url, body, { ...BOTH, ...session, ...headers })
        : await call(url, kind === 'list' ? 'tools/list' : 'tools/call', kind === 'list' ? {} : params, { headers })
    log.length = 0
    if (/sign_in_(?:required|pending)|mcp_bridge_sign_in/.test(text)) return void waiting++
    const { content, tools } = (message.result ?? {}) as { content?: { text: string }[]; tools?: { name: string }[] }
    const said = kind === 'list' ? tools?.[0]?.name : content?.[0]?.text
    if (said !== principal) wrong.push(`${principal} ${kind}: ${text.slice(0, 200)}`)
  }

  let asked = 0
  const callers = Array.from({ length: AT_ONCE }, async () => {
    // Quick calls are over before a token has to be renewed.
    while (asked < CALLS || renewals === 0) {
      const nth = asked++
      await ask(PRINCIPALS[nth % 2] as Principal, nth)
    }
  })
  const accounts = bridge.mounts.get('test')?.accounts
  const signing = (async () => {
    for (let next = SIGNED_IN_FOR; next < CALLS; next += SIGNED_IN_FOR) {
      while (asked < next) await new Promise((resolve) => setTimeout(resolve, 5))
      signingIn = PRINCIPALS[signIns % 2] as Principal
      await accounts?.of(signingIn).logout()
      await accounts?.of(signingIn).login([], AbortSignal.timeout(60_000))
    }
  })()
  await Promise.all([...callers, signing])

  t.same(wrong.slice(0, 5), [])
  t.equal(mixed, 0, 'no token of another at the server')
  t.ok(renewals > 0, `${renewals} renewals`)
  t.ok(signIns > 0, `${signIns} sign-ins`)
  t.ok(
    answered.alice > CALLS / 4 && answered.bob > CALLS / 4,
    `answered ${JSON.stringify(answered)}, ${waiting} waited for a sign-in`,
  )
})
