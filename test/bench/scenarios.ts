/** What is measured: what is asked, over how many connections, and of whom. A further scenario is a further row. */
import { ALONE, FIRST, INSPECT, type Way } from './candidates.js'
import type { Question } from './questions.js'

/**
 * How a scenario is measured: `closed` asks again when the answer is there; `open` asks at half the rate of a closed loop; `fresh`
 * starts processes; `idle` opens sessions and asks nothing; `replicas` starts several bridges that share a Redis.
 */
type Kind = 'closed' | 'open' | 'fresh' | 'idle' | 'replicas'
export type Size = 'quick' | 'usual' | 'all'

export interface Scenario {
  name: string
  /** For the help. */
  what: string
  kind: Kind
  question: Question
  /** Connections by the size of the run, measured one after the other with the same processes. */
  connections: Readonly<Record<Size, readonly number[]>>
  /** Runs of these sizes also ask other programs than the bridge. */
  peers?: readonly Size[]
  /** Asked of each lane of the bridge once for each of these ways to configure it. */
  ways?: readonly Way[]
  /** Each connection has a session of its own. */
  sessions?: true
  /** The candidate that multiples are of, if it is not the pass-through. */
  base?: string
  /** Milliseconds of a window, where ways are compared that need longer ones. */
  window?: number
  /** Those of the ways that only a run of everything has. */
  further?: readonly Way[]
  /** Only lanes between two eras are asked: in others, messages pass unchanged in one of the ways. */
  translated?: true
  /** Only a run of everything has it, and one that names it. */
  rare?: true
  /** Measured on each Node.js that is named; others only on the first one. */
  eachNode?: true
  /** Lanes that are asked, if these are fewer than those of the goals. */
  lanes?: readonly string[]
}

const MIB = 1024 * 1024
const WIDE = { quick: [64], usual: [64], all: [1, 16, 64, 256] }
const LARGE = { quick: [8], usual: [8], all: [1, 8, 64] }
const ONE = { quick: [64], usual: [64], all: [64] }
const SIGN_IN: readonly Way[] = ['sign-in off', 'no token', 'stored token']
/** One lane of each kind. */
const KINDS = ['modern-legacy-http', 'modern-modern-http', 'legacy-modern-stdio']
const NONE = { quick: [0], usual: [0], all: [0] }

const ARGUMENTS = {
  city: 'Reykjavik',
  units: 'metric',
  days: 3,
  include: ['temperature', 'wind', 'precipitation'],
  near: { latitude: 64.1466, longitude: -21.9426, within: 25 },
  question:
    'Will it rain on the way to the harbour tomorrow afternoon, and is the wind so strong that the ferry stays in?',
  exact: false,
  since: null,
}

/** A call whose result is a text of 160 characters. */
export const smallCall: Question = {
  method: 'tools/call',
  params: { name: 'weather', arguments: ARGUMENTS },
  right: (result) => contentOf(result, 'text').length === 160,
}

const list: Question = {
  method: 'tools/list',
  params: {},
  right: ({ tools }) => Array.isArray(tools) && tools.length === 20,
}

/** The small call by its name in a group. A server alone takes any name. */
export const groupCall: Question = { ...smallCall, params: { name: `${FIRST}__weather`, arguments: ARGUMENTS } }

const longList: Question = { ...list, right: ({ tools }) => Array.isArray(tools) && tools.length === 200 }

/** Text with line ends and quotes, which JSON escapes. */
const linesCall: Question = {
  method: 'tools/call',
  params: { name: 'lines', arguments: {} },
  right: (result) => contentOf(result, 'text').length === MIB,
}

/** The same text. Servers over HTTP send it as an event, as most SDKs do. */
const eventCall: Question = { ...linesCall, params: { name: 'event', arguments: {} } }

/** Base64, where nothing is escaped. */
const imageCall: Question = {
  method: 'tools/call',
  params: { name: 'image', arguments: {} },
  right: (result) => contentOf(result, 'data').length === MIB,
}

