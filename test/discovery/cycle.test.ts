import t, { type Test } from 'tap'
import {
  CoolingDown,
  Cycles,
  type CyclesOptions,
  type FailedCycle,
  freshness,
} from '../../src/services/discovery/cycle.js'
import { failure } from '../../src/services/discovery/failure.js'

const MINUTE = 60_000
const ENDPOINT = 'https://mcp.example/mcp'

/** Time that passes when something sleeps, or when a test says so. */
function simulated(options: Partial<CyclesOptions> = {}) {
  let now = 1_000_000
  const slept: number[] = []
  const told: FailedCycle[] = []
  const cycles = new Cycles<string>({
    onFailed: (failed) => told.push(failed),
    now: () => now,
    sleep: async (milliseconds) => {
      slept.push(milliseconds)
      now += milliseconds
    },
    random: () => 0.5,
    ...options,
  })
  return {
    cycles,
    told,
    slept,
    pass: (milliseconds: number) => {
      now += milliseconds
    },
    now: () => now,
  }
}

const transient = () => failure('connect', 'refused', 'nobody listens')
const lasting = () => failure('tls', 'certificate', 'expired')

/** Fails for the first so many attempts. */
function flaky(failures: number, error: () => Error = transient) {
  const attempts = { count: 0 }
  const attempt = async () => {
    attempts.count++
    if (attempts.count <= failures) throw error()
    return { value: `answer ${attempts.count}`, freshFor: 0 }
  }
  return { attempts, attempt }
}

t.test('retries a temporary failure after 1, 2 and 4 seconds', async (t) => {
  const cases: [failures: number, slept: number[], attempts: number, comes: boolean][] = [
    [0, [], 1, true],
    [1, [1_000], 2, true],
    [2, [1_000, 2_000], 3, true],
    [3, [1_000, 2_000, 4_000], 4, true],
    [4, [1_000, 2_000, 4_000], 4, false],
  ]
  for (const [failures, slept, count, comes] of cases) {
    const world = simulated()
    const { attempts, attempt } = flaky(failures)
    const answer = world.cycles.run(ENDPOINT, attempt)
    if (comes) t.equal(await answer, `answer ${count}`)
    else await t.rejects(answer, { name: 'Failure', reason: 'refused' })
    t.same(world.slept, slept, `${failures} failures`)
    t.equal(attempts.count, count)
    t.equal(world.told.length, comes ? 0 : 1, 'a retry is no failed cycle')
  }
})

t.test('does not retry a permanent failure', async (t) => {
  for (const error of [
    lasting,
    () => new TypeError('a mistake'),
    () => Object.assign(new Error(), { transient: 'yes' }),
  ]) {
    const world = simulated()
    const { attempts, attempt } = flaky(9, error)
    await t.rejects(world.cycles.run(ENDPOINT, attempt))
    t.equal(attempts.count, 1)
    t.same(world.slept, [])
    t.equal(world.told.length, 1)
  }
})

t.test('retries come up to a fifth earlier or later', async (t) => {
  const cases: [random: number, slept: number[]][] = [
    [0, [800, 1_600, 3_200]],
    [0.25, [900, 1_800, 3_600]],
    [0.999999, [1_200, 2_400, 4_800]],
  ]
  for (const [random, expected] of cases) {
    const world = simulated({ random: () => random })
    await t.rejects(world.cycles.run(ENDPOINT, flaky(9).attempt))
    t.same(world.slept.map(Math.round), expected)
  }
  const world = simulated({ random: Math.random })
  for (let round = 0; round < 100; round++)
    await t.rejects(world.cycles.run(`https://host-${round}.example/`, flaky(9).attempt))
  const relative = world.slept.map((milliseconds, index) => milliseconds / (1_000 * 2 ** (index % 3)))
  t.ok(relative.every((factor) => factor >= 0.8 && factor <= 1.2))
  t.ok(new Set(relative).size > 100)
})

t.test('an answer is valid for as long as it says, within bounds', async (t) => {
  const cases: [freshFor: number, holds: number][] = [
    [Number.NEGATIVE_INFINITY, 5 * MINUTE],
    [Number.NaN, 5 * MINUTE],
    [-1, 5 * MINUTE],
    [0, 5 * MINUTE],
    [5 * MINUTE - 1, 5 * MINUTE],
    [5 * MINUTE + 1, 5 * MINUTE + 1],
    [20 * MINUTE, 20 * MINUTE],
    [60 * MINUTE, 60 * MINUTE],
    [60 * MINUTE + 1, 60 * MINUTE],
    [Number.POSITIVE_INFINITY, 60 * MINUTE],
  ]
  for (const [freshFor, holds] of cases) {
    const { cycles, pass } = simulated()
    let attempts = 0
    const attempt = async () => ({ value: `answer ${++attempts}`, freshFor })
    t.equal(await cycles.run(ENDPOINT, attempt), 'answer 1')
    pass(holds - 1)
    t.equal(await cycles.run(ENDPOINT, attempt), 'answer 1', `${freshFor} still holds`)
    pass(1)
    t.equal(await cycles.run(ENDPOINT, attempt), 'answer 2', `${freshFor} no longer holds`)
  }
})

