/** docs/troubleshooting.md: made of the messages of the sources, and of an explanation for each that has to be there. */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { troubleshootingPage } from '../../.ci/troubleshooting.js'
import { cliErrorOf, EXIT, inWords } from '../../src/cli/errors.js'
import { parseCommand } from '../../src/cli/parse.js'
import { faults } from '../../src/fault/fault.js'
import { BY_STATUS } from '../../src/upstream/advice.js'
import { CAUSES } from '../../src/upstream/transport/causes.js'
import { atLeast } from '../support/at-least.js'

const docs = new URL('../../docs/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, docs), 'utf8')
const page = read('troubleshooting.md')

t.test(
  'docs/troubleshooting.md is fresh (npm run schema writes it), and explains every message that it has to',
  async (t) => {
    t.equal(page, troubleshootingPage())
  },
)

t.test('every fault, cause, status and exit code is on the page', async (t) => {
  for (const { code, status, ...row } of Object.values(faults)) {
    const reason = 'reason' in row ? `\`${row.reason}\`` : '—'
    t.ok(page.includes(`| ${reason} | ${code} | ${status} | `), `${reason} ${code} ${status}`)
  }
  for (const { what } of Object.values(CAUSES)) t.ok(page.includes(`| \`${what}\` | `), what)
  for (const status of Object.keys(BY_STATUS)) t.match(page, new RegExp(`^\\| (?:\\d+, )*${status}[,\\s]`, 'm'))
  for (const code of Object.values(EXIT)) t.match(page, new RegExp(`\\| ${code} \\||Exit code ${code} `))
})

t.test('reasons of sign-in are explained in docs/auth.md', async (t) => {
  const auth = read('auth.md')
  const rows = page.matchAll(/\| `(\w+)` \|.*\| Signing in to the server\. \|/g)
  for (const [, reason = ''] of atLeast(t, 5, 'reasons', rows)) t.match(auth, `| \`${reason}\` |`)
})

t.test('links of the page lead to sections that exist', async (t) => {
  const links = [...page.matchAll(/\]\(([\w-]+\.md)?(?:#([\w-]+))?\)/g)]
  t.ok(links.length > 10)
  for (const [link, file = 'troubleshooting.md', anchor] of links) {
    t.ok(existsSync(new URL(file, docs)), link)
    if (anchor === undefined) continue
    const text = read(file)
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
    t.ok(page.includes(`| ${shown.code} | \`${shown.event}\` |`))
  }
})
