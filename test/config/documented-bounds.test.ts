/** Bounds in docs/limits.md and docs/reference/bounds.md: they are the defaults of their options. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { options } from '../../src/config/reference.js'
import { atLeast } from '../support/at-least.js'

const defaults = new Map(options().map(({ path, default: value }) => [path, value]))

/** A number as the pages may write it. */
function spellings(value: number): string[] {
  const units = { h: 3_600_000, min: 60_000, s: 1_000, ms: 1, MiB: 2 ** 20, KiB: 2 ** 10 }
  const measured = Object.entries(units).flatMap(([name, one]) => (value % one === 0 ? [`${value / one} ${name}`] : []))
  return [value.toLocaleString('en'), ...measured]
}

/** The rows about options with a number as their default: the cell of the option, the option, and the cell of its bound. */
function rowsOf(page: string, option: number, bound: number): [path: string, text: string, value: number][] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8')
  return [...text.matchAll(/^\| (.*) \|$/gm)].flatMap(([, line = '']) => {
    const cells = line.split(' | ')
    const paths = [...(cells[option] ?? '').matchAll(/`((?:limits|timeouts|inspect)\.\w+)`/g)]
    const bounds = (cells[bound] ?? '').split(/[;,] (?=\D*\d)/)
    return paths.flatMap(([, path = ''], at): [string, string, number][] => {
      // What is no option has a bound that no page says.
      const value = defaults.has(path) ? defaults.get(path) : Number.NaN
      return typeof value === 'number' ? [[path, bounds[at] ?? '', value]] : []
    })
  })
}

t.test('the reference of bounds has the defaults of options', async (t) => {
  const rows = atLeast(t, 20, 'rows', rowsOf('reference/bounds.md', 2, 1))
  for (const [path, text, value] of rows)
    t.ok(
      spellings(value).some((one) => text.includes(one)),
      `${path}: ${text}`,
    )
})

t.test('the page on limits has the defaults of options', async (t) => {
  const rows = atLeast(t, 12, 'rows', rowsOf('limits.md', 0, 1))
  for (const [path, text, value] of rows)
    t.ok(
      spellings(value).some((one) => text.includes(one)),
      `${path}: ${text}`,
    )
})
