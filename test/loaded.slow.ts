/** What a bridge loads: it runs from the sources, and V8 says which of their files have run. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile, temporaryFolder } from './support/folder.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { call, envelope } from './support/modern.js'

const source = fileURLToPath(new URL('../src/', import.meta.url))
/** What a configuration has to ask for. Metrics are counted over HTTP unless it says that they are not. */
const ASKED_FOR = /^(?:inspector|services\/(?:discovery|oauth|replicas|telemetry\/(?!metrics\.ts|timer\.ts)))/

/** Starts a bridge from the sources. `loaded` ends it, and gives the files of `src` that have run. */
function start(t: Test, args: readonly string[]) {
  const folder = temporaryFolder(t)
  const from = [execPath, '--import=tsx', join(source, 'main.ts')] as const
  const bridge = startProgram(t, args, { NODE_V8_COVERAGE: folder }, from)
  const loaded = async () => {
    bridge.child.stdin.end()
    bridge.child.kill()
    await bridge.ended
    const reports = readdirSync(folder).map(
      (name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: { url: string }[] },
    )
    const root = pathToFileURL(source).href
    const urls = reports.flatMap(({ result }) => result.map(({ url }) => url))
    return [...new Set(urls.filter((url) => url.startsWith(root)).map((url) => url.slice(root.length)))].sort()
  }
  return { bridge, loaded }
}

t.test('a bridge between two pipes loads neither the inspector nor a service that is not configured', async (t) => {
  const { command, args } = legacyStdio(t).server
  const { bridge, loaded } = start(t, ['--listen', 'stdio', '--', command, ...args])
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: envelope() } }
  bridge.child.stdin.write(`${JSON.stringify(request)}\n`)
  await until(() => bridge.stdout().includes('"result"'), 'an answer')
  const files = await loaded()
  t.ok(files.includes('servers/legacy/half.ts'), `${files.length} files`)
  t.same(
    files.filter((file) => ASKED_FOR.test(file)),
    [],
  )
})

t.test(
  'a bridge between two ends of HTTP loads neither the inspector nor a service that is not configured',
  async (t) => {
    const server = await LegacyHttp.start(t)
    const config = temporaryFile(t, 'mcp.json', {
      mcpServers: { it: { url: server.url, oauth: false } },
      listen: 'http://127.0.0.1:0/mcp',
    })
    const { bridge, loaded } = start(t, ['--config', config])
    const [url] = await says(bridge, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
    t.equal((await call(url, 'tools/list')).status, 200)
    const files = await loaded()
    t.ok(files.includes('servers/transport/http.ts') && files.includes('app/http-app.ts'), `${files.length} files`)
    t.same(
      files.filter((file) => ASKED_FOR.test(file)),
      [],
    )
  },
)

t.test('what is configured is loaded', async (t) => {
  const server = await LegacyHttp.start(t)
  const folder = temporaryFolder(t)
  const config = temporaryFile(t, 'mcp.json', {
    mcpServers: { it: { url: server.url } },
    listen: 'http://127.0.0.1:0/mcp',
    admin: 'http://127.0.0.1:0',
    metrics: true,
    audit: { file: join(folder, 'audit') },
    inspect: {},
  })
  const { bridge, loaded } = start(t, ['--config', config])
  await says(bridge, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
  const files = await loaded()
  for (const file of ['inspector/inspector', 'services/telemetry/audit-log', 'services/oauth/sign-in'])
    t.ok(files.includes(`${file}.ts`), file)
})
