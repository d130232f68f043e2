/** Programs whose lines take long to arrive, or never end. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Answer, call } from '../support/modern.js'
import { unkind } from '../support/unkind.js'

/** Milliseconds for which an incomplete line may stand still. */
const STILL = 30_000
const ANSWER = '{"jsonrpc":"2.0","id":{id},"result":{"content":[]}}\n'
const BOTH_ANSWERS = ANSWER.replace('{id}', '{before}') + ANSWER

/** Calls a tool that writes these bytes as they are; `{id}` in them is the id of the call, `{before}` of the one before. */
type Raw = (bytes: string) => Promise<Answer>

async function start(t: Test) {
  const program = unkind(t)
  const { url } = await startBridge(t, program.server, { timeouts: { write: 2 * STILL } })
  const args = (bytes: string) => ({ hex: Buffer.from(bytes, 'latin1').toString('hex') })
  const modern: Raw = (bytes) => call(url, 'tools/call', { name: 'raw', arguments: args(bytes) })
  const legacy = await LegacyClient.open(url)
  const lanes: [name: string, raw: Raw][] = [
    ['a modern client', modern],
    ['a direct session', (bytes) => legacy.call('raw', args(bytes))],
  ]
  for (const [, raw] of lanes) await raw(ANSWER)
  return { lanes, pids: program.pids() }
}

t.test('white space after the line break of a message is no unfinished line', async (t) => {
  const time = holdTimers(t, STILL)
  const { lanes } = await start(t)
  for (const [name, raw] of lanes)
    for (const space of [' ', '\t', '\r\n\r\n', '\n\n\n', '  \t\r']) {
      t.match((await raw(`${ANSWER}${space}`)).message, { result: { content: [] } }, name)
      t.equal(time.waiting, 0, `${name}, ${JSON.stringify(space)}`)
      t.match((await raw(ANSWER)).message, { result: { content: [] } }, `${name}: it still runs`)
    }
})

t.test('waits for a line that continues to arrive', async (t) => {
  const time = holdTimers(t, STILL)
  const { lanes } = await start(t)
  for (const [name, raw] of lanes) {
    const slow = raw('{"jsonrpc":"2.0","id":{id},"result":{"con')
    await until(() => time.waiting === 1, 'the wait for the rest')
    const { set } = time
    const other = raw('tent":[')
    await until(() => time.set === set + 1, 'another wait')
    t.equal(time.waiting, 1, `${name}: in place of the first one`)
    const last = raw(`]}}\n${BOTH_ANSWERS}`)
    for (const answer of await Promise.all([slow, other, last]))
      t.match(answer.message, { result: { content: [] } }, name)
    t.equal(time.waiting, 0)
  }
})

t.test('a stalled line costs the call that it answers, and no other', async (t) => {
  const time = holdTimers(t, STILL)
  const { lanes } = await start(t)
  const halves = ['{"jsonrpc":"2.0","id":{id},"result":{"con', '{"result":{"con', '{"id":"{id}","error":{"code":1,']
  for (const [name, raw] of lanes)
    for (const half of halves) {
      const stuck = raw(half)
      await until(() => time.waiting === 1, 'the wait for the rest')
      time.run()
      t.match(
        (await stuck).message.error,
        {
          message: /stopped in the middle of its answer/,
          data: { reason: 'upstream_protocol_error', outcome: 'unknown' },
        },
        `${name}, ${half}`,
      )
      // The rest of the line, then an answer.
      t.match((await raw(`]}}\n${ANSWER}`)).message, { result: { content: [] } }, `${name}: it still runs`)
    }
})

t.test('a stalled half of a notification costs no call', async (t) => {
  const time = holdTimers(t, STILL)
  const { lanes } = await start(t)
  for (const [name, raw] of lanes) {
    const other = raw('{"jsonrpc":"2.0","method":"notifications/mess')
    await until(() => time.waiting === 1, 'the wait for the rest')
    time.run()
    const last = raw(`age"}\n${BOTH_ANSWERS}`)
    for (const answer of await Promise.all([other, last])) t.match(answer.message, { result: { content: [] } }, name)
  }
})
