/** Who may import whom: the sources are compared with the arrows in docs/development/mechanisms.md and the list of rooms in docs/development/architecture.md. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { atLeast } from './support/at-least.js'

const source = fileURLToPath(new URL('../src/', import.meta.url))

const document = readFileSync(new URL('../docs/development/architecture.md', import.meta.url), 'utf8')

/** Each room, and the rooms that it may import: the lines `room -> room, room` of docs/development/mechanisms.md. */
const mechanisms = readFileSync(new URL('../docs/development/mechanisms.md', import.meta.url), 'utf8')
const arrows = new Map(
  [...mechanisms.matchAll(/^([a-z-]+) -> ([a-z-, ]+)$/gm)].map(([, from = '', to = '']) => [
    from,
    to === 'nothing' ? [] : to.split(', '),
  ]),
)

/** Packages and Node modules, and the places that may use them; what is not here, nobody may. */
const packages: Record<string, readonly string[]> = {
  fastify: [
    'app',
    'clients/plugins',
    'clients/http',
    'app/embed/fastify',
    'entry',
    'inspector/inspector',
    'inspector/keep-routes',
    'inspector/routes',
    'inspector/try-routes',
  ],
  'fastify-plugin': ['clients/plugins'],
  '@fastify/cors': ['clients/plugins'],
  '@fastify/http-proxy': ['clients/http/extra-paths'],
  '@fastify/rate-limit': ['clients/plugins'],
  preact: ['inspector/page/main'],
  'preact/hooks': ['inspector/page'],
  '@preact/signals': ['inspector/page'],
  'htm/preact': ['inspector/page'],
  undici: [
    'servers/transport/decoding',
    'servers/transport/origin',
    'servers/transport/via-proxy',
    'base/net/connect',
    'base/net/fetch',
    'base/net/server-connect',
    'services/discovery/trust/pin',
    'services/replicas/peers',
  ],
  pino: ['base/log/log'],
  'node:http': [
    'app',
    'command/status-socket',
    'command/tail',
    'command/tail-connection',
    'inspector/running-bridges',
    'inspector/hub/followed',
    'base/net/agent',
    'base/net/connections',
    'base/net/proxy',
    'inspector/viewer',
    'services/oauth/person/loopback',
    'mcp/ports/replicas',
    'services/replicas',
  ],
  'node:https': ['services/replicas/internal', 'app/listener', 'command/tail-connection', 'base/net/agent'],
  'node:net': [
    'servers/transport/paused',
    'servers/transport/tls-alert',
    'app',
    'config/authentication',
    'base/net/connect',
    'base/net/connections',
    'base/net/families',
    'base/net/guard',
    'base/net/listen',
    'base/net/proxy',
    'base/net/server-connect',
    'clients/plugins/reached',
  ],
  'prom-client': ['services/telemetry/metrics'],
  '@opentelemetry/api': ['services/telemetry/opentelemetry'],
  '@opentelemetry/exporter-trace-otlp-http': ['services/telemetry/opentelemetry'],
  '@opentelemetry/exporter-trace-otlp-proto': ['services/telemetry/opentelemetry'],
  '@opentelemetry/otlp-exporter-base/node-http': ['services/telemetry/audit-otlp'],
  '@opentelemetry/otlp-transformer': ['services/telemetry/audit-otlp'],
  '@opentelemetry/resources': ['services/telemetry/resource'],
  '@opentelemetry/sdk-trace-base': ['services/telemetry/opentelemetry'],
  zod: [
    'config',
    'command/status-answer',
    'services/oauth/documents',
    'services/oauth/store/record',
    'services/discovery/manifest',
    'services/discovery/sources',
    'services/discovery/trust',
  ],
  'jsonc-parser': ['config/formats/document', 'config/formats/edit', 'config/formats/members'],
  'smol-toml': ['config/formats/document'],
  'toml-eslint-parser': ['config/formats/edit-toml'],
  'cross-spawn': ['servers/transport/stdio'],
  'string-argv': ['config', 'services/discovery/sources/address'],
  'fastest-levenshtein': ['base/texts/nearest'],
  stemmer: ['middle/group/words'],
  'lru-cache': ['middle/policy/counted-cache', 'services/discovery/cycle', 'services/replicas/replicas'],
  '@redis/client': [
    'services/replicas/client',
    'services/replicas/cluster',
    'services/replicas/destroyed',
    'services/replicas/last-words',
    'services/replicas/replaced',
  ],
  'ipaddr.js': ['base/net/connect', 'base/net/guard', 'base/net/proxy'],
  jose: [
    'services/discovery/trust',
    'services/oauth/client/client-auth',
    'services/oauth/client/proof-key',
    'services/oauth/page/company',
    'services/oauth/server',
  ],
  oauth4webapi: [
    'services/oauth/client/client-auth',
    'services/oauth/client/grants',
    'services/oauth/client/proof-key',
    'services/oauth/guarded-fetch',
    'services/oauth/page/company',
    'services/oauth/person/authorization',
    'services/oauth/server/introspection',
  ],
  picomatch: ['middle/policy/globs'],
  ajv: ['inspector/check/checked'],
  'ajv/dist/2020.js': ['inspector/check/checked'],
  'node:worker_threads': ['inspector/check'],
  'tough-cookie': ['servers/transport/cookie-jar'],
  'node:dns/promises': ['base/net/connect'],
  'node:fs/promises': ['services/discovery/sources/files'],
  'node:os': [
    'command',
    'services/discovery/home',
    'services/discovery/discovery',
    'services/replicas/internal',
    'services/oauth/store/files',
    'servers/transport/stdio/on-path',
  ],
  'node:path': [
    'inspector/running-bridges',
    'command',
    'services/discovery/discovery',
    'services/discovery/sources',
    'services/discovery/trust',
    'app',
    'app/user-socket',
    'base/net/private-file',
    'base/net/state-folder',
    'services/oauth/store/files',
    'servers/transport/stdio/cannot-start',
    'servers/transport/stdio/on-path',
  ],
  'node:tls': [
    'base/net/agent',
    'base/net/connect',
    'base/net/proxy',
    'base/net/server-connect',
    'services/discovery/discovery',
    'services/discovery/trust/pin',
    'services/replicas/encryption',
  ],
  'node:child_process': ['services/oauth/person/browser', 'servers/transport/stdio'],
  'node:crypto': [
    'app/user-socket',
    'inspector',
    'command/inspect',
    'clients/plugins/auth',
    'clients/plugins/forwarded',
    'clients/plugins/managed-servers',
    'clients/http',
    'base/crypto',
    'services/replicas',
    'services/discovery/trust',
    'base/net/lock',
    'base/net/pem-files',
    'base/net/private-file',
    'services/oauth/person/authorization',
    'services/oauth/store/lease',
  ],
  'node:readline': ['command/sign-in', 'command/demo/server', 'command/demo/modern-server'],
  'node:process': ['main', 'app/embed', 'servers/transport/stdio'],
  'node:fs': [
    'main',
    'base/version',
    'app/user-socket',
    'inspector/running-bridges',
    'app/list-files',
    'app/unix-socket',
    'command',
    'base/log/writer',
    'base/net',
    'services/discovery/trust',
    'services/oauth/person/browser',
    'services/oauth/store/files',
    'services/telemetry/audit-file',
    'servers/transport/stdio/cannot-start',
    'servers/transport/stdio/memory',
    'servers/transport/stdio/on-path',
  ],
  'node:stream': [
    'app/embed',
    'app/in-memory-http',
    'inspector/routes',
    'inspector/try-routes',
    'command/program',
    'command/tail',
    'command/demo/server',
    'command/demo/modern-server',
    'clients/http',
    'clients/stdio',
    'base/log/writer',
    'base/net/agent',
    'mcp/ports/replicas',
    'services/replicas/peers',
  ],
  'node:events': ['app/unix-socket', 'app/user-socket', 'base/net/listen'],
  'node:buffer': ['servers/peer', 'middle/policy/cache'],
  'node:v8': ['app', 'command/garbage'],
  'node:sea': ['main', 'command/extension/run', 'inspector/check/checks'],
  'node:stream/promises': ['app/in-memory-http'],
  'node:tty': ['main'],
  'node:util': ['command', 'base/log/paint', 'base/net/fetch', 'services/telemetry/audit-file'],
  'node:zlib': ['command/extension/zip', 'base/net/fetch'],
}

