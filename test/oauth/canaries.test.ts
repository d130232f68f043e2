/** A23: every secret of a sign-in is a canary, and everything that the program writes, shows or passes on is searched for them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { BOTH, initialize } from '../support/legacy-client.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { call, post } from '../support/modern.js'
import { PlainHttp, sendText } from '../support/plain-http.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { plant, secretsIn, watchForSecrets } from '../support/secrets.js'

t.setTimeout(300_000)

const willing = new URL('../fixtures/willing-browser.mjs', import.meta.url).href
const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const CLIENT_SECRET = 'CANARY-client-secret'
const DESCRIPTION = 'CANARY-description'

/** What arrives over HTTP, as text. */
async function sink(t: Test): Promise<{ url: string; text: string[] }> {
  const text: string[] = []
  const server = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (chunk: string) => text.push(chunk))
    request.on('end', () => response.end('{}'))
  })
  await listenUntilEnd(t, server)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, text }
}

/** A server that wants a token, and another scope for one tool. */
async function guarded(t: Test, as: ScriptedAs): Promise<PlainHttp> {
  const server: PlainHttp = await PlainHttp.start(t, ({ message, path, headers }, response) => {
    const metadata = '/.well-known/oauth-protected-resource/mcp'
    if (path === metadata)
      return sendText(response, JSON.stringify({ resource: server.url, authorization_servers: [as.issuer] }))
    const challenge = `Bearer resource_metadata="${server.origin}${metadata}"`
    const refuse = (status: number, more = '') =>
      response.writeHead(status, { 'www-authenticate': challenge + more }).end(`${DESCRIPTION} of a refusal`)
    const token = headers.authorization ?? ''
    if (!/^Bearer CANARY-access/.test(token) || over.has(token)) return refuse(401)
    const { name } = (message?.['params'] ?? {}) as { name?: string }
    if (name === 'more' && as.of('/authorize').length < 2)
      return refuse(403, ', error="insufficient_scope", scope="more"')
    const id = JSON.stringify(message?.['id'])
    const discovered = {
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      ttlMs: 0,
      cacheScope: 'private',
    }
    const said = message?.['method'] === 'server/discover' ? discovered : { content: [{ type: 'text', text: 'Hello' }] }
    sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify({ resultType: 'complete', ...said })}}`)
  })
  return server
}

/** Tokens that the server takes no more. */
const over = new Set<string>()

t.test('no secret of a sign-in is in anything that the program writes, shows or passes on', async (t) => {
  plant({ client_secret: CLIENT_SECRET, code: DESCRIPTION })
  const as = await ScriptedAs.start(t, {
    metadata: (own) => ({
      ...own,
      token_endpoint_auth_methods_supported: ['client_secret_post'],
      scopes_supported: ['offline_access', 'more'],
    }),
  })
  const server = await guarded(t, as)
  const traces = await sink(t)
  const folder = temporaryFolder(t)
  const at = (name: string) => join(folder, name)
  // A browser and a program that write down what they inherit.
  const note = (name: string) =>
    `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(at(name))}, JSON.stringify(process.env))\n`
  writeFileSync(at('browser.mjs'), `${note('browser.json')}await import(${JSON.stringify(willing)})\n`)
  writeFileSync(at('program.mjs'), `${note('program.json')}process.stdin.resume()\n`)
  const config = at('config.json')
  const oauth = { clientId: 'bridge', clientSecret: '${CLIENT_SECRET}', wait: 60_000 }
  const mcpServers = {
    stock: { url: server.url, oauth },
    program: { command: execPath, args: [at('program.mjs')], timeouts: { probe: 1_000, initialize: 1_000 } },
  }
  const listen = 'http://127.0.0.1:0/'
  const admin = 'http://127.0.0.1:0'
  writeFileSync(config, JSON.stringify({ mcpServers, listen, admin, log: { level: 'debug', format: 'json' } }))
  // A signal makes it crash.
  const crash = "data:text/javascript,process.on('SIGUSR2', () => { throw new Error('a crash of the test') })"
  const store = ['--token-store', at('tokens')]
  const bridge = startProgram(
    t,
    ['--config', config, ...store, '--browser', `${execPath} ${at('browser.mjs')}`],
    {
      CLIENT_SECRET,
      OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    },
    [execPath, '--import', crash, main],
  )
  await says(bridge, /"event":"listening"/)
  const lines = () =>
    bridge
      .stderr()
      .split('\n')
      .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Record<string, string>] : []))
  const addressOf = (event: string, part = '') =>
    lines().find((one) => one['event'] === event && String(one['url']).includes(part))?.['url'] ?? ''
  await until(
    () => addressOf('listening', '/stock') !== '' && addressOf('admin_listening') !== '',
    `addresses in ${bridge.stderr()}`,
  )
  const url = addressOf('listening', '/stock')

  const answers: string[] = []
  const ask = async (name: string) => {
    const { text, headers } = await call(url, 'tools/call', { name })
    answers.push(text, JSON.stringify(headers))
    return text
  }
  const legacy = await post(url, initialize('2025-11-25'), BOTH)
  answers.push(legacy.text)
  t.match(await ask('greet'), /Hello/, 'signed in')
  t.match(await ask('more'), /Hello/, 'signed in for another scope')
  // A renewal, and one that fails with a description.
  for (const { headers } of server.received) over.add(headers.authorization ?? '')
  t.match(await ask('greet'), /Hello/, 'renewed')
  t.ok(as.of('/token').some(({ params }) => params.has('refresh_token')))
  for (const { headers } of server.received) over.add(headers.authorization ?? '')
  as.script.token = () => [
    400,
    { error: 'invalid_scope', error_description: DESCRIPTION, access_token: 'CANARY-in-an-error' },
  ]
  t.notMatch(await ask('greet'), /Hello/, 'refused')

  const shown: string[] = []
  for (const path of ['/metrics', '/readyz', '/healthz'])
    shown.push(await (await fetch(new URL(path, addressOf('admin_listening')))).text())
  t.match(shown[0], /mcp_bridge_/)
  for (const args of [
    ['auth', 'status'],
    ['auth', 'status', '--json'],
  ])
    shown.push((await run(t, [...args, ...store])).stdout)
  t.match(shown.at(-1), /"client": "configured"/)
  await until(() => traces.text.length > 0, 'traces were exported')
  const environments = ['browser.json', 'program.json']
  for (const name of environments) await until(() => readFileSync(at(name), 'utf8') !== '', name)

  bridge.child.kill('SIGUSR2')
  t.not(await bridge.ended, 0)
  t.match(bridge.stderr(), /a crash of the test/, 'there is a report of the crash')

  const written: Record<string, string> = {
    'the log and the report of the crash': bridge.stderr(),
    'standard output': bridge.stdout(),
    'answers to clients': answers.join('\n'),
    'metrics, health and status': shown.join('\n'),
    traces: traces.text.join('\n'),
    ...Object.fromEntries(environments.map((name) => [name, readFileSync(at(name), 'utf8')])),
  }
  for (const [what, text] of Object.entries(written)) {
    t.ok(what === 'standard output' || text.length > 10, `there is something in ${what}`)
    t.same(secretsIn(text), [], what)
  }
  const [file = ''] = as.of('/token').flatMap(({ params }) => params.get('code') ?? [])
  t.same(secretsIn(`x ${file} y`), [file], 'secrets are known')
})

t.test('this test fails for a bridge that writes a secret', async (t) => {
  const teardowns: (() => void)[] = []
  const other = { teardown: (work: () => void) => teardowns.push(work) } as unknown as Test
  plant(new URLSearchParams({ state: 'CANARY-state+of a/test' }))
  watchForSecrets(other, 'a log', () => 'https://as.example/?state=CANARY-state%2Bof%20a%2Ftest')
  watchForSecrets(other, 'another', () => 'nothing')
  t.throws(teardowns[0] as () => void, { message: 'a log has a secret: CANARY-state+of a/test' })
  t.doesNotThrow(teardowns[1] as () => void)
})
