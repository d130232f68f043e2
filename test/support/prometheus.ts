/** What is scraped, read twice: by a parser from npm, and line by line for what that leaves out. */
// @ts-expect-error: it comes without types
import parsePrometheus from 'parse-prometheus-text-format'

export interface Family {
  name: string
  help: string
  type: string
  /** Series by their names and labels as they stand, in the order in which they came. */
  series: [series: string, value: number][]
}

const SERIES = /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*\})?) (\S+)$/

/** Reads a text. Throws where it is not in the format. */
export function readFamilies(text: string): Family[] {
  const parsed = parsePrometheus(text) as { name: string; help: string; type: string }[]
  const series = text.split('\n').flatMap((line): [string, number][] => {
    if (line === '' || line.startsWith('# HELP ') || line.startsWith('# TYPE ')) return []
    const [, name, value] = SERIES.exec(line) ?? []
    if (name === undefined) throw new Error(`This is no line of the format: ${line}`)
    return [[name, Number(value)]]
  })
  const families = parsed.map(({ name, help, type }) => ({ name, help, type: type.toLowerCase() }))
  return families.map((family) => ({ ...family, series: series.filter(([one]) => belongs(one, family)) }))
}

/** All series of a text, by their names and labels, those of processes left out. */
export function readSeries(text: string): Record<string, number> {
  const own = readFamilies(text).filter(({ name }) => name.startsWith('mcp_bridge_'))
  return Object.fromEntries(own.flatMap(({ series }) => series))
}

function belongs(series: string, { name, type }: Omit<Family, 'series'>): boolean {
  const [own = ''] = series.split('{')
  return own === name || (type === 'histogram' && [`${name}_bucket`, `${name}_sum`, `${name}_count`].includes(own))
}
