/**
 * The Helm chart, by the real helm: that a cluster would take what it renders, that its pods may run in a namespace that
 * restricts what pods may do, that the bridge understands what it is told, and that values that make no sense are refused.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from '@redis/client'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { NEED_RESTART } from '../src/bridge/bridge.js'
import { CHART, helm, NAMESPACE, noHelm, RELEASE, type Rendering, render } from './support/chart.js'
import { commandIn, ports, secret } from './support/deployment.js'
import { temporaryFolder } from './support/folder.js'
import { type Container, complaints, containersOf, ofKind, type Pod, parseManifest } from './support/kubernetes.js'
import { noRedis, RedisServer } from './support/redis.js'
import { forbidden } from './support/restricted.js'
import { runTool } from './support/tools.js'

const readme = readFileSync(join(CHART, 'README.md'), 'utf8')
/** What the README shows of a file. */
const shown = (file: string) =>
  [...readme.matchAll(/```yaml\n# (\S+)\n([\s\S]*?)```/g)].filter(([, name]) => name === file)
const server = { url: 'http://orders.shop.svc.cluster.local:3000/mcp' }
const least = { config: { mcpServers: { orders: server }, allowUnauthenticated: true } }
const everything = {
  config: {
    mcpServers: { orders: server, catalog: { url: 'http://catalog:3000/mcp', path: '/c/mcp' } },
    auth: { tokens: { shop: '${file:/run/secrets/mcp-bridge/token-shop}' } },
    timeouts: { drainDelay: 10_000, drainTimeout: 60_000 },
    redis: { prefix: 'shop:' },
  },
  secret: { data: { 'token-shop': secret('token-shop') } },
  image: { digest: `sha256:${'0'.repeat(64)}`, pullSecrets: [{ name: 'registry' }] },
  autoscaling: { enabled: true, boundUtilization: 70 },
  ingress: { enabled: true, className: 'nginx', controller: 'nginx', host: 'mcp.example.com', tlsSecret: 'tls' },
  httpRoute: { enabled: true, parentRefs: [{ name: 'gateway' }], hostnames: ['mcp.example.com', 'mcp.example.org'] },
  networkPolicy: { enabled: true },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  prometheusRule: { enabled: true },
  tmp: { enabled: true },
  extraEnv: [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://collector:4318' }],
  priorityClassName: 'high',
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ key: 'gateways', operator: 'Exists' }],
}
const external = { ...least, redis: { mode: 'external' }, secret: { existing: 'mine' }, replicas: 3 }
const single = { ...least, redis: { mode: 'none' }, replicas: 1, serviceAccount: { create: false } }
const example = parse(shown('values.yaml')[0]?.[2] ?? '') as object
const variants: [name: string, values: object][] = [
  ['the least that can be said', least],
  ['everything', everything],
  ['a Redis and a Secret that are there already', external],
  ['a single replica', single],
  ['the example of the README', example],
]

t.test('helm finds nothing to complain about', { skip: noHelm }, async (t) => {
  for (const [name, values] of variants) {
    const { status, stdout } = helm(t, ['lint', '--strict', CHART], values)
    t.equal(status, 0, `${name}: ${stdout}`)
  }
})

