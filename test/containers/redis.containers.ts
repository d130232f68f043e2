/** Runs alone: containers. A bridge whose Redis is late, or refuses it: it serves, says why, and finds Redis when it can. */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CONFINED, docker, logsOf, newName, published, startContainer, untilHealthy } from '../support/containers.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { call } from '../support/modern.js'

t.test('a bridge serves before its Redis is there and while it refuses, and both heal', async (t) => {
  const network = newName(t, 'network', 'rm')
  await docker('network', 'create', network)
  const folder = temporaryFolder(t)
  // The user of the container reads it.
  chmodSync(folder, 0o755)
  const settings = {
    mcpServers: { modern: { command: 'node', args: ['/app/dist/main.js', 'demo', 'modern-server'] } },
    listen: 'http://0.0.0.0:8080/mcp',
    admin: 'http://0.0.0.0:9090',
    allowUnauthenticated: true,
    redis: { url: 'redis://late:6379' },
    replicas: { address: 'http://0.0.0.0:8090' },
    stateKeys: ['a-key-of-a-test-0123456789abcdef'],
    log: { format: 'json' },
  }
  writeFileSync(join(folder, 'mcp.json'), JSON.stringify(settings), { mode: 0o644 })
  const options = [...CONFINED, '--tmpfs=/tmp', `--network=${network}`, `--volume=${folder}:/etc/mcp-bridge:ro`]
  const ports = ['--publish=127.0.0.1::8080', '--publish=127.0.0.1::9090']
  const name = await startContainer(t, [...options, ...ports], ['--config', '/etc/mcp-bridge/mcp.json'])
  await untilHealthy(name)
  const [url, admin] = [`${await published(name, 8080)}/mcp`, await published(name, 9090)]
  const ready = async () => {
    const answer = await fetch(`${admin}/readyz`)
    const { redis, servers } = (await answer.json()) as { redis: string; servers: Record<string, { state: string }> }
    return { status: answer.status, redis, server: servers['modern']?.state }
  }
  const becomes = (redis: string) =>
    until(async () => JSON.stringify(await ready()) === JSON.stringify({ status: 200, redis, server: 'ready' }), redis)

  await becomes('down')
  t.equal((await call(url, 'tools/list')).status, 200)
  const redis = newName(t)
  const args = ['redis-server', '--save', '']
  await docker(
    'run',
    '--detach',
    `--name=${redis}`,
    `--network=${network}`,
    '--network-alias=late',
    'redis:7-alpine',
    ...args,
  )
  await becomes('up')

  // Its own words, and not that the socket was closed. A connection that is open already stays.
  await docker('exec', redis, 'redis-cli', 'config', 'set', 'protected-mode', 'yes')
  await docker('exec', redis, 'redis-cli', 'client', 'kill', 'type', 'normal', 'skipme', 'yes')
  await docker('exec', redis, 'redis-cli', 'client', 'kill', 'type', 'pubsub')
  await until(async () => /DENIED/.test(await logsOf(name)), 'the words of Redis')
  await becomes('down')
  t.equal((await call(url, 'tools/list')).status, 200)
  await docker('exec', redis, 'redis-cli', 'config', 'set', 'protected-mode', 'no')
  await becomes('up')
})
