/** Forms of published servers in the page of the inspector: the form of every tool opens, in both eras. Run by `npm run test:field`. */
import { execPath } from 'node:process'
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { openTry } from '../support/try-page.js'
import { install, type Package, programOf, registryProblem } from './install.js'

interface FormServer extends Package {
  args?: readonly string[]
  /** No account: it only lists its tools. */
  env?: Record<string, string>
}

const none = 'none'
const SERVERS: readonly FormServer[] = [
  { name: '@modelcontextprotocol/server-sequential-thinking', version: '2026.8.31' },
  { name: '@antv/mcp-server-chart', version: '0.9.10' },
  { name: '@cyanheads/git-mcp-server', version: '2.15.3', env: { MCP_LOG_LEVEL: 'error' } },
  { name: '@upstash/context7-mcp', version: '4.1.1' },
  { name: '@notionhq/notion-mcp-server', version: '2.5.2', env: { NOTION_TOKEN: none } },
  { name: '@playwright/mcp', version: '0.0.83' },
  { name: 'chrome-devtools-mcp', version: '1.11.0', args: ['--no-usage-statistics'] },
  { name: '@brave/brave-search-mcp-server', version: '2.1.4', env: { BRAVE_API_KEY: none } },
  { name: '@dangahagan/weather-mcp', version: '1.23.0' },
  { name: '@circleci/mcp-server-circleci', version: '0.20.0', env: { CIRCLECI_TOKEN: none } },
  { name: 'firecrawl-mcp', version: '3.26.0', env: { FIRECRAWL_API_KEY: 'fc-none' } },
  { name: 'tavily-mcp', version: '0.2.22', env: { TAVILY_API_KEY: none } },
]

const skip = noBrowser || ((await registryProblem()) ?? false)
for (const { args = [], env = {}, ...published } of SERVERS)
  t.test(`the form of each tool of ${published.name} ${published.version} opens`, { skip }, async (t) => {
    const program = await programOf(await install(published))
    const { browser, shows, as, withoutMistakes } = await openTry(t, {
      test: { command: execPath, args: [program, ...args], env },
    })
    for (const revision of ['2026-07-28', '2025-11-25']) {
      await as(revision)
      await shows(/Tools \d+/)
      const names = () =>
        browser.evaluate<string[]>(`[...document.querySelectorAll('.items button')].map((one) => one.textContent)`)
      await until(async () => (await names()).length > 0, 'the tools')
      const count = (await names()).length
      for (let i = 0; i < count; i++) {
        await browser.evaluate(`document.querySelectorAll('.items button')[${i}].click()`)
        const opened = `document.querySelector('.trying form')?.getAttribute('aria-label')`
        const wanted = `document.querySelectorAll('.items button')[${i}].firstChild.textContent`
        await until(() => browser.evaluate<boolean>(`${opened} === ${wanted}`), `form ${i}`)
      }
      t.notMatch(await browser.text(), /Cannot display this/)
      t.pass(`${count} forms as a client of ${revision}`)
    }
    withoutMistakes()
  })