for (const [name, values] of variants) {
  t.test(`with ${name}, the chart is what a cluster takes`, { skip: noHelm }, async (t) => {
    const { mistakes, resources } = render(t, values)
    t.same(mistakes, [])
    for (const one of resources) {
      t.same(await complaints(one), [], `${one.kind} ${one.metadata?.name}`)
      t.equal(one.metadata?.namespace, NAMESPACE)
    }
    const identities = resources.map(({ kind, metadata }) => `${kind} ${metadata?.name}`)
    t.equal(new Set(identities).size, identities.length, 'no two have the same name')
    for (const { spec } of ofKind(resources, 'Deployment')) t.same(forbidden(spec?.template.spec as Pod), [])
  })

  t.test(`with ${name}, what the objects say of each other is there`, { skip: noHelm }, async (t) => {
    const { resources } = render(t, values)
    const pods = ofKind(resources, 'Deployment').map(({ spec }) => spec?.template)
    const selectors = [
      ...ofKind(resources, 'Deployment').map(({ spec }) => spec?.selector),
      ...ofKind(resources, 'Service').map(({ spec }) => ({ matchLabels: spec?.selector })),
      ...ofKind(resources, 'PodDisruptionBudget').map(({ spec }) => spec?.selector),
      ...ofKind(resources, 'NetworkPolicy').map(({ spec }) => spec?.podSelector),
      ...pods.flatMap((pod) => pod?.spec.topologySpreadConstraints?.map(({ labelSelector }) => labelSelector) ?? []),
    ]
    for (const selector of selectors) {
      const wanted = Object.entries(selector?.matchLabels ?? { none: true })
      const selected = pods.filter((pod) => wanted.every(([key, value]) => pod?.metadata?.labels?.[key] === value))
      t.equal(selected.length, 1, `${JSON.stringify(selector)} selects the pods of one deployment`)
    }
    const services = ofKind(resources, 'Service')
    const portsOf = (service: string) => services.find(({ metadata }) => metadata?.name === service)?.spec?.ports ?? []
    for (const { spec } of ofKind(resources, 'Ingress'))
      for (const { http } of spec?.rules ?? [])
        for (const { backend } of http.paths)
          t.ok(portsOf(backend.service.name).some(({ name }) => name === backend.service.port.name))
    for (const { spec } of ofKind(resources, 'HTTPRoute'))
      for (const { backendRefs } of spec?.rules ?? [])
        for (const { name, port } of backendRefs) t.ok(portsOf(name).some((one) => one.port === port))
    for (const { spec } of ofKind(resources, 'ServiceMonitor')) {
      const [monitored, ...rest] = services.filter(({ metadata }) =>
        Object.entries(spec?.selector.matchLabels ?? {}).every(([key, value]) => metadata?.labels?.[key] === value),
      )
      t.same(rest, [], 'one Service is monitored')
      t.ok(monitored?.spec?.ports?.some(({ name }) => name === spec?.endpoints[0]?.port))
    }
    for (const { spec } of ofKind(resources, 'HorizontalPodAutoscaler')) {
      t.match(gateway({ resources }), {
        kind: spec?.scaleTargetRef.kind,
        metadata: { name: spec?.scaleTargetRef.name },
      })
      t.equal(gateway({ resources }).spec?.replicas, undefined, 'the number of replicas is said in one place')
    }
  })

  t.test(`with ${name}, the bridge understands its configuration`, { skip: noHelm }, async (t) => {
    const { resources } = render(t, values)
    const { settings, pod, bridge } = understood(t, { resources })
    t.same(ports(settings), { main: { port: 8080, reachable: true }, admin: { port: 9090, reachable: true } })
    const { drainDelay, drainTimeout } = settings.timeouts
    const grace = (pod.terminationGracePeriodSeconds ?? 30) * 1_000
    t.ok(grace >= drainDelay + drainTimeout + 5_000, 'there is time to drain, and to end')
    t.equal(bridge.readinessProbe?.httpGet?.path, '/readyz')
    t.equal(bridge.livenessProbe?.httpGet?.path, '/healthz')
    for (const probe of [bridge.startupProbe, bridge.readinessProbe, bridge.livenessProbe])
      t.equal(probe?.httpGet?.port, 'admin')
    const [service] = ofKind(resources, 'Service').filter(({ spec }) => spec?.ports?.[0]?.name === 'http')
    const { name: host = '' } = service?.metadata ?? {}
    for (const one of [host, `${host}.${NAMESPACE}.svc.cluster.local`]) t.ok(settings.allowedHosts.includes(one), one)
  })
}

