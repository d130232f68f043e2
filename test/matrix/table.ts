/** What came of all cells, as a table. */

export type Outcome = 'ok' | 'FAIL' | { impossible: string }

export interface Row {
  client: string
  server: string
  outcomes: Outcome[]
}

/** One line for each pair, and below them why there are cells without an outcome. */
export function tableOf(scenarios: readonly string[], rows: readonly Row[]): string[] {
  const reasons = [...new Set(rows.flatMap(({ outcomes }) => outcomes.flatMap(reasonOf)))]
  const shown = (outcome: Outcome) => (typeof outcome === 'string' ? outcome : `(${reasonsIn(outcome, reasons)})`)
  const lines = [
    ['client', 'server', ...scenarios],
    ...rows.map(({ client, server, outcomes }) => [client, server, ...outcomes.map(shown)]),
  ]
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return [
    ...lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')),
    ...reasons.map((reason, index) => `(${index + 1}) ${reason}`),
  ]
}

function reasonOf(outcome: Outcome): string[] {
  return typeof outcome === 'string' ? [] : [outcome.impossible]
}

function reasonsIn({ impossible }: { impossible: string }, reasons: readonly string[]): number {
  return reasons.indexOf(impossible) + 1
}
