/** docker-compose.yml: that it holds together, gives away nothing, and tells the bridge what it understands. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseDocument } from 'yaml'
import { groupPaths, groupsOf, httpListen } from '../src/config/settings.js'
import { commandIn, ports, secret } from './support/deployment.js'
import { named, parseDockerfile } from './support/dockerfile.js'
import { plainSecrets } from './support/plain-secrets.js'

interface Service {
  image?: string
  build?: string | { context: string; target: string }
  user?: string
  entrypoint?: string[]
  command?: string[]
  environment?: Record<string, string>
  volumes?: string[]
  tmpfs?: string[]
  ports?: string[]
  network_mode?: string
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
  stop_grace_period?: string
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test?: string[]; disable?: boolean; interval?: string }
}

const root = fileURLToPath(new URL('../', import.meta.url))
const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8')
const document = parseDocument(text, { merge: true })
const { services, volumes } = document.toJS() as { services: Record<string, Service>; volumes: object }
const stages = parseDockerfile(readFileSync(join(root, 'Dockerfile'), 'utf8'))
const all = Object.entries(services)
const bridges = ['bridge', 'bridge-2'].map((name) => services[name] as Service)

const isFolder = (source: string) => source.startsWith('.')
const mounts = ({ volumes: mounted = [] }: Service) => mounted.map((one) => one.split(':') as [string, string, string?])

t.test('every service drops all privileges', async (t) => {
  t.same([...document.errors, ...document.warnings], [])
  for (const [name, service] of all) {
    t.match(service, { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }, name)
    for (const port of service.ports ?? []) t.match(port, /^127\.0\.0\.1:/, `${name} is for this machine only`)
  }
})

t.test('no service has a secret in its command or its variables', async (t) => {
  t.same(plainSecrets(['redis-server', '--requirepass', 'sesame'], { DB_PASSWORD: 'x', DB_URL: 'pg://u:x@db' }), [
    'requirepass',
    'DB_PASSWORD',
    'DB_URL',
  ])
  for (const [name, { entrypoint = [], command = [], environment }] of all) {
    // A program is no list of arguments; the test of the secret of the replicas is about it.
    const args = entrypoint.includes('-e') ? entrypoint : [...entrypoint, ...command]
    t.same(plainSecrets(args, environment), [], name)
  }
})

t.test('files and services that a service names exist', async (t) => {
  for (const [name, service] of all) {
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      const { healthcheck } = services[other] ?? {}
      t.ok(other in services, `${name} waits for ${other}`)
      if (condition === 'service_healthy') t.ok(healthcheck?.test, `which says when it is well`)
      else t.equal(condition, 'service_completed_successfully')
    }
    for (const [source] of mounts(service))
      t.ok(isFolder(source) ? existsSync(join(root, source)) : source in volumes, `${name} mounts ${source}`)
    const { build } = service
    if (typeof build === 'object')
      t.ok(
        stages.some((stage) => stage.name === build.target),
        `${name} is ${build.target}`,
      )
    else if (build === undefined) t.match(service.image, /:\d/, `${name} is a version of something`)
  }
})

t.test('both replicas are the same, and accept their arguments', async (t) => {
  const [bridge, second] = bridges as [Service, Service]
  t.same({ ...second, ports: [] }, { ...bridge, ports: [] })
  t.same(
    bridges.flatMap(({ ports }) => ports),
    ['127.0.0.1:8080:8080', '127.0.0.1:8081:8080'],
  )

  const files = new Map([['/run/keys/state', secret('state')]])
  for (const [source, target] of mounts(bridge))
    if (isFolder(source))
      for (const file of readdirSync(join(root, source)))
        files.set(`${target}/${file}`, readFileSync(join(root, source, file), 'utf8'))
  const command = commandIn(t, bridge.command ?? [], files, bridge.environment)
  if (command.kind !== 'run') return t.fail('it serves nothing')
  const { settings } = command
  t.same(ports(settings), { main: { port: 8080, reachable: true }, admin: { port: 9090, reachable: true } })
  t.equal(settings.redis?.url, 'redis://redis:6379')
  t.ok('redis' in services)
  for (const server of Object.values(settings.mcpServers))
    if ('url' in server) t.match(services, { [new URL(String(server.url)).hostname]: {} }, 'its server is a service')
    else {
      t.same([server.command, server.args[0]], ['node', '/app/dist/main.js'], 'or a program of the image')
      t.match(commandIn(t, server.args.slice(1), files), { kind: 'demo server', era: 'modern' })
    }
  const [group] = groupsOf(settings).values()
  t.same(
    group?.members.map(({ server }) => server),
    Object.keys(settings.mcpServers),
    'all are together',
  )
  t.same([...groupPaths(settings, httpListen(settings.listen)).values()], [['/mcp']], 'where the command looks for it')
  const grace = Number.parseInt(bridge.stop_grace_period ?? '10', 10) * 1_000
  t.ok(grace >= settings.timeouts.drainDelay + settings.timeouts.drainTimeout + 5_000, 'there is time to end')
  t.same(bridge.healthcheck, { interval: '2s' }, 'the rest of it is in the image')
  t.equal(named(stages.at(-1) as (typeof stages)[0], 'HEALTHCHECK').length, 1)
})

t.test('the secret of the replicas is generated once, and is in no file', async (t) => {
  const { entrypoint = [], command = [], volumes: mounted, user, network_mode } = services['keys'] as Service
  t.same(
    { entrypoint, mounted, user, network_mode },
    {
      entrypoint: ['node', '-e'],
      mounted: ['keys:/run/keys'],
      user: '0:0',
      network_mode: 'none',
    },
  )
  t.match(mounts(bridges[0] as Service), [
    ['./config/examples', '/etc/mcp-bridge', 'ro'],
    ['keys', '/run/keys', 'ro'],
  ])
  const [script = ''] = command
  t.notMatch(script, /\$/, 'nothing of it is replaced on the way')
  const files = new Map<string, string>()
  const modules: Record<string, object> = {
    'node:fs': {
      existsSync: (path: string) => files.has(path),
      writeFileSync: (path: string, content: string, { mode }: { mode: number }) => {
        t.equal(mode & 0o004, 0o004, 'the bridge, which is somebody else, can read it')
        files.set(path, content)
      },
    },
    'node:crypto': { randomBytes: (size: number) => Buffer.alloc(size, files.size + 1) },
  }
  // oxlint-disable-next-line typescript/no-implied-eval -- the script of the file is what is tested
  const make = new Function('require', script) as (require: (name: string) => unknown) => void
  make((name) => modules[name])
  const first = files.get('/run/keys/state') ?? ''
  t.ok(first.length >= 32)
  make((name) => modules[name])
  t.same([...files], [['/run/keys/state', first]], 'the second time it stays')
})

t.test('the command to try it is the one in the README', async (t) => {
  const [line = ''] = /curl -s http:\/\/127\.0\.0\.1:8080.*/.exec(text) ?? []
  t.ok(readFileSync(join(root, 'README.md'), 'utf8').includes(line))
  t.match(line, /server\/discover/)
})