/** Rooms that compute, and do nothing else. */
const PURE = ['rpc', 'protocol', 'fault', 'limits']

interface Import {
  from: string
  to: string
}

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const imports: Import[] = files.flatMap((file) => {
  const text = readFileSync(source + file, 'utf8')
  const found = [...text.matchAll(/^(?:import\b|export\b|\}).*? from '([^']+)'|\bimport\('([^']+)'\)/gm)].map(
    ([, to, lazily]) => to ?? lazily ?? '',
  )
  return found.map((to) => ({ from: file.replace(/\.ts$/, ''), to }))
})

const folders = new Set(files.flatMap((file) => file.split('/').map((_, at, parts) => parts.slice(0, at).join('/'))))
const roomOf = (file: string) => file.split('/')[0] as string
const target = ({ from, to }: Import) => new URL(to, `file:///${from}`).pathname.slice(1).replace(/\.js$/, '')
const own = imports.filter(({ to }) => to.startsWith('.'))

t.test('rooms import what docs/development/mechanisms.md says, and nothing else', async (t) => {
  t.ok(imports.length > 100)
  const found = new Map(files.map((file) => [roomOf(file.replace(/\.ts$/, '')), new Set<string>()]))
  for (const one of own) {
    const [from, to] = [roomOf(one.from), roomOf(target(one))]
    if (from !== to) found.get(from)?.add(to)
  }
  t.same(
    Object.fromEntries([...found].sort().map(([room, to]) => [room, [...to].sort()])),
    Object.fromEntries([...arrows].sort().map(([room, to]) => [room, [...to].sort()])),
  )
})

