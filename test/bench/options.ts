/** The options of `npm run bench`, and its help. */
import { parseArgs } from 'node:util'
import { PUBLISHED_MINUTES } from './published.js'
import { type Size, scenarios } from './scenarios.js'
import { laneNames, PACES, secondsFor, select, type Wish } from './selection.js'

export interface Options extends Wish {
  help: boolean
  profile: boolean
  write: boolean
  /** The bridge beside other programs, in place of scenarios. */
  publish: boolean
  against: string | undefined
  /** The Node.js that run the proxies, one after the other. */
  nodes: readonly string[]
  /** Lives of each process instead of as many as the size of the run has. */
  lives: number | undefined
  /** Idle sessions instead of as many as the size of the run has. */
  sessions: number | undefined
  /** File that the figures come from, instead of a run. */
  from: string | undefined
  /** File that the figures go to. */
  json: string
}

/** Reads the command line. Throws for an option that there is not. */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      quick: { type: 'boolean' },
      all: { type: 'boolean' },
      scenario: { type: 'string', multiple: true, default: [] },
      lane: { type: 'string', multiple: true, default: [] },
      connections: { type: 'string', multiple: true, default: [] },
      lives: { type: 'string' },
      node: { type: 'string', multiple: true, default: [process.execPath] },
      sessions: { type: 'string' },
      'no-peers': { type: 'boolean', default: false },
      against: { type: 'string' },
      profile: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false },
      from: { type: 'string' },
      json: { type: 'string', default: 'bench.json' },
    },
  })
  const {
    scenario,
    lane,
    connections,
    lives,
    sessions,
    quick,
    all,
    'no-peers': noPeers,
    against,
    from,
    node: nodes,
    ...rest
  } = values
  const counts = connections.flatMap((text) => text.split(',')).map(Number)
  if (counts.some((count) => !Number.isInteger(count) || count < 1 || count > 1_000))
    throw new Error('--connections takes numbers from 1 to 1000')
  const chosen = [...scenario.filter((text) => text !== 'replicas'), ...lane, ...counts]
  if (rest.publish && (chosen.length > 0 || scenario.length > 0 || noPeers || against !== undefined))
    throw new Error('--publish takes a whole run: it compares all in the same rounds')
  if (rest.write && !rest.profile && from === undefined && chosen.length > 0)
    throw new Error('--write takes a whole run: the tables of the document are of one run')
  const size: Size = quick ? 'quick' : all ? 'all' : 'usual'
  return {
    ...rest,
    nodes,
    size,
    scenarios: scenario,
    lanes: lane,
    connections: counts,
    lives: numberIn('lives', lives, 1, 50),
    sessions: numberIn('sessions', sessions, 100, 10_000),
    peers: !noPeers,
    against,
    from,
  }
}

function numberIn(option: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  if (!Number.isInteger(number) || number < least || number > most)
    throw new Error(`--${option} takes a number from ${least} to ${most}`)
  return number
}

/** What there is to measure, how to choose it and how long it takes. */
export function help(): string {
  const minutes = (size: Size) => {
    const parts = select({ size, scenarios: [], lanes: [], connections: [], peers: true })
    return `about ${Math.ceil(secondsFor(parts, PACES[size]) / 60)} minutes`
  }
  const rows = (all: readonly (readonly [string, string])[]) =>
    all.map(([name, what]) => `  ${name.padEnd(22)}${what}`).join('\n')
  return `npm run bench -- [options]

Measures what the bridge costs, next to a proxy that reads nothing (the pass-through: Fastify with @fastify/http-proxy), a bare
proxy of Node.js and undici, mcp-proxy and supergateway. All of them are loaded in turn, in short windows. Multiples (×) are of
the pass-through to a server of the same era in the same rounds: medians over the lives of the processes, with quartiles in parentheses. CPU is that of the
proxy's process with all its threads, as /proc/<pid>/task/*/schedstat has it. Needs Linux for CPU and memory, taskset to give
proxies a core of their own, and redis-server for the scenarios "extras" and "replicas".

How much:
${rows([
  ['(nothing)', `what the goals need: ${minutes('usual')}`],
  [
    '--quick',
    `few and short windows, for a glance: ${minutes('quick')}. The figures are too high: code is still being compiled`,
  ],
  ['--all', `everything, with more and longer windows: ${minutes('all')}`],
])}

What (texts select whatever has them in its name; options may be given several times):
${rows([
  ['--scenario <text>', 'only these scenarios'],
  ['--lane <text>', 'only these lanes, and the controls that they are compared with'],
  ['--connections <n>', 'so many connections instead of those of the scenario: 1,16,64'],
  ['--lives <n>', 'so many starts of each process, whose medians count'],
  [
    '--node <path>',
    'the Node.js that runs the proxies; with several, what has other goals on each is measured on each',
  ],
  ['--sessions <n>', 'so many idle sessions'],
  ['--no-peers', 'without mcp-proxy and supergateway, which are installed into .ci/tools/peers'],
  ['--against <commit>', 'also builds this commit and measures it in the same rounds'],
  [
    '--profile',
    'no figures, but which parts and files take the time of a call, "small" if no scenario is named: 3 minutes',
  ],
  [
    '--publish',
    `the bridge beside mcp-proxy, mcp-remote, supergateway and mcporter, written into docs/comparison.md: ${PUBLISHED_MINUTES} minutes on each Node.js`,
  ],
])}

Results:
${rows([
  ['--json <file>', 'where all figures go, bench.json by default'],
  ['--from <file>', 'measures nothing and prints what is in this file'],
  ['--write', 'also writes the tables, or the profile, into docs/performance.md and docs/development'],
])}

Scenarios, with the connections of --all:
${rows(
  scenarios.map(({ name, what, connections: { all } }) => {
    const counts = all.filter((count) => count > 0)
    return [name, counts.length === 0 ? what : `${what} (${counts.join(', ')})`] as const
  }),
)}

Lanes: <era of the client>-<era of the server>-<transport to the server>. Clients always use HTTP. Other programs have theirs behind
their names.
${laneNames()
  .map((name) => `  ${name}`)
  .join('\n')}

Examples:
  npm run bench -- --scenario small --lane modern-legacy --connections 64
  npm run bench -- --against main --scenario small --lane http --no-peers
  npm run bench -- --profile --lane legacy-modern-http
  npm run bench -- --publish --node <Node.js 24> --node <Node.js 20>
  npm run bench -- --all --write && npm run bench -- --profile --write
`
}