t.test('headers determine how long an answer is valid', async (t) => {
  const cases: [header: string | string[] | undefined, seconds: number][] = [
    [undefined, 300],
    ['', 300],
    ['no-store', 300],
    ['no-store, max-age=3600', 300],
    ['no-cache, max-age=3600', 300],
    ['NO-STORE', 300],
    ['max-age=0', 300],
    ['max-age=299', 300],
    ['max-age=300', 300],
    ['max-age=301', 301],
    ['public, max-age=600', 600],
    ['Max-Age=600', 600],
    ['max-age="600"', 600],
    ['max-age=600, must-revalidate', 600],
    ['max-age=3600', 3_600],
    ['max-age=3601', 3_600],
    ['max-age=31536000', 3_600],
    [`max-age=${'9'.repeat(400)}`, 3_600],
    ['max-age=-600', 300],
    ['max-age=6e2', 300],
    ['max-age=600.5', 300],
    ['max-age=0x258', 300],
    ['max-age', 300],
    ['max-age=', 300],
    ['x-max-age=600', 300],
    ['s-maxage=600', 300],
    ['max-age=1200, max-age=600', 600],
    [['max-age=1200', 'max-age=600'], 600],
  ]
  for (const [header, seconds] of cases)
    t.equal(freshness({ 'cache-control': header }), seconds * 1_000, JSON.stringify(header)?.slice(0, 60) ?? 'none')
})

t.test('skips an endpoint for five minutes after its third failed cycle in a row', async (t) => {
  const world = simulated()
  const { cycles, told, pass } = world
  const { attempts, attempt } = flaky(99, lasting)
  for (let cycle = 1; cycle <= 3; cycle++) {
    t.equal(cycles.coolsUntil(ENDPOINT), undefined)
    await t.rejects(cycles.run(ENDPOINT, attempt), { name: 'Failure', reason: 'certificate' })
    t.match(told.at(-1), { endpoint: ENDPOINT, phase: 'tls', reason: 'certificate', opens: cycle === 3 })
  }
  t.equal(cycles.coolsUntil(ENDPOINT), world.now() + 5 * MINUTE)
  const until = world.now() + 5 * MINUTE
  pass(5 * MINUTE - 1)
  const error = await cycles.run(ENDPOINT, attempt).catch((thrown: unknown) => thrown)
  t.type(error, CoolingDown)
  t.match(error, { until, phase: 'cooling', transient: false, message: /expired/ })
  t.equal(attempts.count, 3, 'nobody asked')
  t.equal(told.length, 3, 'and to leave it alone is no failed cycle')
  t.equal(await cycles.run('https://other.example/', async () => ({ value: 'fine', freshFor: 0 })), 'fine')

  // One trial, without retries.
  pass(1)
  t.equal(cycles.coolsUntil(ENDPOINT), undefined)
  const trial = flaky(99)
  await t.rejects(cycles.run(ENDPOINT, trial.attempt), { name: 'Failure', reason: 'refused' })
  t.equal(trial.attempts.count, 1)
  t.same(world.slept, [])
  t.match(told.at(-1), { reason: 'refused', opens: true })
  t.equal(told.length, 4)
  await t.rejects(cycles.run(ENDPOINT, attempt), { name: 'CoolingDown' })

  // Another one, which succeeds: from here on it is an endpoint like any other.
  pass(5 * MINUTE)
  t.equal(await cycles.run(ENDPOINT, async () => ({ value: 'back', freshFor: 0 })), 'back')
  pass(5 * MINUTE)
  const again = flaky(99)
  for (let cycle = 1; cycle <= 3; cycle++) {
    await t.rejects(cycles.run(ENDPOINT, again.attempt), { name: 'Failure', reason: 'refused' })
    t.match(told.at(-1), { opens: cycle === 3 })
  }
  t.equal(again.attempts.count, 12, 'with all retries')
})