const progressCall: Question = {
  ...smallCall,
  params: { name: 'progress', arguments: ARGUMENTS },
  progress: 10,
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'small',
    what: 'tools/call with a result of 160 characters',
    kind: 'closed',
    question: smallCall,
    connections: { quick: [64], usual: [1, 16, 64], all: [1, 16, 64, 256] },
    peers: ['usual', 'all'],
    eachNode: true,
  },
  {
    name: 'list',
    what: 'tools/list of 20 tools',
    kind: 'closed',
    question: list,
    connections: WIDE,
    rare: true,
  },
  {
    name: 'text',
    what: 'tools/call with a result of 1 MiB of text, with line ends and quotes',
    kind: 'closed',
    question: linesCall,
    connections: LARGE,
    peers: ['all'],
    eachNode: true,
  },
  {
    name: 'event',
    what: 'the same text as an event of a stream, as most SDKs send it',
    kind: 'closed',
    question: eventCall,
    connections: LARGE,
    eachNode: true,
  },
  {
    name: 'image',
    what: 'tools/call with a result of 1 MiB of base64',
    kind: 'closed',
    question: imageCall,
    connections: LARGE,
    eachNode: true,
  },
  {
    name: 'progress',
    what: 'the small call with ten progress notifications before its result',
    kind: 'closed',
    question: progressCall,
    connections: WIDE,
    rare: true,
  },
  {
    name: 'extras',
    what: 'the small call with metrics, Redis and a log line for each call, against all of it off',
    kind: 'closed',
    question: smallCall,
    connections: ONE,
    ways: ['extras off', 'extras on', ...ALONE],
    further: ALONE,
  },
  {
    name: 'sign-in',
    what: 'the small call with sign-in turned off, without a token, and with a stored token',
    kind: 'closed',
    question: smallCall,
    connections: ONE,
    ways: SIGN_IN,
    lanes: ['modern-modern-http'],
  },
  {
    name: 'audit',
    what: 'the small call with a line of the audit log, against without',
    kind: 'closed',
    question: smallCall,
    connections: ONE,
    ways: ['plain', 'audit'],
    translated: true,
  },
  {
    name: 'issuers',
    what: 'the small call with a token of an identity provider that was checked before, against without',
    kind: 'closed',
    question: smallCall,
    connections: ONE,
    ways: ['plain', 'issuers'],
    lanes: ['modern-modern-http'],
  },
  {
    name: 'embedded',
    what: 'the small call through the plugin in a program, against the command',
    kind: 'closed',
    question: smallCall,
    connections: ONE,
    ways: ['plain', 'in a program'],
    lanes: ['modern-legacy-http', 'modern-modern-http'],
  },
  {
    name: 'workers',
    what: 'the small call through two workers on one core, against one process',
    kind: 'closed',
    question: smallCall,
    connections: ONE,
    ways: ['one process', 'two workers'],
    lanes: ['modern-legacy-http', 'legacy-modern-http'],
    rare: true,
  },
  {
    name: 'inspect',
    what: 'the small call without an inspector; with its metadata; with all texts kept, and a reader of events; with --all, also a reader of texts, and so that each call is recorded',
    kind: 'closed',
    question: smallCall,
    connections: ONE,
    ways: INSPECT,
    // The inspector counts calls by the second.
    window: 1_000,
    further: ['payloads, read', 'metadata of every call', 'payloads of every call, watched'],
    lanes: KINDS,
  },
  {
    name: 'group',
    what: 'the small call through a group of two servers, against the endpoint of the server itself',
    kind: 'closed',
    question: groupCall,
    connections: ONE,
    ways: ['alone', 'in a group'],
    translated: true,
  },
  {
    name: 'group-list',
    what: 'tools/list of a group of ten servers with 20 tools each, against one server with 200, all cached',
    kind: 'closed',
    question: longList,
    connections: ONE,
    ways: ['one list of 200', 'ten lists of 20'],
    translated: true,
  },
  {
    name: 'open',
    what: 'the small call at random times (open loop), at half the rate that the lane reaches in a closed loop',
    kind: 'open',
    question: smallCall,
    connections: ONE,
    rare: true,
  },
  {
    name: 'cold-start',
    what: 'from the start of the process to the first answer, and then the first 200 calls one by one (cold)',
    kind: 'fresh',
    question: smallCall,
    connections: NONE,
    peers: ['usual', 'all'],
    eachNode: true,
  },
  {
    name: 'sign-in-start',
    what: 'like cold-start, with sign-in turned off, without a token, and with a stored token',
    kind: 'fresh',
    question: smallCall,
    connections: NONE,
    ways: SIGN_IN,
    lanes: ['modern-modern-http'],
  },
  {
    name: 'issuers-start',
    what: 'like cold-start, with an identity provider and without',
    kind: 'fresh',
    question: smallCall,
    connections: NONE,
    ways: ['plain', 'issuers'],
    lanes: ['modern-modern-http'],
  },
  {
    name: 'idle',
    what: 'memory of sessions that do nothing, each with an open event stream',
    kind: 'idle',
    question: smallCall,
    connections: NONE,
  },
  {
    name: 'replicas',
    what: 'the small call and the memory of sessions, with 1, 2 and 4 replicas that share a Redis (--quick: 1 and 2)',
    kind: 'replicas',
    question: smallCall,
    connections: NONE,
    ways: ['extras off', 'replica'],
    rare: true,
  },
]

function contentOf({ content }: Record<string, unknown>, key: 'text' | 'data'): string {
  const [first] = Array.isArray(content) ? (content as { [K in typeof key]?: unknown }[]) : []
  const found = first?.[key]
  return typeof found === 'string' ? found : ''
}
