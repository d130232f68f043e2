/**
 * The Helm chart, by the real helm: that a cluster would take what it renders, that its pods may run in a namespace that
 * restricts what pods may do, that the bridge understands what it is told, and that values that make no sense are refused.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from '@redis/client'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { type ChartValue, chartSchema, chartValues } from '../.ci/chart-schema.js'
import { NEED_RESTART } from '../src/app/bridge.js'
import { groupsOf } from '../src/config/settings.js'
import { CHART, helm, NAMESPACE, noHelm, RELEASE, type Rendering, render } from './support/chart.js'
import { watchProgram } from './support/cli.js'
import { commandIn, ports, secret } from './support/deployment.js'
import { until } from './support/eventually.js'
import { temporaryFolder } from './support/folder.js'
import { freePort } from './support/free-port.js'
import { type Container, complaints, containersOf, ofKind, type Pod, parseManifest } from './support/kubernetes.js'
import { noRedis } from './support/redis.js'
import { forbidden } from './support/restricted.js'
import { runTool } from './support/tools.js'

const readme = readFileSync(join(CHART, 'README.md'), 'utf8')
/** What the README shows of a file. */
const shown = (file: string) =>
  [...readme.matchAll(/```yaml\n# (\S+)\n([\s\S]*?)```/g)].filter(([, name]) => name === file)
