/** What is asked of the candidates, and over how many connections at once. A further scenario is a further row. */
import type { Question } from './questions.js'

export interface Scenario {
  name: string
  question: Question
  /** Measured one after the other with the same processes. */
  connections: readonly number[]
}

const MIB = 1024 * 1024

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

/** Text with line ends and quotes, which JSON escapes. */
export const linesCall: Question = {
  method: 'tools/call',
  params: { name: 'lines', arguments: {} },
  right: (result) => contentOf(result, 'text').length === MIB,
}

/** Base64, where nothing is escaped. */
const imageCall: Question = {
  method: 'tools/call',
  params: { name: 'image', arguments: {} },
  right: (result) => contentOf(result, 'data').length === MIB,
}

export const scenarios: readonly Scenario[] = [
  { name: 'tools/call, small', question: smallCall, connections: [1, 64] },
  { name: 'tools/list, 20 tools', question: list, connections: [1, 64] },
  { name: 'tools/call, 1 MiB of text', question: linesCall, connections: [8] },
  { name: 'tools/call, 1 MiB of image', question: imageCall, connections: [8] },
]

function contentOf({ content }: Record<string, unknown>, key: 'text' | 'data'): string {
  const [first] = Array.isArray(content) ? (content as { [K in typeof key]?: unknown }[]) : []
  const found = first?.[key]
  return typeof found === 'string' ? found : ''
}
