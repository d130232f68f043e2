/** The page of the inspector after all scenarios of a pair of the matrix, in a browser. */
import type { Test } from 'tap'
import type { Ring } from '../../src/inspector/ring.js'
import type { CallView } from '../../src/inspector/views.js'
import { pathOf } from '../../src/inspector/words.js'
import type { Cell } from '../matrix/cell.js'
import type { Chromium } from './chromium.js'
import { until } from './eventually.js'
import { lookWith, problems } from './inspector-page.js'

const LETTERS = { modern: 'M', legacy: 'L' } as const
const TRANSPORTS = { HTTP: 'http', 'HTTP+SSE': 'sse', stdio: 'stdio' } as const
/** High enough for all calls of a pair: only the rows that can be seen are in the document. */
const SIZE = { width: 1400, height: 6_000 }

/** A change as the page shows it: its sign, its place, its rule, and the side on which it is. */
type Marked = readonly [sign: string, place: string, rule: string, side: 'client' | 'server']
const SIGNS = { add: '+', remove: '−', replace: '~' } as const

/** Rules of what each call of a tool has, and the side on which their changes are. */
const EXPECTED: Readonly<Record<string, readonly (readonly [rule: string, side: 'client' | 'server'])[]>> = {
  'modern to legacy': [
    ['envelope', 'client'],
    ['result-type', 'client'],
  ],
  'legacy to modern': [
    ['added-envelope', 'server'],
    ['modern-members', 'server'],
  ],
}

/**
 * The calls of a pair are there with their eras; one that was translated has its messages on both sides, with all changes
 * marked; one with a question is one call.
 */
export async function checkPage(
  t: Test,
  browser: Chromium,
  ring: Ring,
  { client, server }: Cell['pair'],
  calls: readonly CallView[],
): Promise<void> {
  await browser.emulate(SIZE)
  const { rows, go, withoutMistakes } = await lookWith(browser, t, ring)
  await until(async () => (await rows()).length === calls.length, `${calls.length} calls are listed`)
  const sides = await browser.evaluate<string[]>(
    `[...document.querySelectorAll('.calls tbody tr:not(.space)')].map((row) => row.cells[3].innerText)`,
  )
  const from = `${LETTERS[client.era]} \\d\\d-\\d\\d ${TRANSPORTS[client.transport]}`
  const to = `${LETTERS[server.era]}( \\d\\d-\\d\\d)? (http|sse|stdio)`
  const wanted = new RegExp(`^${from} → (${to}|–)$`)
  t.same(
    sides.filter((text) => !wanted.test(text)),
    [],
    'each call has its eras and transports',
  )

  const echo = calls.find(({ method, name }) => method === 'tools/call' && name === 'echo') as CallView
  await go(`#/calls/${echo.id}`)
  const count = echo.events.filter(({ kind }) => kind === 'message').length
  await until(async () => (await messagesOn(browser)).flat().length === count, 'all its messages are there')
  const [left = [], right = []] = await messagesOn(browser)
  t.match(left, [/^→ tools\/call/, /^← result/], 'at the left those with the client')
  t.match(right, [/^→ tools\/call/, /^← result/], 'at the right those with the server')
  const marked = await marksOn(browser)
  t.same(marked.toSorted(), marksOf(echo).toSorted(), 'each change is marked on its side, and nothing else')
  for (const [rule, side] of EXPECTED[`${client.era} to ${server.era}`] ?? [])
    t.ok(
      marked.some((one) => one[2] === rule && one[3] === side),
      `${rule} at the ${side}`,
    )

  const [asked] = calls.filter(({ name, status }) => name === 'ask' && status === 'ok')
  t.ok(asked)
  if (!asked) return
  await go(`#/calls/${asked.id}`)
  await until(
    async () => (await browser.evaluate(`document.querySelector('.detail h2')?.innerText`)) === `ask #${asked.id}`,
    'the call with a question',
  )
  const [withClient = [], withServer = []] = await messagesOn(browser)
  const rounds = (of: readonly string[]) => of.filter((text) => text.startsWith('→')).length
  t.ok(rounds(withClient) > 1 && rounds(withServer) > 1, 'it has the answer to its question, too')
  t.match(withClient.at(-1), /^← result/)
  t.same(await problems(browser), [], 'axe-core finds nothing')
  withoutMistakes()
}

/** The messages of the detail, at the left and at the right. */
export function messagesOn(browser: Chromium): Promise<string[][]> {
  return browser.evaluate<string[][]>(
    `[0, 1].map((side) => [...document.querySelectorAll('.sides tbody tr:not(.away)')].flatMap((row) => row.cells[side].querySelector('p:not(.faint)')?.innerText ?? []))`,
  )
}

/** The changes in the lists of a call, which it unfolds. */
export function marksOn(browser: Chromium): Promise<Marked[]> {
  return browser.evaluate<Marked[]>(`(async () => {
    for (const folded of ['.fold', '.foot .link']) {
      document.querySelectorAll(folded + '[aria-expanded="false"]').forEach((one) => one.click())
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    }
    return [...document.querySelectorAll('.sides .changes li')].map((mark) => [
      mark.querySelector('.sign').innerText.trim(),
      mark.querySelector('code').innerText,
      mark.querySelector('a').innerText,
      ['client', 'server'][mark.closest('td').cellIndex],
    ])
  })()`)
}

/** Where the changes of a call belong: what was removed is where it came from, what was added where it went to. */
function marksOf({ events }: CallView): Marked[] {
  return events.flatMap((seen) => {
    if (seen.kind !== 'message') return []
    const { hop, changes = [] } = seen
    const other = hop === 'client' ? 'server' : 'client'
    return changes.flatMap((change): Marked[] => {
      const at = (side: Marked[3]): Marked => [SIGNS[change.op], pathOf(change), change.rule, side]
      if (change.op === 'replace') return [at(other), at(hop)]
      return [at(change.op === 'add' ? hop : other)]
    })
  })
}