t.test('what everything is set to arrives', { skip: noHelm }, async (t) => {
  const rendering = render(t, everything)
  const { settings, pod, bridge } = understood(t, rendering)
  t.match(settings, { publicUrl: 'https://mcp.example.com', redis: { prefix: 'shop:' } })
  t.ok(settings.redis?.url?.endsWith(`@${RELEASE}-mcp-bridge-redis:6379`))
  t.ok(settings.allowedHosts.includes('mcp.example.org'))
  t.equal(pod.terminationGracePeriodSeconds, 80)
  t.match(bridge, { image: /mcp-bridge@sha256:0+$/, env: [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT' }] })
  t.match(ofKind(rendering.resources, 'HorizontalPodAutoscaler')[0]?.spec?.metrics, [
    { type: 'Resource', resource: { target: { averageUtilization: 70 } } },
    { pods: { metric: { name: 'mcp_bridge_bound_utilization' }, target: { averageValue: '700m' } } },
  ])
  t.match(ofKind(rendering.resources, 'HTTPRoute')[0]?.spec?.rules[0]?.timeouts, {
    request: '0s',
    backendRequest: '0s',
  })
})

t.test('a Redis Cluster in "config" replaces "redis.url"', { skip: noHelm }, async (t) => {
  const redis = { cluster: ['redis://node-1:6379'] }
  const { settings } = understood(t, render(t, { ...external, config: { ...external.config, redis } }))
  t.match(settings.redis, { url: undefined, cluster: redis.cluster })
})

t.test(
  'its own Redis starts as it is told, and lets the bridge in and nobody else',
  { skip: noHelm || noRedis },
  async (t) => {
    const { resources } = render(t, least)
    const found = ofKind(resources, 'Deployment').find(
      ({ metadata }) => metadata?.name === `${RELEASE}-mcp-bridge-redis`,
    )
    const [container] = found?.spec?.template.spec.containers ?? []
    t.same(container?.command, ['redis-server'])
    const password = secret('redis-password')
    const args = container?.args?.map((arg) => arg.replace('$(REDIS_PASSWORD)', password)) ?? []
    const redis = await RedisServer.start(t, ...args)
    const { settings } = understood(t, { resources })
    const url = settings.redis?.url?.replace(`${RELEASE}-mcp-bridge-redis:6379`, new URL(redis.url).host)
    const connect = async (url = '') => {
      const client = createClient({ url, socket: { reconnectStrategy: false } }).on('error', () => {})
      t.teardown(() => client.destroy())
      await client.connect()
      return client
    }
    const client = await connect(url)
    t.match(await client.configGet('maxmemory-policy'), { 'maxmemory-policy': 'noeviction' })
    await t.rejects(
      connect(redis.url).then((stranger) => stranger.ping()),
      /NOAUTH/,
    )
  },
)

t.test('streams get through every ingress controller that the chart knows', { skip: noHelm }, async (t) => {
  const controllers: [controller: string, annotations: Record<string, string>][] = [
    [
      'nginx',
      { 'nginx.ingress.kubernetes.io/proxy-buffering': 'off', 'nginx.ingress.kubernetes.io/proxy-read-timeout': '900' },
    ],
    ['f5-nginx', { 'nginx.org/proxy-buffering': 'False', 'nginx.org/proxy-read-timeout': '900s' }],
    ['haproxy', { 'haproxy.org/timeout-server': '900s' }],
    ['traefik', {}],
    ['none', {}],
  ]
  for (const [controller, expected] of controllers) {
    const ingress = { enabled: true, controller, readTimeout: 900, annotations: { mine: 'too' } }
    const [found] = ofKind(render(t, { ...least, ingress }).resources, 'Ingress')
    t.match(found?.metadata?.annotations, { ...expected, mine: 'too' }, controller)
  }
  const { settings } = understood(
    t,
    render(t, { ...least, config: { ...least.config, limits: { bodyBytes: 1_048_576 } } }),
  )
  t.equal(settings.limits.bodyBytes, 1_048_576)
  const small = { ...least.config, limits: { bodyBytes: 1_048_576 } }
  const [found] = ofKind(
    render(t, { config: small, ingress: { enabled: true, controller: 'nginx' } }).resources,
    'Ingress',
  )
  t.match(found?.metadata?.annotations, { 'nginx.ingress.kubernetes.io/proxy-body-size': '1048576' })
})

t.test('pods are replaced for what wants a restart, and for nothing else', { skip: noHelm }, async (t) => {
  const checksum = (values: object) =>
    gateway(render(t, values)).spec?.template.metadata?.annotations?.['checksum/restart']
  const before = checksum(least)
  t.equal(checksum({ config: { ...least.config, limits: { calls: 10 } } }), before)
  t.not(checksum({ config: { ...least.config, log: { format: 'json', level: 'debug' } } }), before)
  const template = readFileSync(join(CHART, 'templates/deployment.yaml'), 'utf8')
  const [, picked = ''] = /checksum\/restart: \{\{ pick \$config ([^|]*) \|/.exec(template) ?? []
  t.same(JSON.parse(`[${picked.replaceAll(' ', ',')}]`), NEED_RESTART)
})

t.test('what makes no sense is refused, with what has to change', { skip: noHelm }, async (t) => {
  const refused: [values: object, message: RegExp][] = [
    [{}, /config\.mcpServers is empty/],
    [{ config: { mcpServers: { orders: server } } }, /set config\.auth\.tokens, or config\.allowUnauthenticated/],
    [{ ...least, redis: { mode: 'none' } }, /Replicas share a Redis/],
    [{ ...least, replcas: 3 }, /additional properties 'replcas' not allowed/],
    [{ config: { ...least.config, listen: 'http://0.0.0.0:1/mcp' } }, /\/config/],
    [{ config: { ...least.config, redis: { url: 'redis://x' } } }, /\/config\/redis/],
    [{ ...least, ingress: { enabled: true, controller: 'apache' } }, /\/ingress\/controller/],
    [{ ...least, httpRoute: { enabled: true } }, /httpRoute\.parentRefs is empty/],
    [{ ...least, autoscaling: { enabled: true, cpu: 0 } }, /autoscaling needs a metric/],
  ]
  for (const [values, message] of refused) t.throws(() => render(t, values), { message })
})

t.test('a Secret that is there already is not made again', { skip: noHelm }, async (t) => {
  const { resources } = render(t, external)
  t.same(ofKind(resources, 'Secret'), [])
  const { spec } = gateway({ resources })
  t.match(spec?.template.spec.volumes, [{}, { name: 'secrets', secret: { secretName: 'mine' } }])
})

t.test(
  'a chart of your own has the bridge as a sidecar, and nothing else of this chart',
  { skip: noHelm },
  async (t) => {
    const folder = temporaryFolder(t)
    const [, values] = shown('values.yaml')
    const files: [path: string, content: string][] = [
      ['Chart.yaml', `apiVersion: v2\nname: orders\nversion: 1.0.0\n${shown('Chart.yaml')[0]?.[2]}`],
      ['values.yaml', values?.[2] ?? ''],
      ['templates/deployment.yaml', shown('templates/deployment.yaml')[0]?.[2] ?? ''],
    ]
    for (const [path, content] of files) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), content)
    }
    cpSync(CHART, join(folder, 'charts/mcp-bridge'), { recursive: true })
    const { resources } = render(t, {}, folder)
    t.same(
      resources.map(({ kind }) => kind),
      ['Deployment'],
    )
    const [deployment] = ofKind(resources, 'Deployment')
    if (!deployment) return t.fail('there is no deployment')
    t.same(await complaints(deployment), [])
    const pod = deployment.spec?.template.spec as Pod
    t.same(forbidden(pod), [])
    const [sidecar] = containersOf(pod)
    t.match(sidecar, { name: 'mcp-bridge', restartPolicy: 'Always', startupProbe: { httpGet: { path: '/healthz' } } })
    const command = commandIn(t, sidecar?.args ?? [], new Map())
    t.match(command, { kind: 'run', settings: { allowedHosts: [RELEASE] } })
    if (command.kind === 'run') t.equal(Object.keys(command.settings.mcpServers).length, 1)

    const template = join(folder, 'templates/deployment.yaml')
    const program = '"command" (list "node" "/servers/notes.js" "--quiet") "listen" "http://127.0.0.1:8123/mcp"'
    writeFileSync(
      template,
      readFileSync(template, 'utf8')
        .replace('"upstream" "http://127.0.0.1:3000/mcp"', program)
        .replace('"args" (list "--allow-unauthenticated")', ''),
    )
    const [other] = ofKind(render(t, {}, folder).resources, 'Deployment')
    const [starting] = containersOf(other?.spec?.template.spec as Pod)
    t.match(starting, { startupProbe: { httpGet: { path: '/readyz' } }, ports: [{ containerPort: 8123 }, {}] })
    t.match(commandIn(t, starting?.args ?? [], new Map()), {
      kind: 'run',
      settings: { listen: 'http://127.0.0.1:8123/mcp' },
    })
  },
)

t.test('the commands of the documents install something', { skip: noHelm }, async (t) => {
  const root = fileURLToPath(new URL('../', import.meta.url))
  const documents = ['README.md', 'docs/operations.md'].map((path) => readFileSync(join(root, path), 'utf8'))
  const commands = documents.flatMap((text) => text.replaceAll(/\\\n\s*/g, '').match(/^helm install .*$/gm) ?? [])
  t.equal(commands.length, 2)
  for (const command of commands) {
    const args = [
      'template',
      ...command
        .split(/\s+/)
        .slice(2)
        .filter((word) => word !== '--create-namespace'),
    ]
    const { status, stdout, stderr } = runTool('kubernetes', 'helm', args, root)
    t.equal(status, 0, stderr)
    t.match(understood(t, parseManifest(stdout)).settings, {
      mcpServers: { orders: { url: 'http://orders.shop:3000/mcp' } },
    })
  }
})

t.test('the chart, its application and the image have the same version', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as { version: string; appVersion: string }
  t.match(chart, { version, appVersion: version })
  t.match(readme, `version: ${version}\n`)
})

function gateway({ resources }: Pick<Rendering, 'resources'>) {
  const found = ofKind(resources, 'Deployment').find(
    ({ metadata }) => metadata?.labels?.['app.kubernetes.io/component'] === 'gateway',
  )
  if (!found) throw new Error('There is no gateway')
  return found
}

/** What the bridge of a gateway makes of its arguments and of the files that it gets. */
function understood(t: Test, { resources }: Pick<Rendering, 'resources'>) {
  const pod = gateway({ resources }).spec?.template.spec as Pod
  const [bridge] = pod.containers as [Container]
  const [config] = ofKind(resources, 'ConfigMap')
  const files = new Map([['/etc/mcp-bridge/mcp.json', config?.data?.['mcp.json'] ?? '']])
  for (const [, path = '', key = ''] of files
    .get('/etc/mcp-bridge/mcp.json')
    ?.matchAll(/\$\{file:([^}]*\/([^}/]+))\}/g) ?? [])
    files.set(path, secret(key))
  for (const mount of ['/etc/mcp-bridge', '/run/secrets/mcp-bridge'])
    if (!bridge.volumeMounts?.some(({ mountPath }) => mountPath === mount)) throw new Error(`${mount} is not mounted`)
  const command = commandIn(t, bridge.args ?? [], files)
  if (command.kind !== 'run') throw new Error('It serves nothing')
  return { settings: command.settings, pod, bridge }
}
