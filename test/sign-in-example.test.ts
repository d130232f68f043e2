/** config/sign-in: the same programs as in its containers, with the same files, on other ports. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { env, execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseDocument } from 'yaml'
import { main, says, startProgram, watchProgram } from './support/cli.js'
import { commandIn, ports } from './support/deployment.js'
import { parseDockerfile } from './support/dockerfile.js'
import { temporaryFile } from './support/folder.js'
import { freePort } from './support/free-port.js'
import { kits, provider, signedIn } from './support/sdk-sign-in.js'

interface Service {
  build: string
  command?: string[]
  ports?: string[]
  volumes?: string[]
  network_mode?: string
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test?: string[] }
}

const folder = fileURLToPath(new URL('../config/sign-in/', import.meta.url))
const read = (file: string) => readFileSync(join(folder, file), 'utf8')
const text = read('docker-compose.yml')
const document = parseDocument(text, { merge: true })
const { services } = document.toJS() as { services: Record<string, Service> }
const bridge = services['bridge'] as Service

t.test('every service drops all privileges, and is for this machine only', async (t) => {
  t.same([...document.errors, ...document.warnings], [])
  for (const [name, service] of Object.entries(services)) {
    t.match(service, { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }, name)
    for (const port of service.ports ?? []) t.match(port, /^127\.0\.0\.1:/, name)
  }
})

t.test('what services say of each other and of files is there', async (t) => {
  t.same(bridge.network_mode, 'service:provider')
  t.same(bridge.depends_on, { provider: { condition: 'service_healthy' } })
  t.ok(services['provider']?.healthcheck?.test)
  const stages = parseDockerfile(read('provider/Dockerfile'))
  t.equal(stages.length, 1)
  const { dependencies } = JSON.parse(read('provider/package.json')) as { dependencies: Record<string, string> }
  const tested = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  t.equal(`^${dependencies['oidc-provider']}`, tested.devDependencies['oidc-provider'], 'the version that is tested')
  const files = new Map([['/etc/mcp-bridge/bridge.json', read('bridge.json')]])
  const command = commandIn(t, bridge.command ?? [], files)
  if (command.kind !== 'run') return t.fail('it serves nothing')
  t.same(ports(command.settings), { main: { port: 8080, reachable: true }, admin: { port: 9090, reachable: true } })
  const open = services['provider']?.ports?.map((port) => new URL(`http://${port.split(':').slice(1).join('/')}`).port)
  t.equal(open?.length, 2)
  const { publicUrl, auth } = command.settings
  t.same(
    [publicUrl, auth?.issuers?.[0]?.issuer],
    ['http://localhost:8080', 'http://localhost:9000'],
    'as a browser of this machine reaches them',
  )
})

t.test('people sign in with any name, and only the admin may open the safe', async (t) => {
  const [own, issuer] = [await freePort(), await freePort()]
  const login = spawn(execPath, [join(folder, 'provider/provider.mjs')], { env: { ...env, PORT: String(issuer) } })
  await says(watchProgram(t, login), /identity provider: /)
  const moved = read('bridge.json')
    .replaceAll('localhost:9000', `localhost:${issuer}`)
    .replaceAll('[::]:8080', `127.0.0.1:${own}`)
    .replaceAll('localhost:8080', `localhost:${own}`)
    .replaceAll('[::]:9090', '127.0.0.1:0')
    .replaceAll('/app/dist/main.js', main)
    .replaceAll('"node"', JSON.stringify(execPath))
  const program = startProgram(t, ['--config', temporaryFile(t, 'bridge.json', moved), '--log-format', 'json'])
  await says(program, /"listening"/)
  const safe = { name: 'legacy__open_safe', arguments: { safe: 'small', combination: '12-34-56' } }
  for (const [login, mayOpen] of [
    ['alice', false],
    ['admin', true],
  ] as const) {
    const person = provider({ types: { login, password: 'any' } })
    const client = await signedIn(t, kits['SDK v1'], `http://localhost:${own}/mcp`, person)
    const weather = await client.callTool({ name: 'legacy__weather', arguments: { city: 'Oslo' } })
    t.match(JSON.stringify(weather), /Oslo/, login)
    const opened = await client.callTool(safe).then(
      (result) => JSON.stringify(result),
      (error: unknown) => String(error),
    )
    if (mayOpen) t.notMatch(opened, /403|scope/i, login)
    else t.match(opened, /403|scope/i, login)
  }
  t.match(program.stdout(), /"subject":"alice".*"reason":"insufficient_scope"/)
})
