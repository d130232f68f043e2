/** `npm run picture`: takes docs/inspector.webp, the picture of the inspector in the README, of a running demo. */
import { spawn } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { Chromium } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { ToolScope } from '../support/scope.js'

const FILE = fileURLToPath(new URL('../../docs/inspector.webp', import.meta.url))
const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const SIZE = { width: 1280, height: 880 }
/** The call that is shown in detail: it has a question. */
const SHOWN = 'legacy__book_table'

const scope = new ToolScope()
try {
  const demo = spawn(execPath, [MAIN, 'demo', '--no-browser', '--listen', 'http://127.0.0.1:0/mcp'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  scope.teardown(() => demo.kill())
  let said = ''
  demo.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const address = () => /^Inspector: (http\S+)$/m.exec(said)?.[1]
  await until(() => address() !== undefined, 'the address of the inspector')
  const browser = await Chromium.start(scope)
  await browser.emulate(SIZE)
  await browser.open(address() as string)
  const listed = `[...document.querySelectorAll('.calls tbody tr:not(.space)')].map((row) => row.innerText)`
  await until(async () => {
    const rows = await browser.evaluate<string[]>(listed)
    return rows.length >= 9 && rows.some((row) => row.includes(SHOWN) && row.includes('✓'))
  }, 'the question is answered')
  await browser.evaluate(
    `[...document.querySelectorAll('.calls tbody tr')].find((row) => row.innerText.includes('${SHOWN}')).click()`,
  )
  await until(async () => /inputRequests/.test(await browser.text()), 'both sides are shown with their texts')
  await browser.screenshot(FILE)
} finally {
  await scope.end()
}
