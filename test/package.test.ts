/** What `npm pack` makes: it runs from its tarball, in a folder where nothing else is. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { says, startProgram } from './support/cli.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { call } from './support/modern.js'
import { noRedis, RedisServer } from './support/redis.js'

const run = promisify(execFile)

void t.test('the package runs from its tarball in an empty folder, alone', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-package-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  await run('npm', ['pack', '--pack-destination', folder])
  const [tarball = ''] = readdirSync(folder)
  t.match(tarball, /^mcp-bridge-.*\.tgz$/)

  await run(
    'npm',
    ['install', '--no-audit', '--no-fund', '--offline', '--no-save', '--prefix', folder, `./${tarball}`],
    { cwd: folder },
  )
  const installed = readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))
  t.same(installed, ['mcp-bridge'], 'no other package comes with it')
  const manifest = JSON.parse(readFileSync(join(folder, 'node_modules/mcp-bridge/package.json'), 'utf8')) as {
    scripts: object
  }
  t.notMatch(Object.keys(manifest.scripts).join(), /install/, 'nothing runs when it is installed')

  const server = legacyStdio(t).server
  const program = startProgram(
    t,
    ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', '--', server.command, ...server.args],
    {},
    [join(folder, 'node_modules/.bin/mcp-bridge')],
  )
  const [url] = await says(program, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
  const answer = await call(url, 'tools/call', { name: 'echo', arguments: { a: 1 } })
  t.equal(answer.status, 200)
  t.match(answer.message, { result: { resultType: 'complete' } })

  if (noRedis) return t.comment(`not as a replica: ${noRedis}`)
  const redis = await RedisServer.start(t)
  const config = join(folder, 'config.json')
  const listen = 'http://127.0.0.1:0/mcp'
  const shared = { redis: { url: redis.url }, stateKeys: ['a secret that all the replicas know of'] }
  writeFileSync(config, JSON.stringify({ mcpServers: { it: server }, listen, log: { format: 'json' }, ...shared }))
  const replica = startProgram(t, ['--config', config], {}, [join(folder, 'node_modules/.bin/mcp-bridge')])
  await says(replica, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
  t.notMatch(replica.stderr(), /Redis is not available/, 'what is loaded only for replicas is there')
})