t.test('files and folders that the documents name exist', async (t) => {
  const places = new Set([...files.map((file) => file.replace(/\.ts$/, '')), ...folders])
  const named: [name: string, place: string][] = []
  const folder = new URL('../docs/', import.meta.url)
  const documents = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  for (const name of documents) {
    const text = readFileSync(new URL(name, folder), 'utf8')
    for (const [, place = ''] of text.matchAll(/`([a-z]+(?:\/[a-z-]+)+)(?:\.ts)?`/g))
      if (arrows.has(roomOf(place)) && !existsSync(new URL(`../${place}`, import.meta.url))) named.push([name, place])
  }
  for (const [name, place] of atLeast(t, 50, 'places', named)) t.ok(places.has(place), `${name}: ${place}`)
})

t.test('docs/development/architecture.md lists all rooms, and each imports only rooms below it', async (t) => {
  const [, section = ''] = document.split('\n## The rooms\n')
  const lines = [...(section.split('\n## ')[0] ?? '').matchAll(/^- (`.*?): /gm)].map(([, names = '']) =>
    [...names.matchAll(/`([a-z]+)`/g)].map(([, name = '']) => name),
  )
  const listed = lines.flat().filter((name) => name !== 'start')
  t.same([...listed].sort(), [...arrows.keys()].sort())
  for (const [from, to] of arrows)
    for (const room of to) t.ok(listed.indexOf(room) > listed.indexOf(from), `${from} stands above ${room}`)
})

t.test('every place of the table "Where does a change go?" exists and has the code named beside it', async (t) => {
  const [, section = ''] = document.split('\n## Where does a change go?\n')
  const lines = (section.split('\n## ')[0] ?? '').matchAll(/^\| (?!Change)(.*?) ?\|$/gm)
  const rows = [...lines].map(([, cells = '']) => cells.split(' | '))
  t.ok(rows.length >= 50, `${rows.length} changes`)
  for (const [change = '', where = '', also = ''] of rows) {
    t.match(where, /`/, change)
    const spans = `${where} ${also}`.matchAll(/`((?:\.ci|config|docs|src|test)\/[^`]+)`(?: \((`[^)]*`)\))?/g)
    for (const [, place = '', names = ''] of spans) {
      const url = new URL(`../${place}`, import.meta.url)
      t.ok(existsSync(url), `${change}: ${place}`)
      for (const [, name = ''] of existsSync(url) && statSync(url).isFile() ? names.matchAll(/`([^`\s]+)`/g) : [])
        t.match(readFileSync(url, 'utf8'), new RegExp(`(?<![\\w#])${name}(?!\\w)`), `${change}: ${place}: ${name}`)
    }
  }
})