const server = { url: 'http://orders.shop.svc.cluster.local:3000/mcp' }
const least = { config: { mcpServers: { orders: server }, allowUnauthenticated: true } }
const further = (name: string) => ({
  name,
  image: `example/${name}:1.0.0`,
  resources: { requests: { cpu: '50m' }, limits: { memory: '64Mi' } },
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
})
const everything = {
  config: {
    mcpServers: { orders: server, catalog: { url: 'http://catalog:3000/mcp', path: '/c/mcp' } },
    auth: { tokens: { shop: '${file:/run/secrets/mcp-bridge/token-shop}' } },
    timeouts: { drainDelay: 10_000, drainTimeout: 60_000 },
    redis: { prefix: 'shop:' },
    groups: { shop: { servers: ['orders', 'catalog'], prefixes: { catalog: 'cat' } } },
  },
  secret: { data: { 'token-shop': secret('token-shop') } },
  image: { digest: `sha256:${'0'.repeat(64)}`, pullSecrets: [{ name: 'registry' }] },
  autoscaling: { enabled: true, boundUtilization: 70 },
  ingress: { enabled: true, className: 'nginx', controller: 'nginx', host: 'mcp.example.com', tlsSecret: 'tls' },
  httpRoute: { enabled: true, parentRefs: [{ name: 'gateway' }], hostnames: ['mcp.example.com', 'mcp.example.org'] },
  networkPolicy: { egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }] },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  prometheusRule: { enabled: true },
  tmp: { enabled: true },
  extraEnv: [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://collector:4318' }],
  grafanaDashboard: { enabled: true, annotations: { grafana_folder: 'MCP' } },
  redis: { priorityClassName: 'high', nodeSelector: { 'kubernetes.io/os': 'linux' } },
  extraContainers: [further('proxy')],
  extraInitContainers: [further('copy')],
  topologySpreadConstraints: [{ maxSkew: 2, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' }],
  priorityClassName: 'high',
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  affinity: { nodeAffinity: {} },
  tolerations: [{ key: 'gateways', operator: 'Exists' }],
}
/** As OpenShift wants it, which chooses a user of the range of its namespace. */
const anybody = { podSecurityContext: { runAsUser: null, runAsGroup: null } }
const openshift = { ...least, ...anybody, redis: anybody }
const external = { ...least, redis: { mode: 'external' }, secret: { existing: 'mine' }, replicas: 3 }
const single = { ...least, redis: { mode: 'none' }, replicas: 1, serviceAccount: { create: false } }
const example = parse(shown('values.yaml')[0]?.[2] ?? '') as object
const signIn = parse(shown('sign-in.yaml')[0]?.[2] ?? '') as { config: { auth: { issuers: object[] } } }
const variants: [name: string, values: object][] = [
  ['the least that can be said', least],
  ['everything', everything],
  ['a Redis and a Secret that are there already', external],
  ['a single replica', single],
  ['users that OpenShift chooses', openshift],
  ['the example of the README', example],
  ['people who sign in', signIn],
]

t.test('helm finds nothing to complain about', { skip: noHelm }, async (t) => {
  for (const [name, values] of variants) {
    const { status, stdout } = helm(t, ['lint', '--strict', CHART], values)
    t.equal(status, 0, `${name}: ${stdout}`)
  }
})

for (const [name, values] of variants) {
  t.test(`with ${name}, Kubernetes accepts the chart`, { skip: noHelm }, async (t) => {
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

  t.test(`with ${name}, objects refer only to objects that exist`, { skip: noHelm }, async (t) => {
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

  t.test(`with ${name}, the bridge accepts its configuration`, { skip: noHelm }, async (t) => {
    const { resources } = render(t, values)
    const { settings, pod, bridge } = understood(t, { resources })
    t.same(ports(settings), { main: { port: 8080, reachable: true }, admin: { port: 9090, reachable: true } })
    t.equal(settings.replicas.address, settings.redis && 'http://10.0.0.1:8090')
    const ipv6 = understood(t, { resources }, 'fd00::1').settings
    t.equal(ipv6.replicas.address, ipv6.redis && 'http://[fd00::1]:8090', 'in a cluster of IPv6')
    for (const { spec } of ofKind(resources, 'Service'))
      if (spec?.ports?.[0]?.name === 'http')
        t.equal(spec.ipFamilyPolicy, 'PreferDualStack', 'in a cluster of both families')
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

t.test('every value of the chart reaches its manifest', { skip: noHelm }, async (t) => {
  const rendering = render(t, everything)
  const { settings, pod, bridge } = understood(t, rendering)
  t.match(settings, { publicUrl: 'https://mcp.example.com', redis: { prefix: 'shop:' } })
  t.match(groupsOf(settings).get('shop')?.members, [
    { server: 'orders', prefix: 'orders' },
    { server: 'catalog', prefix: 'cat' },
  ])
  t.ok(settings.redis?.url?.endsWith(`@${RELEASE}-mcp-bridge-redis:6379`))
  t.ok(settings.allowedHosts.includes('mcp.example.org'))
  t.equal(pod.terminationGracePeriodSeconds, 80)
  t.match(bridge, {
    image: /mcp-bridge@sha256:0+$/,
    env: [{ name: 'POD_IP' }, { name: 'OTEL_EXPORTER_OTLP_ENDPOINT' }],
  })
  t.match(ofKind(rendering.resources, 'HorizontalPodAutoscaler')[0]?.spec?.metrics, [
    { type: 'Resource', resource: { target: { averageUtilization: 70 } } },
    { pods: { metric: { name: 'mcp_bridge_bound_utilization' }, target: { averageValue: '700m' } } },
  ])
  t.match(ofKind(rendering.resources, 'HTTPRoute')[0]?.spec?.rules[0]?.timeouts, {
    request: '0s',
    backendRequest: '0s',
  })
})

t.test('a ConfigMap of your own takes the place of "config"', { skip: noHelm }, async (t) => {
  const { resources, mistakes } = render(t, { existingConfig: 'mine', secret: { existing: 'keys' } })
  t.same(mistakes, [])
  t.notOk(
    ofKind(resources, 'ConfigMap').some(({ data }) => data && 'mcp.json' in data),
    'the chart makes none',
  )
  const deployment = ofKind(resources, 'Deployment').find(({ metadata }) => metadata?.name === `${RELEASE}-mcp-bridge`)
  const pod = deployment?.spec?.template.spec as Pod
  t.match(
    pod.volumes?.find(({ name }) => name === 'config'),
    { configMap: { name: 'mine' } },
  )
  t.throws(() => render(t, { ...least, existingConfig: 'mine' }), { message: /give one of them/ })
})

t.test('one value chooses the family of all addresses', { skip: noHelm }, async (t) => {
  for (const [ipFamily, any] of [
    ['', '[::]'],
    ['IPv6', '[::]'],
    ['IPv4', '0.0.0.0'],
  ] as const) {
    const { resources } = render(t, { ...least, ipFamily })
    const config = ofKind(resources, 'ConfigMap').find(({ data }) => data?.['mcp.json'])?.data?.['mcp.json'] ?? ''
    t.match(JSON.parse(config), {
      listen: `http://${any}:8080/mcp`,
      admin: `http://${any}:9090`,
      replicas: { address: 'http://${POD_IP}:8090' },
    })
    const service = ofKind(resources, 'Service').find(({ metadata }) => metadata?.name === `${RELEASE}-mcp-bridge`)
    t.match(
      service?.spec,
      ipFamily === ''
        ? { ipFamilyPolicy: 'PreferDualStack' }
        : { ipFamilyPolicy: 'SingleStack', ipFamilies: [ipFamily] },
    )
  }
  t.throws(() => render(t, { ...least, ipFamily: 'IPv5' }))
})

/** A schema of JSON, as far as the test reads it. */
interface Schema extends Record<string, unknown> {
  properties?: Record<string, Schema>
}

t.test('each value has a comment, a type and a description, and the schema knows no other values', async (t) => {
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as Schema
  t.same(schema, JSON.parse(chartSchema()), 'descriptions are the comments: run `npm run schema`')
  // Helm sets the first one for all charts. The other ones are what a version of Kubernetes may have.
  const known = new Set(['global', 'redis.resources.claims', 'resources.claims'])
  let count = 0
  const compare = ({ properties, additionalProperties }: Schema, values: readonly ChartValue[], where: string) => {
    const names = values.map(({ path }) => path.join('.'))
    const others = Object.keys(properties ?? {}).map((name) => `${where}${name}`)
    if (additionalProperties === false)
      t.same(
        others.filter((name) => !names.includes(name) && !known.has(name)),
        [],
        'the schema knows no other values',
      )
    for (const { path, comment, inner } of values) {
      const name = path.join('.')
      count++
      t.ok(comment, `${name} has a comment`)
      const own = properties?.[path.at(-1) as string]
      if (!own) {
        t.fail(`the schema knows ${name}`)
        continue
      }
      t.ok(own['description'], `${name} has a description`)
      t.ok(
        ['type', 'enum', 'anyOf', '$ref'].some((key) => key in own),
        `${name} has a type`,
      )
      if (own.properties) compare(own, inner, `${name}.`)
    }
  }
  compare(schema, chartValues(), '')
  t.ok(count > 90, `${count} values`)
})

t.test('leaves users to OpenShift, for the gateway and its Redis', { skip: noHelm }, async (t) => {
  const pods = (values: object) =>
    ofKind(render(t, values).resources, 'Deployment').map(({ spec }) => spec?.template.spec as Pod)
  for (const { securityContext } of pods(openshift))
    t.strictSame(securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  t.match(pods(least), [{ securityContext: { runAsUser: 65_532 } }, { securityContext: { runAsUser: 999 } }])
})

t.test('merges security contexts into the defaults', { skip: noHelm }, async (t) => {
  const values = { podSecurityContext: { fsGroup: 1_000 }, securityContext: { readOnlyRootFilesystem: false } }
  const { pod, bridge } = understood(t, render(t, { ...least, ...values }))
  t.match(pod.securityContext, { runAsUser: 65_532, fsGroup: 1_000 })
  t.match(bridge.securityContext, { readOnlyRootFilesystem: false, capabilities: { drop: ['ALL'] } })
})

t.test('adds the configured containers and volumes to a pod', { skip: noHelm }, async (t) => {
  const { pod } = understood(t, render(t, everything))
  t.match(pod, {
    containers: [{ name: 'mcp-bridge' }, further('proxy')],
    initContainers: [further('copy')],
    affinity: { nodeAffinity: {} },
    priorityClassName: 'high',
    tolerations: everything.tolerations,
  })
  const redis = ofKind(render(t, everything).resources, 'Deployment')[1]?.spec?.template.spec
  t.match(redis, everything.redis)
})

t.test('spreads replicas as configured, by default over zones and nodes', { skip: noHelm }, async (t) => {
  const spread = (values: object) => understood(t, render(t, values)).pod.topologySpreadConstraints
  const labelSelector = { matchLabels: { 'app.kubernetes.io/component': 'gateway' } }
  t.match(spread(least), [
    { topologyKey: 'topology.kubernetes.io/zone', labelSelector },
    { topologyKey: 'kubernetes.io/hostname', labelSelector },
  ])
  const [own] = everything.topologySpreadConstraints
  t.match(spread(everything), [{ ...own, labelSelector }])
  const mine = { matchLabels: { team: 'shop' } }
  t.strictSame(spread({ ...least, topologySpreadConstraints: [{ ...own, labelSelector: mine }] }), [
    { ...own, labelSelector: mine },
  ])
  t.equal(spread({ ...least, topologySpreadConstraints: [] }), undefined)
})

t.test('the dashboard is a ConfigMap that the sidecar of Grafana finds', { skip: noHelm }, async (t) => {
  const found = (values: object) =>
    ofKind(render(t, values).resources, 'ConfigMap').filter(({ data }) => data?.['mcp-bridge.json'])
  t.same(found(least), [], 'only if it is asked for')
  const [dashboard] = found(everything)
  t.match(dashboard?.metadata, { labels: { grafana_dashboard: '1' }, annotations: { grafana_folder: 'MCP' } })
  const file = readFileSync(join(CHART, 'files/grafana-dashboard.json'), 'utf8')
  t.same(JSON.parse(dashboard?.data?.['mcp-bridge.json'] ?? ''), JSON.parse(file))
  const [elsewhere] = found({ ...least, grafanaDashboard: { enabled: true, namespace: 'monitoring' } })
  t.equal(elsewhere?.metadata?.namespace, 'monitoring')
})

t.test('people sign in with the values of the README, at paths that are routed', { skip: noHelm }, async (t) => {
  const routed = {
    ...signIn,
    httpRoute: { enabled: true, parentRefs: [{ name: 'gateway' }], hostnames: ['mcp.example.com'] },
  }
  const rendering = render(t, routed)
  const { settings } = understood(t, rendering)
  t.match(settings, {
    publicUrl: 'https://mcp.example.com',
    auth: {
      scopes: ['mcp'],
      issuers: [
        { facade: { clientId: 'APPLICATION', clientSecret: secret('entra-secret') } },
        { claims: { token_use: ['access'] } },
      ],
      forwarded: { secret: secret('proxy-secret') },
    },
    audit: { stdout: true },
    limits: { tools: [{ tools: 'orders__create_*', max: 30, every: 60_000 }] },
  })
  const prefixes = [
    ...ofKind(rendering.resources, 'Ingress').map(({ spec }) => spec?.rules?.[0]?.http.paths.map(({ path }) => path)),
    ...ofKind(rendering.resources, 'HTTPRoute').map(({ spec }) =>
      spec?.rules[0]?.matches?.map(({ path }) => path?.value),
    ),
  ]
  t.same(prefixes, [['/'], ['/']])
})

t.test('secrets of identity providers are not for values', { skip: noHelm }, async (t) => {
  const [entra] = signIn.config.auth.issuers
  for (const [auth, path] of [
    [
      { issuers: [{ ...entra, facade: { clientId: 'a', clientSecret: 'in-plain-text' } }] },
      'issuers.0.facade.clientSecret',
    ],
    [
      { issuers: [{ ...entra, introspection: { clientId: 'a', clientSecret: 'in-plain-text' } }] },
      'issuers.0.introspection.clientSecret',
    ],
    [
      { forwarded: { user: 'a', secretHeader: 'b', secret: 'in-plain-text-0123456789-0123456789' } },
      'forwarded.secret',
    ],
  ] as const) {
    const values = { ...signIn, config: { ...signIn.config, auth } }
    t.throws(() => render(t, values), { message: new RegExp(`config\\.auth\\.${path.replaceAll('.', '\\.')}`) }, path)
  }
})

t.test('a Redis Cluster in "config" replaces "redis.url"', { skip: noHelm }, async (t) => {
  const redis = { cluster: ['redis://node-1:6379'] }
  const { settings } = understood(t, render(t, { ...external, config: { ...external.config, redis } }))
  t.match(settings.redis, { url: undefined, cluster: redis.cluster })
})

t.test(
  'the Redis of the chart accepts only the bridge, and no process has the password',
  { skip: noHelm || noRedis },
  async (t) => {
    const { resources } = render(t, least)
    const named = ({ metadata }: { metadata?: { name?: string } }) => metadata?.name === `${RELEASE}-mcp-bridge-redis`
    const pod = ofKind(resources, 'Deployment').find(named)?.spec?.template.spec as Pod
    const [container] = pod.containers as [Container]
    t.equal(container.env, undefined, 'a variable is as readable as an argument')
    const [mount] = container.volumeMounts?.filter(({ name }) => name === 'secret') ?? []
    t.match(
      pod.volumes?.find(({ name }) => name === 'secret'),
      {
        secret: { secretName: `${RELEASE}-mcp-bridge`, items: [{ key: 'redis-password', path: 'redis-password' }] },
      },
    )

    const password = secret('redis-password')
    const folder = temporaryFolder(t)
    writeFileSync(join(folder, 'redis-password'), password)
    const port = await freePort()
    const [program = '', ...rest] = [...(container.command ?? []), ...(container.args ?? [])]
    const here = `<<END\nport ${port}\nbind 127.0.0.1\ndir ${folder}`
    const args = rest.map((arg) => arg.replace('<<END', here).replaceAll(mount?.mountPath ?? '?', folder))
    const redis = watchProgram(t, spawn(program, args))
    await until(() => redis.stdout().includes('Ready to accept connections'), redis.stderr())
    for (const file of ['cmdline', 'environ'])
      t.notMatch(readFileSync(`/proc/${redis.child.pid}/${file}`, 'utf8'), password, file)

    const { settings } = understood(t, { resources })
    const url = settings.redis?.url?.replace(`${RELEASE}-mcp-bridge-redis:6379`, `127.0.0.1:${port}`)
    const connect = async (url = '') => {
      const client = createClient({ url, socket: { reconnectStrategy: false } }).on('error', () => {})
      t.teardown(() => client.destroy())
      await client.connect()
      return client
    }
    const client = await connect(url)
    t.match(await client.configGet(['maxmemory', 'maxmemory-policy', 'save', 'appendonly']), {
      maxmemory: `${64 * 1024 * 1024}`,
      'maxmemory-policy': 'noeviction',
      save: '',
      appendonly: 'no',
    })
    await t.rejects(
      connect(`redis://127.0.0.1:${port}`).then((stranger) => stranger.ping()),
      /NOAUTH/,
    )
    redis.child.kill('SIGTERM')
    t.equal(await redis.ended, 0, 'it is told when its pod ends')
  },
)

t.test('refuses secrets in plain text anywhere, unless allowed', { skip: noHelm }, async (t) => {
  const container = { name: 'proxy', image: 'example/proxy:1.0.0' }
  const values = {
    config: {
      mcpServers: {
        orders: {
          url: 'https://shop:sesame@example.com/mcp',
          headers: {
            Authorization: 'Bearer sesame',
            Cookie: 'sesame=1',
            'x-api-key': 'sesame',
            'X-Custom': `ghp_${'a'.repeat(36)}`,
            'X-Basic': 'Basic c2VzYW1l',
            'X-Default-Token': '${TOKEN:-sesame}',
            'X-Escaped-Token': '$${sesame}',
          },
          oauth: { clientId: 'shop', clientSecret: 'sesame' },
        },
        catalog: { url: 'https://example.com/mcp?page=1&api_key=sesame' },
        notes: {
          command: 'notes',
          args: ['--api-key', 'sesame', '--password=sesame', '-H', 'Authorization: sesame', 'redis://:sesame@redis'],
          env: { NOTES_TOKEN: 'sesame', githubToken: 'sesame', DATABASE_URL: 'postgres://notes:sesame@db/notes' },
        },
      },
      auth: { tokens: { shop: 'sesame', support: { token: 'sesame', scopes: ['write'] } } },
      inspect: { token: 'sesame' },
      publish: { key: '{"kty":"EC","d":"sesame"}' },
      redis: { sentinels: ['redis://:sesame@sentinel-1:26379'] },
    },
    redis: { mode: 'external', url: 'redis://:sesame@redis:6379' },
    extraEnv: [{ name: 'ORDERS_TOKEN', value: 'sesame' }],
    extraContainers: [{ ...container, args: ['--token=sesame'] }],
    extraInitContainers: [{ ...container, env: [{ name: 'PASSWORD', value: 'sesame' }] }],
  }
  const why = whyNot(t, values) ?? ''
  t.same(why.match(/(?<=^ {2})\S+$/gm), [
    'config.auth.tokens.shop',
    'config.auth.tokens.support.token',
    'config.inspect.token',
    'config.mcpServers.catalog.url',
    'config.mcpServers.notes.args.1',
    'config.mcpServers.notes.args.2',
    'config.mcpServers.notes.args.4',
    'config.mcpServers.notes.args.5',
    'config.mcpServers.notes.env.DATABASE_URL',
    'config.mcpServers.notes.env.NOTES_TOKEN',
    'config.mcpServers.notes.env.githubToken',
    'config.mcpServers.orders.headers.Authorization',
    'config.mcpServers.orders.headers.Cookie',
    'config.mcpServers.orders.headers.X-Basic',
    'config.mcpServers.orders.headers.X-Custom',
    'config.mcpServers.orders.headers.X-Default-Token',
    'config.mcpServers.orders.headers.X-Escaped-Token',
    'config.mcpServers.orders.headers.x-api-key',
    'config.mcpServers.orders.oauth.clientSecret',
    'config.mcpServers.orders.url',
    'config.publish.key',
    'config.redis.sentinels.0',
    'redis.url',
    'extraEnv.ORDERS_TOKEN',
    'extraContainers.proxy.args.0',
    'extraInitContainers.proxy.PASSWORD',
  ])
  t.match(why, /write \$\{file:\/run\/secrets\/mcp-bridge\/<key>\} in its place.*secret\.allowLiteral=true/)
  t.notMatch(why, /sesame/)
  t.equal(whyNot(t, { ...values, secret: { allowLiteral: true } }), undefined)
})

t.test('references to secrets, and names of secrets, are not secrets', { skip: noHelm }, async (t) => {
  const file = (key: string) => `\${file:/run/secrets/mcp-bridge/${key}}`
  const values = {
    config: {
      mcpServers: {
        orders: {
          url: `https://shop:${file('a')}@example.com/mcp?api_key=${file('b')}&page=1`,
          headers: {
            Authorization: `Bearer ${file('a')}`,
            'x-api-key': '${KEY}',
            Cookie: `a=${file('b')}`,
            'X-Y': 'z',
          },
          oauth: { clientId: 'a', clientSecret: file('c'), grant: 'token', tokenFile: '/run/token' },
          scopes: { delete_tokens: ['write'] },
          session: 'shared',
        },
        notes: {
          command: 'notes',
          args: ['--token', '${TOKEN}', '--max-tokens', '100', '--token-type', 'opaque', 'http://example.com'],
          env: { TOKEN_FILE: '/run/token', MAX_TOKENS: '4096', TOKEN_URL: 'https://example.com', NODE_ENV: 'x' },
        },
      },
      groups: { shop: { servers: ['orders'], prefixes: { orders: 'tokens' } } },
      auth: { tokens: { shop: file('a'), support: { token: file('b'), scopes: ['read'] } } },
    },
    extraEnv: [{ name: 'ORDERS_TOKEN', valueFrom: { secretKeyRef: { name: 'mine', key: 'a' } } }],
    extraContainers: [{ name: 'proxy', image: 'example/proxy:1.0.0', args: ['--token=$(TOKEN)'] }],
  }
  t.equal(whyNot(t, values), undefined)
})

t.test('the notes name allowed plain secrets, and an open admin port', { skip: noHelm }, async (t) => {
  const notes = (values: object) => {
    const args = ['install', RELEASE, CHART, '--dry-run=client', '--namespace', NAMESPACE]
    const { stdout, stderr } = helm(t, args, values)
    return stdout.split('NOTES:')[1] ?? stderr
  }
  const headers = { 'X-Api-Key': 'sesame' }
  const plain = { ...least.config, mcpServers: { orders: { ...server, headers } } }
  t.match(
    notes({ config: plain, secret: { allowLiteral: true } }),
    /secrets in plain text[\s\S]*\n {2}config\.mcpServers\.orders\.headers\.X-Api-Key\n/,
  )
  t.match(notes({ ...least, networkPolicy: { enabled: false } }), /anybody in the cluster can read metrics/)
  t.match(
    notes(least),
    /Only pods of this namespace, and of namespaces with the label mcp-bridge-clients=true, may call/,
  )
  t.notMatch(notes(least), /plain text|anybody/)
})

t.test(
  'a network policy restricts the admin port by default, and callers if there are no tokens',
  { skip: noHelm },
  async (t) => {
    const policy = (values: object) =>
      ofKind(render(t, values).resources, 'NetworkPolicy').find(
        ({ metadata }) => metadata?.name === `${RELEASE}-mcp-bridge`,
      )?.spec
    const from = (port: string, values: object) =>
      policy(values)?.ingress?.find(({ ports }) => ports?.[0]?.port === port)?.from
    const tokens = { config: { mcpServers: { orders: server }, auth: everything.config.auth } }
    const monitoring = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }]
    for (const values of [least, tokens, external, everything]) t.strictSame(from('admin', values), monitoring)
    t.strictSame(from('http', least), [
      { podSelector: {} },
      { namespaceSelector: { matchLabels: { 'mcp-bridge-clients': 'true' } } },
    ])
    const everybody = [
      tokens,
      { ...least, ingress: { enabled: true } },
      { ...least, httpRoute: everything.httpRoute },
      { ...least, service: { type: 'LoadBalancer' } },
    ]
    for (const values of everybody) {
      t.ok(policy(values)?.ingress?.some(({ ports }) => ports?.[0]?.port === 'http'))
      t.equal(from('http', values), undefined)
    }
    t.strictSame(from('http', { ...tokens, networkPolicy: { from: [{ podSelector: {} }] } }), [{ podSelector: {} }])
    const pods = policy(least)?.podSelector
    for (const values of [least, tokens, external, everything])
      t.match(from('replicas', values), [{ podSelector: { matchLabels: {} } }], 'replicas reach each other')
    t.strictSame(from('replicas', least), [{ podSelector: pods }], 'and nobody else does')
    t.strictSame(policy(least)?.policyTypes, ['Ingress'], 'servers can be anywhere')
    t.match(policy(everything), {
      policyTypes: ['Ingress', 'Egress'],
      egress: [
        ...everything.networkPolicy.egress,
        { ports: [{ port: 53 }, { port: 53 }] },
        { ports: [{ port: 'replicas' }] },
        { ports: [{ port: 6379 }] },
      ],
    })
    t.same(ofKind(render(t, { ...least, networkPolicy: { enabled: false } }).resources, 'NetworkPolicy'), [])
  },
)

t.test('streams pass every ingress controller that the chart knows', { skip: noHelm }, async (t) => {
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

t.test('replaces pods for changes that need a restart, and for no others', { skip: noHelm }, async (t) => {
  const checksum = (values: object) =>
    gateway(render(t, values)).spec?.template.metadata?.annotations?.['checksum/restart']
  const before = checksum(least)
  t.equal(checksum({ config: { ...least.config, limits: { calls: 10 } } }), before)
  t.not(checksum({ config: { ...least.config, log: { format: 'json', level: 'debug' } } }), before)
  const template = readFileSync(join(CHART, 'templates/deployment.yaml'), 'utf8')
  const [, picked = ''] = /checksum\/restart: \{\{ pick \$config ([^|]*) \|/.exec(template) ?? []
  t.same(JSON.parse(`[${picked.replaceAll(' ', ',')}]`), NEED_RESTART)
})

t.test('refuses contradictory values, and says what to change', { skip: noHelm }, async (t) => {
  const refused: [values: object, message: RegExp][] = [
    [{}, /config\.mcpServers is empty/],
    [{ config: { mcpServers: { orders: server } } }, /set config\.auth\.tokens, or config\.allowUnauthenticated/],
    [{ ...least, redis: { mode: 'none' } }, /Replicas share a Redis/],
    [
      { config: { ...least.config, groups: { shop: { servers: ['order'] } } } },
      /config\.groups\.shop\.servers names order, which is no server/,
    ],
    [{ config: { ...least.config, groups: true } }, /\/config\/groups/],
    [{ ...least, replcas: 3 }, /additional properties 'replcas' not allowed/],
    [{ config: { ...least.config, listen: 'http://0.0.0.0:1/mcp' } }, /\/config/],
    [{ config: { ...least.config, redis: { url: 'redis://x' } } }, /\/config\/redis/],
    [{ ...least, ingress: { enabled: true, controller: 'apache' } }, /\/ingress\/controller/],
    [{ ...least, httpRoute: { enabled: true } }, /httpRoute\.parentRefs is empty/],
    [{ ...least, autoscaling: { enabled: true, cpu: 0 } }, /autoscaling needs a metric/],
  ]
  for (const [values, message] of refused) t.throws(() => render(t, values), { message })
})

t.test('does not create a Secret that exists', { skip: noHelm }, async (t) => {
  const { resources } = render(t, external)
  t.same(ofKind(resources, 'Secret'), [])
  const { spec } = gateway({ resources })
  t.match(spec?.template.spec.volumes, [{}, { name: 'secrets', secret: { secretName: 'mine' } }])
})

t.test('another chart can add the bridge as a sidecar, and nothing else of this chart', { skip: noHelm }, async (t) => {
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
  t.match(pod.volumes, [{ name: 'token', secret: { secretName: 'orders-mcp' } }])
  t.match(sidecar?.volumeMounts, [{ name: 'token', mountPath: '/run/secrets/orders-mcp' }])
  const token = new Map([['/run/secrets/orders-mcp/token', secret('token')]])
  const command = commandIn(t, sidecar?.args ?? [], token)
  t.match(command, { kind: 'run', settings: { allowedHosts: [RELEASE], allowUnauthenticated: false } })
  if (command.kind === 'run') t.ok(command.settings.auth?.tokens, 'U3: clients need the token')
  if (command.kind === 'run') t.equal(Object.keys(command.settings.mcpServers).length, 1)

  const template = join(folder, 'templates/deployment.yaml')
  const shownThere = readFileSync(template, 'utf8')
  writeFileSync(template, shownThere.replace('--token-file=/run/secrets/orders-mcp/token', '--token=sesame'))
  t.throws(() => render(t, {}, folder), { message: /secrets in plain text:\n {2}mcp-bridge\.sidecar\.args\.0\n/ }, 'S9')
  const program = '"command" (list "node" "/servers/notes.js" "--quiet") "listen" "http://127.0.0.1:8123/mcp"'
  writeFileSync(
    template,
    shownThere
      .replace('"upstream" "http://127.0.0.1:3000/mcp"', program)
      .replace('"args" (list "--token-file=/run/secrets/orders-mcp/token")', ''),
  )
  const [other] = ofKind(render(t, {}, folder).resources, 'Deployment')
  const [starting] = containersOf(other?.spec?.template.spec as Pod)
  t.match(starting, { startupProbe: { httpGet: { path: '/readyz' } }, ports: [{ containerPort: 8123 }, {}] })
  t.match(commandIn(t, starting?.args ?? [], new Map()), {
    kind: 'run',
    settings: { listen: 'http://127.0.0.1:8123/mcp' },
  })
})

t.test('the commands of the documents install the chart', { skip: noHelm }, async (t) => {
  const root = fileURLToPath(new URL('../', import.meta.url))
  const documents = ['README.md', 'docs/kubernetes.md'].map((path) => readFileSync(join(root, path), 'utf8'))
  const commands = documents.flatMap((text) => text.replaceAll(/\\\n\s*/g, '').match(/^helm install .*$/gm) ?? [])
  t.equal(commands.length, 2)
  for (const command of commands) {
    // As far as that goes without a cluster.
    const args = [...command.split(/\s+/).slice(1), '--dry-run=client', '--output=json']
    const { status, stdout, stderr } = runTool('kubernetes', 'helm', args, root)
    t.equal(status, 0, stderr)
    const { manifest } = JSON.parse(stdout) as { manifest: string }
    t.match(understood(t, parseManifest(manifest)).settings, {
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

/** What helm says if it refuses values. */
function whyNot(t: Test, values: object): string | undefined {
  const { status, stderr } = helm(t, ['template', RELEASE, CHART, '--namespace', NAMESPACE], values)
  return status === 0 ? undefined : stderr
}

function gateway({ resources }: Pick<Rendering, 'resources'>) {
  const found = ofKind(resources, 'Deployment').find(
    ({ metadata }) => metadata?.labels?.['app.kubernetes.io/component'] === 'gateway',
  )
  if (!found) throw new Error('There is no gateway')
  return found
}

/** What the bridge of a gateway makes of its arguments and of the files that it gets. */
function understood(t: Test, { resources }: Pick<Rendering, 'resources'>, podIp = '10.0.0.1') {
  const pod = gateway({ resources }).spec?.template.spec as Pod
  const [bridge] = pod.containers as [Container]
  const config = ofKind(resources, 'ConfigMap').find(({ data }) => data?.['mcp.json'] !== undefined)
  const files = new Map([['/etc/mcp-bridge/mcp.json', config?.data?.['mcp.json'] ?? '']])
  for (const [, path = '', key = ''] of files
    .get('/etc/mcp-bridge/mcp.json')
    ?.matchAll(/\$\{file:([^}]*\/([^}/]+))\}/g) ?? [])
    files.set(path, secret(key))
  for (const mount of ['/etc/mcp-bridge', '/run/secrets/mcp-bridge'])
    if (!bridge.volumeMounts?.some(({ mountPath }) => mountPath === mount)) throw new Error(`${mount} is not mounted`)
  const given = (bridge.env ?? []).filter(({ valueFrom }) => valueFrom && 'fieldRef' in valueFrom)
  const env = Object.fromEntries(given.map(({ name }) => [name, podIp]))
  const command = commandIn(t, bridge.args ?? [], files, env)
  if (command.kind !== 'run') throw new Error('It serves nothing')
  return { settings: command.settings, pod, bridge }
}
