/** Tables as text for a terminal, and as Markdown. */

export interface Table {
  title: string
  /** The first row is the heading; the first column is text, and the others are figures. */
  rows: readonly (readonly string[])[]
  /** Said below. */
  notes?: readonly string[]
}

/** Columns as wide as their widest text. */
export function asText({ title, rows, notes = [] }: Table): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const pad = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0)
  const lines = rows.map((row) => `  ${row.map(pad).join('  ').trimEnd()}`)
  return `${[title, ...lines, ...notes.map((note) => `  ${note}`)].join('\n')}\n`
}

export function asMarkdown({ title, rows, notes = [] }: Table): string {
  const [heading = [], ...body] = rows
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const rule = `|${heading.map((_, column) => (column === 0 ? '---' : '--:')).join('|')}|`
  const below = notes.length === 0 ? [] : ['', ...notes.map((note) => `${note}\n`)]
  return `**${title}**\n\n${[line(heading), rule, ...body.map(line), ...below].join('\n').trimEnd()}\n`
}

/** A figure with so many decimals; a dash where there is none. */
export function shown(figure: number | undefined, decimals = 2): string {
  return figure === undefined || !Number.isFinite(figure) ? '–' : figure.toFixed(decimals)
}

/** A median with its quartiles. */
export function spread(of: { median: number; low: number; high: number } | undefined, decimals = 2): string {
  return of === undefined
    ? '–'
    : `${of.median.toFixed(decimals)} (${of.low.toFixed(decimals)}–${of.high.toFixed(decimals)})`
}
