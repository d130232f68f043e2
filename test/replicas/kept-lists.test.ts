/** Replicas share what the servers of a group have listed: each lists at once what another one got for the same person. */
import { execFile } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

const TOKENS = { ann: 'token-of-ann-0123456789-0123456789', ben: 'token-of-ben-0123456789-0123456789' }

const run = promisify(execFile)

async function setUp(t: Test) {
  const redis = await RedisServer.start(t)
  const folder = temporaryFolder(t)
  const startFile = join(folder, 'start')
  writeFileSync(startFile, '')
  const mcpServers = { one: legacyStdio(t, { startFile }).server, two: legacyStdio(t, { startFile }).server }
  const state = join(folder, 'state')
  /** Starts a replica. Resolves to what a person lists there. */
  const start = async () => {
    const listen = `http://127.0.0.1:${await freePort()}/mcp`
    const config = temporaryFile(t, 'mcp.json', {
      mcpServers,
      listen,
      groups: { all: { path: '/mcp', wait: 500 } },
      auth: { tokens: TOKENS },
      redis: { url: redis.url },
      stateKeys: ['a secret that all the replicas know of'],
    })
    const bridge = startProgram(t, ['--config', config, '--log-format', 'json'], { XDG_STATE_HOME: state })
    await says(bridge, /"listening"/)
    const list = async (who: keyof typeof TOKENS) => {
      const headers = { authorization: `Bearer ${TOKENS[who]}` }
      return (await call(listen, 'tools/list', {}, { headers })).message.result?.['tools'] as unknown[]
    }
    return Object.assign(list, { log: bridge })
  }
  const records = async () => {
    const { stdout } = await run('redis-cli', ['-p', `${redis.port}`, 'KEYS', '*lists:*'])
    return stdout.split('\n').filter(Boolean)
  }
  const stall = () => rmSync(startFile)
  const go = () => writeFileSync(startFile, '')
  return { redis, start, records, stall, go, folder: join(state, 'mcp-bridge', 'lists') }
}

t.test(
  'what one replica has listed to a person, another one lists while no program answers',
  { skip: noRedis },
  async (t) => {
    const { redis, start, records, stall, folder } = await setUp(t)
    const [first, second] = [await start(), await start()]
    let whole: unknown[] = []
    await until(async () => {
      whole = await first('ann')
      return whole.length > 10
    }, 'a whole list')
    await until(async () => (await records()).length === 2, 'a record for each server')
    stall()
    t.same(await second('ann'), whole)
    t.same(await second('ben'), [], 'and to nobody else')
    t.notOk(existsSync(folder), 'nothing is in files')
    const third = await start()
    t.same(await third('ann'), whole, 'also one that has just started')
    await redis.stop()
    t.same(await third('ann'), whole, 'what it knows needs no Redis')
    const fourth = await start()
    t.same(await fourth('ann'), [], 'without Redis nothing is known, and that is answered')
  },
)

t.test('a record in Redis that cannot be decrypted is said once, and written again', { skip: noRedis }, async (t) => {
  const { redis, start, records, stall, go } = await setUp(t)
  const first = await start()
  let whole: unknown[] = []
  await until(async () => {
    whole = await first('ann')
    return whole.length > 10
  }, 'a whole list')
  await until(async () => (await records()).length === 2, 'a record for each server')
  const damaged = Buffer.from('not what it was').toString('base64')
  for (const key of await records()) await run('redis-cli', ['-p', `${redis.port}`, 'SET', key, damaged])
  // Otherwise the programs may be ready before anybody asks for what was kept.
  stall()
  const second = await start()
  t.same(await second('ann'), [])
  go()
  await until(async () => (await second('ann')).length === whole.length, 'a whole list')
  t.same(await second('ann'), whole)
  t.equal(second.log.stderr().match(/lists_not_kept/g)?.length, 1)
  t.match(second.log.stderr(), /cannot be decrypted/)
  const isWritten = async (key: string) =>
    (await run('redis-cli', ['-p', `${redis.port}`, 'GET', key])).stdout.trim() !== damaged
  await until(async () => (await Promise.all((await records()).map(isWritten))).every(Boolean), 'new records')
})
