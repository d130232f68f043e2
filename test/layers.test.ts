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
    'bridge',
    'plugins',
    'downstream/http',
    'embed/fastify',
    'entry',
    'inspect/inspector',
    'inspect/keep-routes',
    'inspect/routes',
    'inspect/try-routes',
  ],
  'fastify-plugin': ['plugins'],
  '@fastify/cors': ['plugins'],
  '@fastify/http-proxy': ['downstream/http/extra-paths'],
  '@fastify/rate-limit': ['plugins'],
  preact: ['page/main'],
  'preact/hooks': ['page'],
  '@preact/signals': ['page'],
  'htm/preact': ['page'],
  undici: [
    'upstream/transport/decoding',
    'upstream/transport/origin',
    'upstream/transport/via-proxy',
    'net/connect',
    'net/fetch',
    'net/server-connect',
    'discovery/trust/pin',
    'replicas/peers',
  ],
  pino: ['log/log'],
  'node:http': [
    'bridge',
    'cli/status-socket',
    'cli/tail',
    'cli/tail-connection',
    'inspect/running-bridges',
    'inspect/hub/followed',
    'net/agent',
    'net/connections',
    'net/proxy',
    'inspect/viewer',
    'oauth/person/loopback',
    'ports/replicas',
    'replicas',
  ],
  'node:https': ['replicas/internal', 'bridge/listener', 'cli/tail-connection', 'net/agent'],
  'node:net': [
    'upstream/transport/paused',
    'upstream/transport/tls-alert',
    'bridge',
    'config/authentication',
    'net/connect',
    'net/connections',
    'net/families',
    'net/guard',
    'net/listen',
    'net/proxy',
    'net/server-connect',
    'plugins/reached',
  ],
  'prom-client': ['telemetry/metrics'],
  '@opentelemetry/api': ['telemetry/opentelemetry'],
  '@opentelemetry/exporter-trace-otlp-http': ['telemetry/opentelemetry'],
  '@opentelemetry/exporter-trace-otlp-proto': ['telemetry/opentelemetry'],
  '@opentelemetry/otlp-exporter-base/node-http': ['telemetry/audit-otlp'],
  '@opentelemetry/otlp-transformer': ['telemetry/audit-otlp'],
  '@opentelemetry/resources': ['telemetry/resource'],
  '@opentelemetry/sdk-trace-base': ['telemetry/opentelemetry'],
  zod: [
    'config',
    'cli/status-answer',
    'oauth/documents',
    'oauth/store/record',
    'discovery/manifest',
    'discovery/sources',
    'discovery/trust',
  ],
  'jsonc-parser': ['formats/document', 'formats/edit', 'formats/members'],
  'smol-toml': ['formats/document'],
  'toml-eslint-parser': ['formats/edit-toml'],
  'cross-spawn': ['upstream/transport/stdio'],
  'string-argv': ['config', 'discovery/sources/address'],
  'fastest-levenshtein': ['texts/nearest'],
  stemmer: ['group/words'],
  'lru-cache': ['policy/counted-cache', 'discovery/cycle', 'replicas/replicas'],
  '@redis/client': [
    'replicas/client',
    'replicas/cluster',
    'replicas/destroyed',
    'replicas/last-words',
    'replicas/replaced',
  ],
  'ipaddr.js': ['net/connect', 'net/guard', 'net/proxy'],
  jose: ['discovery/trust', 'oauth/client/client-auth', 'oauth/client/proof-key', 'oauth/page/company', 'oauth/server'],
  oauth4webapi: [
    'oauth/client/client-auth',
    'oauth/client/grants',
    'oauth/client/proof-key',
    'oauth/guarded-fetch',
    'oauth/page/company',
    'oauth/person/authorization',
    'oauth/server/introspection',
  ],
  picomatch: ['policy/globs'],
  ajv: ['inspect/check/checked'],
  'ajv/dist/2020.js': ['inspect/check/checked'],
  'node:worker_threads': ['inspect/check'],
  'tough-cookie': ['upstream/transport/cookie-jar'],
  'node:dns/promises': ['net/connect'],
  'node:fs/promises': ['discovery/sources/files'],
  'node:os': [
    'cli',
    'discovery/home',
    'discovery/discovery',
    'replicas/internal',
    'oauth/store/files',
    'upstream/transport/stdio/on-path',
  ],
  'node:path': [
    'inspect/running-bridges',
    'cli',
    'discovery/discovery',
    'discovery/sources',
    'discovery/trust',
    'bridge',
    'bridge/user-socket',
    'net/private-file',
    'net/state-folder',
    'oauth/store/files',
    'upstream/transport/stdio/cannot-start',
    'upstream/transport/stdio/on-path',
  ],
  'node:tls': [
    'net/agent',
    'net/connect',
    'net/proxy',
    'net/server-connect',
    'discovery/discovery',
    'discovery/trust/pin',
    'replicas/encryption',
  ],
  'node:child_process': ['oauth/person/browser', 'upstream/transport/stdio'],
  'node:crypto': [
    'bridge/user-socket',
    'inspect',
    'cli/inspect',
    'plugins/auth',
    'plugins/forwarded',
    'plugins/managed-servers',
    'downstream/http',
    'crypto',
    'replicas',
    'discovery/trust',
    'net/lock',
    'net/pem-files',
    'net/private-file',
    'oauth/person/authorization',
    'oauth/store/lease',
  ],
  'node:readline': ['cli/sign-in', 'demo/server', 'demo/modern-server'],
  'node:process': ['main', 'embed', 'upstream/transport/stdio'],
  'node:fs': [
    'main',
    'version',
    'bridge/user-socket',
    'inspect/running-bridges',
    'bridge/list-files',
    'bridge/unix-socket',
    'cli',
    'log/writer',
    'net',
    'discovery/trust',
    'oauth/person/browser',
    'oauth/store/files',
    'telemetry/audit-file',
    'upstream/transport/stdio/cannot-start',
    'upstream/transport/stdio/memory',
    'upstream/transport/stdio/on-path',
  ],
  'node:stream': [
    'embed',
    'bridge/in-memory-http',
    'inspect/routes',
    'inspect/try-routes',
    'cli/program',
    'cli/tail',
    'demo/server',
    'demo/modern-server',
    'downstream/http',
    'downstream/stdio',
    'log/writer',
    'net/agent',
    'ports/replicas',
    'replicas/peers',
  ],
  'node:events': ['bridge/unix-socket', 'bridge/user-socket', 'net/listen'],
  'node:buffer': ['upstream/peer', 'policy/cache'],
  'node:v8': ['bridge', 'cli/garbage'],
  'node:sea': ['main', 'cli/extension/run', 'inspect/check/checks'],
  'node:stream/promises': ['bridge/in-memory-http'],
  'node:tty': ['main'],
  'node:util': ['cli', 'log/paint', 'net/fetch', 'telemetry/audit-file'],
  'node:zlib': ['cli/extension/zip', 'net/fetch'],
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
  for (const start of ['main', 'cli/serve', 'embed/create', 'bridge/http-app', 'bridge/listener']) {
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
