/** A result that one replica has cut is read at another one, by its caller only, and not once it was pushed out. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ROOM } from '../../src/middle/policy/cut/room.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { call } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

const TOKENS = { ann: 'token-of-ann-0123456789-0123456789', ben: 'token-of-ben-0123456789-0123456789' }
const LENGTHY = {
  command: process.execPath,
  args: [fileURLToPath(new URL('../fixtures/lengthy.mjs', import.meta.url))],
  results: { cut: '4 KiB' },
}
const run = promisify(execFile)

async function setUp(t: Test) {
  const redis = await RedisServer.start(t)
  const settings = {
    auth: { tokens: TOKENS },
    redis: { url: redis.url },
    stateKeys: ['a secret that all the replicas know of'],
  }
  const bridges = [await startBridge(t, LENGTHY, settings), await startBridge(t, LENGTHY, settings)] as const
  const ask = (at: 0 | 1, who: keyof typeof TOKENS, method: string, params: Record<string, unknown>) =>
    call(bridges[at].url, method, params, { headers: { authorization: `Bearer ${TOKENS[who]}` } })
  const long = async (at: 0 | 1, who: keyof typeof TOKENS, bytes: number) => {
    const { message } = await ask(at, who, 'tools/call', { name: 'long', arguments: { bytes } })
    const blocks = message.result?.['content'] as { type: string; text?: string; uri: string }[]
    return { first: blocks[0]?.text, link: blocks.find(({ type }) => type === 'resource_link')?.uri }
  }
  await until(async () => (await ask(1, 'ann', 'tools/list', {})).message.result !== undefined, 'both replicas')
  await until(async () => (await long(0, 'ann', 5_000)).link !== undefined, 'a Redis that can be used')
  return { redis, ask, long }
}

t.test('another replica has the rest of a result, for its caller only', { skip: noRedis }, async (t) => {
  const { redis, ask, long } = await setUp(t)
  const { first, link } = await long(0, 'ann', 10_000)
  const parts = [first]
  for (const number of [2, 3]) {
    const { message } = await ask(1, 'ann', 'resources/read', { uri: `${link?.slice(0, -2)}/${number}` })
    parts.push((message.result?.['contents'] as { text: string }[])[0]?.text)
  }
  t.equal(parts.join(''), 'é'.repeat(5_000))
  const foreign = (await ask(1, 'ben', 'resources/read', { uri: link })).message.error
  t.match(foreign, { code: -32602, message: /^Resource not found/ })
  const { stdout } = await run('redis-cli', ['-p', `${redis.port}`, 'KEYS', '*result:*'])
  const values = await Promise.all(
    stdout
      .split('\n')
      .filter(Boolean)
      .map(async (key) => (await run('redis-cli', ['-p', `${redis.port}`, 'GET', key])).stdout),
  )
  t.ok(values.length > 2)
  t.notOk(
    values.some((value) => value.includes('é')),
    'nobody reads it in Redis',
  )
})

t.test('the bounds hold for all replicas together', { skip: noRedis }, async (t) => {
  const { ask, long } = await setUp(t)
  const { link: gone } = await long(0, 'ann', 12_000)
  const { link: stays } = await long(1, 'ben', 12_000)
  for (let more = 0; more < ROOM.owner.entries; more++) await long(more % 2 === 0 ? 0 : 1, 'ann', 14_000 + 2 * more)
  for (const at of [0, 1] as const) {
    t.match((await ask(at, 'ann', 'resources/read', { uri: gone })).message.error?.message, /not kept any more/)
    t.ok((await ask(at, 'ben', 'resources/read', { uri: stays })).message.result)
  }
})

t.test('without Redis, results pass whole', { skip: noRedis }, async (t) => {
  const { redis, long } = await setUp(t)
  await redis.stop()
  const { first, link } = await long(0, 'ann', 10_000)
  t.equal(link, undefined)
  t.equal(first, 'é'.repeat(5_000))
})
