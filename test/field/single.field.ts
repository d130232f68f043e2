/**
 * Playwright's server, of which only one process can have a browser profile: with `--process single`, several clients work
 * through one browser. Run by `npm run test:field`.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { browserProgram, noBrowser } from '../support/chromium.js'
import { temporaryFolder } from '../support/folder.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { legacyClient, modernClient, startBridge } from './clients.js'
import { install, type Package, programOf, registryProblem } from './install.js'
import type { Asker } from './offer.js'

const PLAYWRIGHT: Package = { name: '@playwright/mcp', version: '0.0.83' }
const problem = noBrowser || (await registryProblem()) || false

/** A site whose pages have their paths as titles. */
async function startSite(t: Test): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end(`<title>${url.slice(1)}</title><h1>${url.slice(1)}</h1>`)
  })
  await listenUntilEnd(t, server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function start(t: Test, flags: readonly string[]) {
  const program = await programOf(await install(PLAYWRIGHT))
  const browser = [
    '--headless',
    '--no-sandbox',
    '--executable-path',
    browserProgram,
    '--user-data-dir',
    temporaryFolder(t),
    '--output-dir',
    temporaryFolder(t),
  ]
  const command = { command: execPath, args: [program, ...browser], env: {} }
  return { site: await startSite(t), url: await startBridge(t, command, flags) }
}

/** Calls a tool, and resolves to the text of its result. */
async function use({ ask }: Asker, name: string, args: object = {}): Promise<string> {
  const result = await ask('tools/call', { name, arguments: args })
  return (result['content'] as { text?: string }[]).map(({ text = '' }) => text).join('\n')
}

t.test('with "single", several clients use one browser of Playwright at once', { skip: problem }, async (t) => {
  const { site, url } = await start(t, ['--process', 'single'])
  const clients = [await legacyClient(t, url), await legacyClient(t, url), await modernClient(t, url)]
  const opened = await Promise.all(
    clients.map((client, n) => use(client, 'browser_tabs', { action: 'new', url: `${site}/at-once-${n}` })),
  )
  for (const text of opened) t.notMatch(text, /### Error/)
  for (const client of clients) {
    const tabs = await use(client, 'browser_tabs', { action: 'list' })
    for (const n of clients.keys()) t.match(tabs, `at-once-${n}`)
  }
  for (const [n, client] of clients.entries()) {
    await use(client, 'browser_navigate', { url: `${site}/of-client-${n}` })
    for (const other of clients) t.match(await use(other, 'browser_snapshot'), new RegExp(`of-client-${n}`))
  }
})

t.test('without "single", the second client gets no browser', { skip: problem }, async (t) => {
  const { site, url } = await start(t, [])
  const [first, second] = [await legacyClient(t, url), await legacyClient(t, url)]
  t.match(await use(first, 'browser_navigate', { url: `${site}/one` }), /one/)
  t.match(await use(second, 'browser_navigate', { url: `${site}/two` }), /already in use/)
})
