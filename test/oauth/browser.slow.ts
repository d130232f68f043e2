/** The whole way with a real browser: the program, the page of an authorization server, the callback, the call that waited. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t from 'tap'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { Guarded } from '../support/guarded.js'
import { Oidc } from '../support/oidc.js'
import { startSdkV1 } from '../support/sdk-v1.js'

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const browser = BROWSERS.find((path) => existsSync(path))
const skip = browser === undefined && 'there is no Chromium on this machine: apt-get install chromium'
const fixture = fileURLToPath(new URL('../fixtures/chromium.mjs', import.meta.url))
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

t.test('answers a call that waits for a sign-in after a real browser has visited all pages', { skip }, async (t) => {
  const oidc = await Oidc.start(t, { page: true })
  const legacy = await startSdkV1(t, (server) => {
    server.registerTool('greet', { description: 'Greets.' }, () => ({ content: [{ type: 'text', text: 'Hello' }] }))
  })
  const server = await Guarded.start(t, oidc, legacy)
  const folder = temporaryFolder(t)
  const shown = join(folder, 'shown.html')
  const command = `${execPath} ${fixture} ${browser} ${shown}`
  const oauth = ['--token-store', join(folder, 'tokens'), '--browser', command]
  const bridge = ['--import=tsx', main, '--listen', 'stdio', '--log-format', 'json', '--upstream', server.url, ...oauth]
  const client = new Client({ name: 'browser', version: '1' })
  t.teardown(() => client.close())
  await client.connect(new StdioClientTransport({ command: execPath, args: bridge, stderr: 'ignore' }))
  await until(async () => {
    const { tools } = await client.listTools()
    return tools.some(({ name }) => name === 'greet')
  }, 'the real tools are there')
  t.match(await client.callTool({ name: 'greet' }), { content: [{ text: 'Hello' }] })
  t.ok(
    oidc.requests.some(({ method, path }) => method === 'POST' && path.startsWith('/interaction/')),
    'the form of the log-in page was sent',
  )
  await until(() => existsSync(shown), 'the browser has ended')
  t.match(readFileSync(shown, 'utf8'), /<h1>Signed in<\/h1>/)
})
