/** docs/troubleshooting.md and the pages of errors in docs/reference: made of the messages of the sources, and of an explanation for each that has to be there. */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { troubleshootingPages } from '../../.ci/troubleshooting.js'
import { CAUSES } from '../../src/base/fault/causes.js'
import { STATUSES } from '../../src/base/fault/failures.js'
import { faults } from '../../src/base/fault/faults.js'
import { ENDS, EXIT } from '../../src/command/ends.js'
import { cliErrorOf, inWords } from '../../src/command/errors.js'
import { parseCommand } from '../../src/command/parse.js'
import { atLeast } from '../support/at-least.js'

const docs = new URL('../../docs/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, docs), 'utf8')
const paths = Object.keys(troubleshootingPages())
const page = paths.map(read).join('\n')

t.test(
  'the pages of errors are fresh (npm run schema writes them), and explain every message that they have to',
  async (t) => {
    t.ok(paths.includes('troubleshooting.md'))
    for (const [path, text] of Object.entries(troubleshootingPages())) t.equal(read(path), text, path)
  },
)

t.test('every fault, cause, status and exit code is on a page', async (t) => {
  for (const { code, status, ...row } of Object.values(faults)) {
    const reason = 'reason' in row ? `\`${row.reason}\`` : '—'
    t.ok(page.includes(`| ${reason} | ${code} | ${status} | `), `${reason} ${code} ${status}`)
  }
  for (const { what } of Object.values(CAUSES)) t.ok(page.includes(`| \`${what}\` | `), what)
  for (const status of Object.keys(STATUSES)) t.match(page, new RegExp(`^\\| (?:\\d+, )*${status}[,\\s]`, 'm'))
  for (const code of Object.values(EXIT)) t.match(page, new RegExp(`\\| ${code} \\||Exit code ${code} `))
})

t.test('reasons of sign-in are explained in docs/auth.md', async (t) => {
  const auth = read('auth.md')
  const rows = page.matchAll(/\| `(\w+)` \|.*\| See \[auth\.md\]\(\.\.\/auth\.md#errors\)\. \|/g)
  for (const [, reason = ''] of atLeast(t, 5, 'reasons', rows)) t.match(auth, `| \`${reason}\` |`)
})

t.test('links of the pages lead to sections that exist', async (t) => {
  const links = paths.flatMap((path) =>
    [...read(path).matchAll(/\]\(([\w./-]+\.md)?(?:#([\w-]+))?\)/g)].map(
      ([link, file, anchor]) => [link, new URL(file ?? '', new URL(path, docs)), anchor] as const,
    ),
  )
  t.ok(links.length > 40)
  for (const [link, file, anchor] of links) {
    t.ok(existsSync(file), `${link}: ${file.pathname}`)
    if (anchor === undefined) continue
    const text = readFileSync(file, 'utf8')
    const titles = [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .replaceAll(' ', '-'),
    )
    t.ok(titles.includes(anchor) || text.includes(`<a id="${anchor}">`), link)
  }
})

t.test('an error of the command line begins and ends as the page says', async (t) => {
  try {
    parseCommand(['probe', '--bogus'], {})
    t.fail('it was taken')
  } catch (error) {
    const shown = cliErrorOf(error, { probing: false })
    t.match(inWords(shown), /^mcp-bridge: unknown flag --bogus\n {2}Run "mcp-bridge probe --help" for help\.\n$/)
    t.ok(page.includes(`| ${ENDS[shown.event].code} | \`${shown.event}\` |`))
  }
})