t.test('a success resets the count of failures', async (t) => {
  const { cycles, told, pass } = simulated()
  const bad = flaky(99, lasting).attempt
  for (let round = 0; round < 5; round++) {
    for (let cycle = 0; cycle < 2; cycle++)
      await t.rejects(cycles.run(ENDPOINT, bad), { reason: 'certificate', name: 'Failure' })
    t.equal(await cycles.run(ENDPOINT, async () => ({ value: 'fine', freshFor: 0 })), 'fine')
    pass(5 * MINUTE)
  }
  t.equal(told.length, 10)
  t.notOk(told.some(({ opens }) => opens))
})

/** Attempts that end when a test says so. */
function held(t: Test) {
  const waiting: (() => void)[] = []
  let running = 0
  const most = { count: 0 }
  const attempt = async (value = 'answer') => {
    running++
    most.count = Math.max(most.count, running)
    await new Promise<void>((resolve) => waiting.push(resolve))
    running--
    return { value, freshFor: 0 }
  }
  t.teardown(() => waiting.forEach((resolve) => resolve()))
  return { attempt, most, waiting, release: () => waiting.shift()?.() }
}
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

t.test('simultaneous requests for the same endpoint share one cycle', async (t) => {
  const { cycles, told } = simulated()
  let attempts = 0
  const attempt = async () => {
    attempts++
    await settle()
    throw lasting()
  }
  const all = await Promise.allSettled(Array.from({ length: 10 }, () => cycles.run(ENDPOINT, attempt)))
  t.ok(all.every(({ status }) => status === 'rejected'))
  t.equal(attempts, 1)
  t.equal(told.length, 1, 'one failed cycle, however many were waiting')
  const { attempt: slow, release, waiting } = held(t)
  const answers = Promise.all(Array.from({ length: 10 }, () => cycles.run('https://slow.example/', () => slow())))
  await settle()
  t.equal(waiting.length, 1)
  release()
  t.same(new Set(await answers), new Set(['answer']))
})

t.test('bounds simultaneous attempts, not counting those that wait for a retry', async (t) => {
  const { cycles } = simulated({ parallel: 3 })
  const { attempt, most, release, waiting } = held(t)
  const answers = Array.from({ length: 10 }, (_, index) => cycles.run(`https://${index}.example/`, () => attempt()))
  for (let ended = 0; ended < 10; ended++) {
    await settle()
    t.ok(waiting.length <= 3)
    release()
  }
  await Promise.all(answers)
  t.equal(most.count, 3)
  let wake = () => {}
  const sleeping = simulated({
    parallel: 1,
    sleep: () =>
      new Promise<void>((resolve) => {
        wake = resolve
      }),
  }).cycles
  const retried = sleeping.run(ENDPOINT, flaky(1).attempt)
  await settle()
  t.equal(await sleeping.run('https://other.example/', async () => ({ value: 'meanwhile', freshFor: 0 })), 'meanwhile')
  wake()
  t.equal(await retried, 'answer 2')
})

t.test('fetches a forgotten endpoint again, even while an answer is pending', async (t) => {
  const { cycles } = simulated()
  cycles.forget('https://unknown.example/')
  t.equal(await cycles.run(ENDPOINT, async () => ({ value: 'old', freshFor: 0 })), 'old')
  cycles.forget(ENDPOINT)
  const { attempt, release } = held(t)
  const early = cycles.run(ENDPOINT, () => attempt('too early'))
  await settle()
  cycles.forget(ENDPOINT)
  t.equal(await cycles.run(ENDPOINT, async () => ({ value: 'new', freshFor: 0 })), 'new')
  release()
  t.equal(await early, 'too early')
  t.equal(
    await cycles.run(ENDPOINT, async () => ({ value: 'newer', freshFor: 0 })),
    'new',
    'and does not take its place',
  )
})

t.test('a stopped cycle does not count as failed', async (t) => {
  const stop = new AbortController()
  const told: FailedCycle[] = []
  const cycles = new Cycles<string>({ onFailed: (failed) => told.push(failed), signal: stop.signal })
  const sleeping = cycles.run(ENDPOINT, flaky(9).attempt)
  const asking = cycles.run('https://slow.example/', async (signal) => {
    await new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)))
    return { value: 'never', freshFor: 0 }
  })
  await settle()
  stop.abort(new Error('stopping'))
  await t.rejects(sleeping)
  await t.rejects(asking, /stopping/)
  await t.rejects(cycles.run('https://later.example/', flaky(0).attempt), /stopping/)
  t.same(told, [])
})

t.test('reports a thrown string as an error of unknown reason', async (t) => {
  const { cycles, told } = simulated()
  await t.rejects(cycles.run(ENDPOINT, () => Promise.reject('just a text')))
  t.match(told[0], { phase: 'unknown', reason: 'unknown', error: { message: 'just a text' } })
})
