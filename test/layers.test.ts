/** Who may import whom, read off the sources themselves: docs/architecture.md has the picture. */
import { readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const source = fileURLToPath(new URL('../src/', import.meta.url))

/** Each layer, and the layers that it may import. */
const arrows: Record<string, readonly string[]> = {
  main: [
    'announce',
    'app',
    'cli',
    'complaint',
    'config',
    'found',
    'inspect',
    'log',
    'mount',
    'oauth',
    'protocol',
    'runtime',
    'telemetry',
    'upstream',
  ],
  advice: ['protocol', 'upstream'],
  announce: ['advice', 'app', 'config', 'mount', 'protocol', 'upstream'],
  complaint: ['advice', 'cli', 'config', 'protocol', 'upstream'],
  cli: ['config', 'discovery', 'formats', 'found', 'net', 'oauth', 'protocol'],
  found: ['app', 'config', 'discovery', 'inspect', 'mount', 'net', 'policy', 'protocol', 'rpc', 'upstream'],
  discovery: ['formats', 'net', 'protocol', 'rpc'],
  formats: [],
  net: [],
  oauth: ['net', 'protocol', 'rpc', 'seal'],
  app: [
    'config',
    'discovery',
    'downstream',
    'front',
    'listener',
    'mount',
    'oauth',
    'plugins',
    'policy',
    'protocol',
    'replicas',
    'seal',
    'telemetry',
    'upstream',
  ],
  front: ['config', 'downstream', 'listener', 'mount', 'plugins', 'protocol'],
  mount: [
    'app',
    'config',
    'discovery',
    'downstream',
    'inspect',
    'oauth',
    'policy',
    'protocol',
    'rpc',
    'seal',
    'upstream',
  ],
  listener: ['protocol', 'rpc'],
  inspect: ['upstream', 'protocol', 'rpc'],
  log: ['config', 'protocol'],
  runtime: [],
  config: [],
  downstream: ['protocol', 'rpc'],
  upstream: ['protocol', 'rpc', 'seal'],
  replicas: ['protocol', 'rpc', 'seal'],
  seal: [],
  policy: ['protocol', 'rpc'],
  plugins: ['protocol'],
  telemetry: ['protocol'],
  protocol: ['rpc'],
  rpc: [],
}

/** Packages and Node modules, and the places that may use them; what is not here, nobody may. */
const packages: Record<string, readonly string[]> = {
  fastify: ['app', 'front', 'mount', 'plugins', 'downstream/http'],
  'fastify-plugin': ['plugins'],
  '@fastify/cors': ['plugins'],
  '@fastify/http-proxy': ['downstream/http'],
  undici: ['upstream/origin', 'net/connect', 'net/fetch', 'discovery/trust/pin'],
  pino: ['app', 'log', 'main'],
  'node:http': ['listener', 'oauth/person/loopback', 'replicas'],
  'node:net': ['listener', 'net/connect', 'net/guard'],
  'prom-client': ['telemetry/metrics'],
  '@opentelemetry/api': ['telemetry/opentelemetry'],
  '@opentelemetry/exporter-trace-otlp-http': ['telemetry/opentelemetry'],
  '@opentelemetry/exporter-trace-otlp-proto': ['telemetry/opentelemetry'],
  '@opentelemetry/resources': ['telemetry/opentelemetry'],
  '@opentelemetry/sdk-trace-base': ['telemetry/opentelemetry'],
  zod: [
    'config',
    'oauth/documents',
    'oauth/store/record',
    'discovery/manifest',
    'discovery/sources',
    'discovery/trust',
  ],
  'jsonc-parser': ['formats/document'],
  'smol-toml': ['formats/document'],
  'string-argv': ['config', 'discovery/sources/address'],
  'lru-cache': ['policy/lent-cache', 'discovery/cycle'],
  '@redis/client': ['replicas/client'],
  'ipaddr.js': ['net/connect', 'net/guard'],
  jose: ['discovery/trust', 'oauth/client/client-auth'],
  oauth4webapi: ['oauth/client/client-auth', 'oauth/client/grants', 'oauth/person/authorization'],
  picomatch: ['policy/quarantine'],
  'node:dns/promises': ['net/connect'],
  'node:fs/promises': ['discovery/sources/files'],
  'node:os': ['cli/writable', 'discovery/home', 'discovery/trust', 'found/parts', 'oauth/store/files'],
  'node:path': [
    'cli/settings',
    'discovery/sources',
    'discovery/trust',
    'net/private-file',
    'oauth/store/files',
    'found/parts',
  ],
  'node:tls': ['net/connect', 'discovery/trust/pin', 'found/parts'],
  'node:child_process': ['oauth/person/browser', 'upstream/stdio'],
  'node:crypto': [
    'plugins/auth',
    'downstream/http',
    'seal',
    'upstream/seen-lists',
    'policy/cache',
    'policy/tool-list',
    'policy/unavailable',
    'replicas',
    'discovery/trust',
    'net/lock',
    'net/private-file',
    'oauth/person/authorization',
    'oauth/store/in-turn',
  ],
  'node:readline': ['main'],
  'node:process': ['main', 'upstream/stdio'],
  'node:fs': [
    'main',
    'cli',
    'log/writer',
    'net',
    'discovery/trust',
    'oauth/client',
    'oauth/person/browser',
    'oauth/store/files',
  ],
  'node:stream': ['downstream/http', 'downstream/stdio', 'log/writer', 'replicas'],
  'node:buffer': ['upstream/http', 'upstream/stdio', 'policy/cache'],
  'node:timers/promises': [
    'app',
    'main',
    'upstream/http',
    'discovery/cycle',
    'net/lock',
    'oauth/person/flow',
    'oauth/store/in-turn',
  ],
  'node:v8': ['app'],
  'node:tty': ['main'],
  'node:util': ['cli', 'upstream/origin'],
}

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

const layerOf = (file: string) => file.split('/')[0] as string
const target = ({ from, to }: Import) => new URL(to, `file:///${from}`).pathname.slice(1).replace(/\.js$/, '')

t.test('layers import only what the picture shows', async (t) => {
  t.ok(imports.length > 100)
  for (const one of imports.filter(({ to }) => to.startsWith('.'))) {
    const [from, to] = [layerOf(one.from), layerOf(target(one))]
    t.ok(from === to || arrows[from]?.includes(to), `${one.from} imports ${target(one)}`)
  }
})

t.test('the picture shows nothing that is not there', async (t) => {
  for (const [from, tos] of Object.entries(arrows)) {
    for (const to of tos)
      t.ok(
        imports.some((one) => one.to.startsWith('.') && layerOf(one.from) === from && layerOf(target(one)) === to),
        `${from} -> ${to}`,
      )
  }
})

t.test('packages are used where they belong', async (t) => {
  for (const { from, to } of imports.filter(({ to }) => !to.startsWith('.'))) {
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

t.test('what is pure imports neither a package nor a module of Node', async (t) => {
  for (const { from, to } of imports.filter(({ from }) => ['rpc', 'protocol'].includes(layerOf(from)))) {
    t.ok(to.startsWith('.') && !builtinModules.includes(to), `${from} imports ${to}`)
  }
  for (const file of files.filter((name) => ['rpc', 'protocol'].includes(layerOf(name)))) {
    t.notMatch(readFileSync(source + file, 'utf8'), /\b(?:Buffer|process|setTimeout|setInterval)\b\s*[.(]/, file)
  }
})
