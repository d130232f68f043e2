/** Who may import whom: the sources are compared with the floors in docs/development/architecture.md and the arrows in mechanisms.md. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { atLeast } from './support/at-least.js'

const source = fileURLToPath(new URL('../src/', import.meta.url))

const document = readFileSync(new URL('../docs/development/architecture.md', import.meta.url), 'utf8')

/** The floors of the picture that docs/development/architecture.md begins with, from above. */
const FLOORS = [...(document.split('```')[1] ?? '').matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name = '']) => name)

/** Each floor, and each room of a floor that consists of rooms, and what they import: the lines `place -> place, place` of mechanisms.md. */
const mechanisms = readFileSync(new URL('../docs/development/mechanisms.md', import.meta.url), 'utf8')
const arrows = new Map(
  [...mechanisms.matchAll(/^([a-z/]+) -> ([a-z, /]+)$/gm)].map(([, from = '', to = '']) => [
    from,
    to === 'nothing' ? [] : to.split(', '),
  ]),
)

/** Where a process or a program begins: above all floors. */
const ENTRY = ['entry.ts', 'executable.cjs', 'main.ts', 'start.js']

/** Packages and Node modules, and the places that may use them; what is not here, nobody may. */
const packages: Record<string, readonly string[]> = {
  fastify: [
    'app',
    'clients/plugins',
    'clients/http',
    'app/embed/fastify',
    'entry',
    'inspector/answers',
    'inspector/inspector',
    'inspector/keeping',
    'inspector/routes',
    'inspector/try-routes',
  ],
  'fastify-plugin': ['clients/plugins'],
  '@fastify/cors': ['clients/plugins'],
  '@fastify/http-proxy': ['clients/http/extra-paths'],
  preact: ['inspector/page/main'],
  'preact/hooks': ['inspector/page'],
  '@preact/signals': ['inspector/page'],
  'htm/preact': ['inspector/page'],
  undici: [
    'servers/transport/decoding',
    'servers/transport/origin',
    'servers/transport/undici-pool',
    'servers/transport/via-proxy',
    'base/net/connect',
    'base/net/fetch',
    'base/net/server-connect',
    'services/discovery/trust/pin',
    'services/replicas/exchange',
    'services/replicas/framed-requests',
    'services/replicas/peer',
  ],
  pino: ['base/log/log'],
  'node:http': [
    'app',
    'command/status-socket',
    'command/tail',
    'command/tail-connection',
    'inspector/hub/followed',
    'inspector/tail/tail',
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
    'command/doors',
    'command/worker',
    'config/authentication',
    'base/net/connect',
    'base/net/connections',
    'base/net/families',
    'base/net/guard',
    'base/net/listen',
    'base/net/proxy',
    'base/net/server-connect',
    'clients/plugins/reached',
    'services/replicas/framed-answers',
    'services/replicas/internal',
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
    'app/embed/file-options',
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
  stemmer: ['middle/group/search-words'],
  'lru-cache': ['middle/policy/counted-cache', 'services/replicas/memory'],
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
    'base/net/home-folder',
    'services/discovery/discovery',
    'services/replicas/internal',
    'services/oauth/store/files',
    'servers/transport/stdio/on-path',
  ],
  'node:path': [
    'config/server-names',
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
  'node:child_process': ['command/workers', 'services/oauth/person/browser', 'servers/transport/stdio'],
  'node:crypto': [
    'app/user-socket',
    'inspector',
    'command/inspect',
    'command/workers',
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
    'app/running-bridges',
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
    'inspector/answers',
    'inspector/tail/tail',
    'inspector/try-routes',
    'command/program',
    'command/demo/server',
    'command/demo/modern-server',
    'clients/http',
    'clients/stdio',
    'base/log/writer',
    'base/net/agent',
    'mcp/ports/replicas',
    'services/replicas/exchange',
    'services/replicas/framed-answers',
    'services/replicas/framed-requests',
    'services/replicas/frames',
    'services/replicas/peer',
  ],
  'node:events': [
    'app/unix-socket',
    'app/user-socket',
    'base/net/listen',
    'services/replicas/framed-answers',
    'services/replicas/internal',
  ],
  'node:buffer': ['servers/outgoing', 'servers/peer', 'middle/policy/cache'],
  'node:v8': ['app', 'command/garbage', 'command/workers'],
  'node:sea': ['main', 'command/extension/run', 'inspector/check/checks'],
  'node:stream/promises': ['app/in-memory-http'],
  'node:tty': ['main'],
  'node:util': ['command', 'base/log/paint', 'base/net/fetch', 'services/telemetry/audit-file'],
  'node:zlib': ['command/extension/zip', 'base/net/fetch'],
}

/** Rooms that compute, and do nothing else. */
const PURE = ['base/rpc', 'mcp/protocol', 'base/fault', 'base/limits']

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
const floorOf = (file: string) => file.split('/')[0] as string
/** The room of a file, without the ending; undefined on a floor without rooms, and above the floors. */
const roomOf = (file: string) => {
  const room = file.split('/').slice(0, 2).join('/')
  return arrows.has(room) ? room : undefined
}
const target = ({ from, to }: Import) => new URL(to, `file:///${from}`).pathname.slice(1).replace(/\.js$/, '')
const own = imports.filter(({ to }) => to.startsWith('.'))

t.test('src has the floors of the picture, and the files of the entry', async (t) => {
  const found = readdirSync(source, { withFileTypes: true })
  t.same(
    found.filter((one) => one.isDirectory()).map(({ name }) => name),
    [...FLOORS].sort(),
  )
  t.same(
    found.filter((one) => !one.isDirectory()).map(({ name }) => name),
    ENTRY,
  )
})

t.test('a file imports only its own floor and floors below it', async (t) => {
  t.ok(own.length > 3_000, `${own.length} imports`)
  // Above the floors, places have no number.
  const number = (file: string) => FLOORS.indexOf(floorOf(file))
  t.same(
    own.filter((one) => number(target(one)) < number(one.from)),
    [],
  )
})

t.test('floors and rooms import what docs/development/mechanisms.md says, and nothing else', async (t) => {
  const found = new Map([...arrows.keys()].map((place) => [place, new Set<string>()]))
  for (const one of own) {
    const to = target(one)
    const [above, below] = [floorOf(one.from), floorOf(to)]
    if (above !== below) found.get(above)?.add(below)
    const [room, other] = [roomOf(one.from), roomOf(to)]
    if (above === below && room !== other) found.get(room ?? '')?.add(other ?? '')
  }
  t.same(
    Object.fromEntries([...found].sort().map(([place, to]) => [place, [...to].sort()])),
    Object.fromEntries([...arrows].sort().map(([place, to]) => [place, [...to].sort()])),
  )
  const withRooms = new Set([...arrows.keys()].filter((place) => place.includes('/')).map(floorOf))
  for (const file of files.filter((name) => withRooms.has(floorOf(name))))
    t.ok(roomOf(file.replace(/\.ts$/, '')), `${file} is in a room`)
})

t.test('files and folders that the documents name exist', async (t) => {
  const places = new Set([...files.map((file) => file.replace(/\.ts$/, '')), ...folders])
  const named: [name: string, place: string][] = []
  const folder = new URL('../docs/', import.meta.url)
  const documents = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  for (const name of documents) {
    const text = readFileSync(new URL(name, folder), 'utf8')
    for (const [, place = ''] of text.matchAll(/`([a-z]+(?:\/[a-z-]+)+)(?:\.ts)?`/g))
      if (FLOORS.includes(floorOf(place)) && !existsSync(new URL(`../${place}`, import.meta.url)))
        named.push([name, place])
  }
  for (const [name, place] of atLeast(t, 50, 'places', named)) t.ok(places.has(place), `${name}: ${place}`)
})

t.test(
  'docs/development/architecture.md lists all floors and rooms, and each imports only what stands below it',
  async (t) => {
    const [, section = ''] = document.split('\n## The floors\n')
    const lines = [...(section.split('\n## ')[0] ?? '').matchAll(/^ *- (`.*?)(?:: .*)?$/gm)]
    const listed = lines.flatMap(([, names = '']) => [...names.matchAll(/`([a-z/]+)`/g)].map(([, name = '']) => name))
    t.same([...listed].sort(), [...arrows.keys()].sort())
    t.same(
      listed.filter((name) => !name.includes('/')),
      FLOORS,
    )
    for (const [from, to] of arrows)
      for (const place of to) t.ok(listed.indexOf(place) > listed.indexOf(from), `${from} stands above ${place}`)
  },
)

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

t.test('the inspector has one door: a dynamic import of its facade, whose types it passes on', async (t) => {
  const users = own.filter((one) => floorOf(target(one)) === 'inspector' && floorOf(one.from) !== 'inspector')
  t.same(
    users.map((one) => [one.from, target(one)]),
    Array(2).fill(['command/inspector', 'inspector/parts']),
  )
  const door = readFileSync(`${source}command/inspector.ts`, 'utf8')
  t.same(door.match(/.*parts\.js'.*/g), [
    "export type * from '../inspector/parts.js'",
    "export const loadInspector = () => import('../inspector/parts.js')",
  ])
})

/** The own files that are loaded with a file: it imports more of them than types, and not by `import()`. */
function loadedWith(file: string): string[] {
  const text = readFileSync(`${source}${file}.ts`, 'utf8')
  const found = text.matchAll(/^(?:import (?!type\b)[^']*?|export (?!type\b)[^']*?) from '(\.[^']+)'/gm)
  return [...found].map(([, to = '']) => target({ from: file, to }))
}

t.test('floors other than commands know services by their types, but for what Redis and workers need', async (t) => {
  const users = files
    .map((name) => name.replace(/\.ts$/, ''))
    .filter((file) => !['services', 'command'].includes(floorOf(file)))
    .filter((file) => loadedWith(file).some((other) => floorOf(other) === 'services'))
  t.same(users.sort(), ['app/redis-issues', 'app/replicas'])
})

t.test('no file that every bridge loads imports the inspector or a service', async (t) => {
  const load = (file: string, loaded: Set<string>): Set<string> => {
    if (loaded.has(file)) return loaded
    loaded.add(file)
    for (const other of loadedWith(file)) load(other, loaded)
    return loaded
  }
  for (const start of ['main', 'command/serve', 'app/embed/create', 'app/http-app', 'app/listener']) {
    const loaded = [...load(start, new Set())]
    t.ok(loaded.length > 1, start)
    t.same(
      loaded.filter((file) => ['inspector', 'services'].includes(floorOf(file))),
      [],
      start,
    )
  }
  t.ok([...load('inspector/parts', new Set())].includes('inspector/ring'))
})

t.test('there is no circle of floors and rooms', async (t) => {
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
  const pure = imports.filter(({ from }) => PURE.includes(roomOf(from) ?? ''))
  for (const { from, to } of atLeast(t, 100, 'imports of what is pure', pure)) {
    t.ok(to.startsWith('.') && !builtinModules.includes(to), `${from} imports ${to}`)
  }
  for (const file of files.filter((name) => PURE.includes(roomOf(name) ?? ''))) {
    t.notMatch(readFileSync(source + file, 'utf8'), /\b(?:Buffer|process|setTimeout|setInterval)\b\s*[.(]/, file)
  }
})
