/** `mcp-bridge size`: what it computes, what it refuses, and that the documents have its figures. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseCommand } from '../../src/command/parse.js'
import { FIGURES, type Load, sizeOf, sizingInWords } from '../../src/command/size.js'

const NONE: Load = { calls: 0, sessions: 0, streams: 0, parked: 0, forwarded: undefined }
const page = readFileSync(new URL('../../docs/replicas.md', import.meta.url), 'utf8')

t.test('one replica more than is needed, so that one can stop', async (t) => {
  const { replicas, because } = sizeOf({ ...NONE, calls: 10 })
  t.same({ replicas, because }, { replicas: 2, because: 'one can stop' })
})

t.test('what decides is what needs the most replicas', async (t) => {
  const rows: [Partial<Load>, string][] = [
    [{ calls: 100_000 }, 'cpu'],
    [{ sessions: 200_000, streams: 0, forwarded: 0 }, 'sessions'],
    [{ streams: 200_000 }, 'connections'],
    [{ parked: 1_000_000 }, 'memory'],
  ]
  for (const [load, expected] of rows) t.equal(sizeOf({ ...NONE, ...load }).because, expected, JSON.stringify(load))
})

t.test('no replica is over a limit even while one is stopped, and one less would be', async (t) => {
  const isOver = (load: Load, serving: number, forwarded: number) => {
    const cores = (load.calls * FIGURES.call * (1 + forwarded * (FIGURES.forwarded - 1))) / 1e6 / serving
    const kib = load.sessions * FIGURES.session + load.streams * FIGURES.stream + load.parked * FIGURES.parked
    const mebibytes = FIGURES.base + kib / 1024 / serving
    return (
      cores > FIGURES.busy ||
      mebibytes > FIGURES.memory ||
      load.sessions / serving > FIGURES.sessions ||
      (load.streams + load.calls * FIGURES.seconds) / serving > FIGURES.connections
    )
  }
  for (const calls of [0, 1, 500, 5_000, 50_000, 1_000_000])
    for (const sessions of [0, 1, 10_000, 1_000_000])
      for (const forwarded of [0, 0.5, 0.9]) {
        const load = { calls, sessions, streams: sessions, parked: 20, forwarded }
        const { replicas } = sizeOf(load)
        t.notOk(isOver(load, replicas - 1, forwarded), JSON.stringify({ load, replicas }))
        if (replicas > 2) t.ok(isOver(load, replicas - 2, forwarded), `one less: ${JSON.stringify({ load, replicas })}`)
      }
})

t.test('without affinity more replicas forward more, and that is counted', async (t) => {
  const load = { ...NONE, sessions: 1_000, calls: 20_000 }
  const [without, withAffinity] = [sizeOf(load), sizeOf({ ...load, forwarded: 0 })]
  t.ok(without.replicas > withAffinity.replicas, `${without.replicas} and ${withAffinity.replicas}`)
  t.equal(without.forwarded, (without.replicas - 1) / without.replicas)
})

t.test('a million sessions are within reach, and Redis is not what breaks', async (t) => {
  const load = { calls: 20_000, sessions: 1_000_000, streams: 1_000_000, parked: 1_000, forwarded: 0 }
  const { replicas, redis } = sizeOf(load)
  t.ok(replicas > 100 && redis.perSecond < FIGURES.redis / 100, `${replicas} replicas`)
})

t.test('reads its flags, and refuses what is no number or no load', async (t) => {
  const read = (...flags: string[]) => parseCommand(['size', ...flags], {})
  t.same(read('--sessions', '10,000', '--calls', '500', '--forwarded', '50%', '--json'), {
    kind: 'size',
    load: { calls: 500, sessions: 10_000, streams: 10_000, parked: 0, forwarded: 0.5 },
    json: true,
  })
  for (const [flags, says] of [
    [[], 'size needs a load'],
    [['--calls', 'many'], '--calls needs a whole number'],
    [['--calls', '-5'], '--calls needs'],
    [['--calls', '5', '--forwarded', '101%'], '--forwarded needs a percentage'],
    [['--calls', '5', '--streams', '1.5'], '--streams needs a whole number'],
    [['--calls', '5', 'more'], 'size takes flags only'],
  ] as const)
    t.throws(() => read(...flags), new RegExp(says), flags.join(' '))
})

t.test('says what the chart needs', async (t) => {
  const load = { ...NONE, calls: 500, sessions: 10_000, streams: 10_000 }
  const text = sizingInWords(sizeOf(load))
  t.match(text, /replicaCount: \d/)
  t.match(text, /limits: \{ memory: \d+Mi \}/)
})

t.test('docs/replicas.md has the figures', async (t) => {
  const { call, forwarded, base, session, stream, parked, record } = FIGURES
  for (const [text, figure] of [
    ['a small translated call over HTTP', `${call} µs`],
    ['a forwarded call', `${forwarded} ×`],
    ['a replica before it has sessions', `${base} MiB`],
    ['a session of a legacy client', `${session} KiB`],
    ['its open stream', `${stream} KiB`],
    ['a parked call', `${parked} KiB`],
    ['a session in Redis', `${record} bytes`],
  ] as const)
    t.match(page, `| ${text} | ${figure} |`)
})
