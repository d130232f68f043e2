/** Calls that wait for their clients: what many of them cost, that they end, and that nobody else gets at them. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { ABLE, ADA, NAME, of, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'

const PARKED = 1_000
const AT_ONCE = 32
/** How long an answer is waited for, which no other timer has. */
const ANSWER = 1_234_567
/** Bytes that a parked call may cost. */
const MOST = 20 * 1024

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

async function start(t: Test, settings: object = {}) {
  const asker = await startAsker(t, 'over stdio')
  const limits = { parked: 2 * PARKED, parkedPerPrincipal: 2 * PARKED }
  const { url } = await startBridge(t, asker.server, { limits, log: { level: 'error' }, ...settings })
  return { asker, url, client: talk(url, { capabilities: ABLE }) }
}

/** Bytes in use when nothing more can be collected. */
async function inUse(): Promise<number> {
  for (let again = 0; again < 3; again++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    collect()
  }
  return process.memoryUsage().heapUsed
}

t.test(`${PARKED} parked calls use little memory each, and all end at their time limit`, async (t) => {
  const timeLimit = holdTimers(t, ANSWER)
  const { asker, client } = await start(t, { timeouts: { answer: ANSWER } })
  const first = await client.steps([{ ask: [NAME] }])
  await client.again(first, { [String(first.keys[0])]: ADA })
  const before = await inUse()
  const asked = of(asker, 'tools/call').length
  let parked = 0
  const park = async () => {
    for (; parked < PARKED; ) {
      parked++
      const round = await client.steps([{ ask: [NAME] }])
      if (round.keys.length !== 1) throw new Error(round.text)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, park))
  const each = ((await inUse()) - before) / PARKED
  t.ok(each < MOST, `${Math.round(each)} bytes each`)
  t.equal(of(asker, 'tools/call').length - asked, PARKED)

  t.equal(timeLimit.waiting, PARKED)
  timeLimit.run()
  const cancelled = () => of(asker, 'notifications/cancelled').length
  const given = () => of(asker).filter(({ result }) => (result as { action?: string })?.action === 'cancel').length
  await until(() => cancelled() >= PARKED && given() >= PARKED, 'their end')
  t.equal(cancelled(), PARKED, 'each call is cancelled')
  t.equal(given(), PARKED, 'each question is answered')
  const after = (await inUse()) - before
  t.ok(after < (PARKED * each) / 2 + 2 * 1024 * 1024, `${Math.round(after / 1024)} KiB are left`)
})

t.test('a state with any bit changed is refused, and the server sees nothing of it', async (t) => {
  const { asker, client } = await start(t)
  const round = await client.steps([{ ask: [NAME] }])
  const key = String(round.keys[0])
  const before = asker.messages().length
  const wrong: string[] = []
  let tried = 0
  const states = [...flips(round.state)]
  const attempt = async () => {
    for (let state = states.pop(); state !== undefined; state = states.pop()) {
      tried++
      const { message } = await client.again(round, { [key]: ADA }, { requestState: state })
      if (message.error?.code !== -32602) wrong.push(state)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, attempt))
  t.ok(tried >= 6 * round.state.length, `${tried} states`)
  t.same(wrong, [])
  t.equal(asker.messages().length, before, 'the server has seen nothing')
  t.same((await client.again(round, { [key]: ADA })).said, [ADA], 'and the call goes on')
})

/** The state with each bit of each character turned over, as far as what comes of it is text. */
function* flips(state: string): Generator<string> {
  for (let at = 0; at < state.length; at++) {
    for (let bit = 0; bit < 7; bit++) {
      const code = state.charCodeAt(at) ^ (1 << bit)
      if (code >= 0x20 && code < 0x7f) yield state.slice(0, at) + String.fromCharCode(code) + state.slice(at + 1)
    }
  }
}
