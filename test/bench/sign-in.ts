/** What it costs to be able to sign in: the same ways through the bridge with a stored token, without one, and with sign-in turned off. */
import { chmodSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { accountKey } from '../../src/oauth/client/account.js'
import type { Candidate } from './candidates.js'
import type { Goal, Measured } from './goals.js'
import { median } from './measure.js'
import { temporary } from './processes.js'
import type { Era } from './questions.js'
import { smallCall } from './scenarios.js'

/** By what the configuration says of signing in. The servers take every token. */
const WAYS: Readonly<Record<Way, (store: string, url: string) => { entry?: object; oauth?: object }>> = {
  'sign-in off': () => ({ entry: { oauth: false } }),
  'no token': (store: string) => ({ oauth: { store } }),
  'stored token': (store: string, url: string) => {
    keepToken(store, url)
    return { oauth: { store } }
  },
}
type Way = 'sign-in off' | 'no token' | 'stored token'

const PAIRS: readonly [name: string, client: Era, server: Era][] = [
  ['http', 'modern', 'legacy'],
  ['legacy to modern', 'legacy', 'modern'],
  ['modern to modern', 'modern', 'modern'],
]
/** The pair that is started again and again. */
const STARTED = 'http'

const nameOf = (pair: string, way: Way) => `bridge, ${pair}, ${way}`

/** One candidate for each pair and way. */
export const signInCandidates: readonly Candidate[] = PAIRS.flatMap(([pair, client, server]) =>
  (Object.keys(WAYS) as Way[]).map((way) => ({
    name: nameOf(pair, way),
    client,
    server,
    asked: [smallCall],
    extra: true,
    startUp: pair === STARTED,
    proxy: ({ port, url, server: address, bridge }) => {
      const folder = dirname(temporary(`${pair}, ${way}, ${port}`, ''))
      const { entry = {}, ...rest } = WAYS[way](`${folder}/tokens-${port}`, address)
      const config = {
        mcpServers: { default: { url: address, ...entry } },
        listen: url,
        log: { level: 'warn' },
        metrics: false,
        ...rest,
      }
      return [bridge, '--config', temporary(`${pair}, ${way}, ${port}.json`, JSON.stringify(config))]
    },
  })),
)

/** A token that holds for an hour, as the bridge keeps it after a sign-in. */
function keepToken(folder: string, url: string): void {
  mkdirSync(folder, { mode: 0o700 })
  const since = Date.now()
  const token = { issuer: 'https://as.example', access: 'x'.repeat(1_000), type: 'bearer', expires: since + 3_600_000 }
  const holder = { endpoint: url, account: 'local' }
  const record = { version: 1, ...holder, token: { ...token, asked: [], granted: [], since }, began: [] }
  const name = `${accountKey(holder, { grant: 'code' })}.json`
  const path = temporary(`${folder.slice(folder.lastIndexOf('/') + 1)}/${name}`, JSON.stringify(record))
  chmodSync(path, 0o600)
}

export const signInGoals: readonly Goal[] = [
  ...PAIRS.flatMap(([pair]): Goal[] => [
    {
      goal: `small call, ${pair}, with a stored token: at most 1.02 times the CPU without`,
      figure: cpuOver(pair, 'stored token', 'no token'),
      limit: { most: 1.02 },
    },
    {
      goal: `small call, ${pair}, where nobody has signed in: at most 1.01 times the CPU with sign-in off`,
      figure: cpuOver(pair, 'no token', 'sign-in off'),
      limit: { most: 1.01 },
    },
  ]),
  {
    goal: 'start-up with a stored token: at most 5 ms longer than without',
    figure: startsLater('stored token', 'no token'),
    limit: { most: 5 },
  },
  {
    goal: 'start-up where nobody has signed in: at most 5 ms longer than with sign-in off',
    figure: startsLater('no token', 'sign-in off'),
    limit: { most: 5 },
  },
]

/** The median over the rounds, each of which has both: what slows the machine slows both. */
function cpuOver(pair: string, way: Way, base: Way) {
  return ({ blocks }: Measured): number | undefined => {
    const block = blocks.find(({ scenario, connections }) => scenario === 'tools/call, small' && connections === 64)
    const [rounds, others] = [way, base].map(
      (one) => block?.cells.find(({ candidate }) => candidate === nameOf(pair, one))?.rounds,
    )
    return rounds && others && median(rounds.map(({ cpu }, round) => over(cpu, others[round]?.cpu)))
  }
}

function over(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one / other
}

function startsLater(way: Way, base: Way) {
  return ({ startUp }: Measured): number | undefined => {
    const [runs, others] = [way, base].map(
      (one) => startUp.find(({ candidate }) => candidate === nameOf(STARTED, one))?.runs,
    )
    return runs && others && median(runs.map((run, at) => run - (others[at] ?? Number.NaN)))
  }
}