t.test('only the inspector, its page and the commands know what records and shows', async (t) => {
  for (const room of ['recorder', 'inspect', 'page'])
    t.same(
      [...new Set(own.filter((one) => roomOf(target(one)) === room).map(({ from }) => roomOf(from)))].filter(
        (from) => !['recorder', 'inspect', 'page', 'replay', 'cli'].includes(from),
      ),
      [],
      room,
    )
})

t.test('a bridge loads what records and shows only if it has an inspector', async (t) => {
  const load = (file: string, loaded: Set<string>): Set<string> => {
    if (loaded.has(file)) return loaded
    loaded.add(file)
    const text = readFileSync(`${source}${file}.ts`, 'utf8')
    for (const [, to = ''] of text.matchAll(/^(?:import (?!type\b)[^']*?|export (?!type\b)[^']*?) from '(\.[^']+)'/gm))
      load(target({ from: file, to }), loaded)
    return loaded
  }
  for (const start of ['main', 'command/serve', 'app/embed/create', 'app/http-app', 'app/listener']) {
    const loaded = [...load(start, new Set())]
    t.ok(loaded.length > 1, start)
    t.same(
      loaded.filter((file) => ['recorder', 'inspect', 'page'].includes(roomOf(file))),
      [],
      start,
    )
  }
  t.ok([...load('cli/inspector', new Set())].some((file) => roomOf(file) === 'recorder'))
})

t.test('there is no circle of rooms', async (t) => {
  t.same(circlesIn(arrows), [])
})

t.test('there is no circle of files', async (t) => {
  const graph = new Map<string, string[]>()
  for (const one of own) graph.set(one.from, [...(graph.get(one.from) ?? []), target(one)])
  t.same(circlesIn(graph), [])
})

/** Paths that come back to where they began. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const circles: string[] = []
  const over = new Set<string>()
  const visit = (name: string, path: readonly string[]): void => {
    if (path.includes(name)) circles.push([...path.slice(path.indexOf(name)), name].join(' -> '))
    if (over.has(name) || path.includes(name)) return
    for (const next of graph.get(name) ?? []) visit(next, [...path, name])
    over.add(name)
  }
  for (const name of graph.keys()) visit(name, [])
  return circles
}

t.test('packages are used only where allowed', async (t) => {
  const ofPackages = imports.filter(({ to }) => !to.startsWith('.'))
  for (const { from, to } of atLeast(t, 100, 'imports of packages and modules', ofPackages)) {
    t.ok(
      packages[to]?.some((place) => from === place || from.startsWith(`${place}/`)),
      `${from} imports ${to}`,
    )
  }
  for (const [name, places] of Object.entries(packages)) {
    for (const place of places)
      t.ok(
        imports.some(({ from, to }) => to === name && (from === place || from.startsWith(`${place}/`))),
        `${place} imports ${name}`,
      )
  }
})

t.test('pure rooms import neither a package nor a module of Node', async (t) => {
  const pure = imports.filter(({ from }) => PURE.includes(roomOf(from)))
  for (const { from, to } of atLeast(t, 100, 'imports of what is pure', pure)) {
    t.ok(to.startsWith('.') && !builtinModules.includes(to), `${from} imports ${to}`)
  }
  for (const file of files.filter((name) => PURE.includes(roomOf(name)))) {
    t.notMatch(readFileSync(source + file, 'utf8'), /\b(?:Buffer|process|setTimeout|setInterval)\b\s*[.(]/, file)
  }
})
