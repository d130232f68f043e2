/** A bridge that starts before its Redis: what it says of Redis and of servers, and what becomes of it. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import t from 'tap'
import { main, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { PlainHttp, sendText } from '../support/plain-http.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { ScriptedAs } from '../support/scripted-as.js'

/** A modern server that requires a token, which replicas keep in Redis. */
async function guarded(t: Parameters<typeof ScriptedAs.start>[0]): Promise<object> {
  const as = await ScriptedAs.start(t)
  const server: PlainHttp = await PlainHttp.start(t, ({ message, path, headers }, response) => {
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return sendText(response, JSON.stringify({ resource: server.url, authorization_servers: [as.issuer] }))
    if (headers.authorization === undefined) return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    const result =
      '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}'
    sendText(response, `{"jsonrpc":"2.0","id":${JSON.stringify(message?.['id'])},"result":${result}}`)
  })
  return { url: server.url, oauth: { clientId: 'robot' } }
}

for (const others of [{}, { other: { command: execPath, args: [main, 'demo', 'modern-server'] } }])
  t.test(
    `a bridge that starts without its Redis names Redis and not a server, and all is well when it comes: ${Object.keys(others).length} other servers`,
    { skip: noRedis },
    async (t) => {
      const redis = await RedisServer.start(t)
      await redis.stop()
      const config = join(temporaryFolder(t), 'config.json')
      const settings = {
        mcpServers: { orders: await guarded(t), ...others },
        listen: 'http://127.0.0.1:0/mcp',
        admin: 'http://127.0.0.1:0',
        // People sign in at a page, and replicas keep their tokens in Redis.
        publicUrl: 'http://localhost:8080',
        auth: { tokens: { somebody: 'token-of-somebody-0123456789' } },
        redis: { url: redis.url },
        stateKeys: ['a secret that all the replicas know of'],
        log: { format: 'json' },
      }
      writeFileSync(config, JSON.stringify(settings), { mode: 0o600 })
      const program = startProgram(t, ['--config', config])
      const [, admin = ''] = await says(program, /"url":"(http:[^"]+)".*"serving health/)
      const states = async () =>
        (await (await fetch(`${admin}/readyz`)).json()) as {
          redis: string
          servers: Record<string, { state: string; why?: string }>
        }
      await says(program, /"event":"redis_unavailable","why":"connect ECONNREFUSED/)
      t.match(await states(), { redis: 'down' })
      await redis.start()
      await says(program, /"event":"sign_in_required","server":"orders"/)
      await until(async () => (await states()).redis === 'up', 'Redis being up')
      const { orders } = (await states()).servers
      t.equal(orders?.why, undefined)
      t.notMatch(program.stderr(), /"event":"server_unavailable"/, 'no server is to blame')
    },
  )
