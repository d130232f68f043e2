/**
 * The examples for Kubernetes: that a cluster would take them as they are, that their pods may run in a namespace that
 * restricts what pods may do, and that what they tell the bridge is what it understands.
 */
import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { atLeast } from './support/at-least.js'
import { commandIn, ports, secret } from './support/deployment.js'
import { named, parseDockerfile } from './support/dockerfile.js'
import { temporaryFolder } from './support/folder.js'
import {
  type Container,
  complaints,
  containersOf,
  ofKind,
  type Pod,
  parseManifest,
  type Resource,
  readManifests,
} from './support/kubernetes.js'
import { plainSecrets } from './support/plain-secrets.js'
import { forbidden } from './support/restricted.js'
import { lacks, missing, runTool } from './support/tools.js'

const dockerfile = readFileSync(new URL('../Dockerfile', import.meta.url), 'utf8')
const manifests = readManifests()
const skip = missing('kubernetes')
const noKubectl = skip || lacks('kubectl', ['version', '--client'], 'kubernetes')
const folder = fileURLToPath(new URL('../config/kubernetes/', import.meta.url))
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

const isBridge = ({ image }: Container) => image?.startsWith('mcp-bridge:') ?? false

t.test('the check finds an unknown member, and a missing one', { skip }, async (t) => {
  const [deployment] = ofKind(manifests[0]?.resources ?? [], 'Deployment')
  const { spec, ...rest } = deployment as Resource & { spec: object }
  t.same(await complaints({ ...rest, spec: { ...spec, replcas: 3 } }), ['/spec/replcas is no member'])
  const lacking = await complaints({ ...rest, spec: { ...spec, selector: undefined } })
  t.match(lacking, [[{ params: { missingProperty: 'selector' } }]])
  t.same(await complaints({ ...rest, apiVersion: 'apps/v2' }), ['there is no apps/v2 Deployment'])
})

for (const { file, text, mistakes, resources } of manifests) {
  const [deployment] = ofKind(resources, 'Deployment')
  const { metadata, spec } = deployment?.spec?.template ?? {}
  const pod = spec as Pod
  const bridge = containersOf(pod).find(isBridge) as Container

  t.test(`${file} is valid for the schemas of Kubernetes`, { skip }, async (t) => {
    for (const one of resources) t.same(await complaints(one), [], `${one.kind} ${one.metadata?.name}`)
  })

  t.test(`${file} is YAML, and for one namespace`, async (t) => {
    t.same(mistakes, [])
    const namespaces = resources.map(({ kind, metadata }) =>
      kind === 'Namespace' ? metadata?.name : metadata?.namespace,
    )
    t.equal(new Set(namespaces).size, 1, 'all in one namespace')
  })

  t.test(`${file} passes the profile "restricted"`, async (t) => {
    t.same(forbidden(pod), [])
  })

  t.test(`${file} has no secret in plain text`, async (t) => {
    for (const { name, command = [], args = [], env = [] } of containersOf(pod)) {
      const variables = Object.fromEntries(env.map(({ name, value = '' }) => [name, value]))
      t.same(plainSecrets([...command, ...args], variables), [], name)
    }
    for (const { data = {} } of ofKind(resources, 'ConfigMap'))
      for (const [name, text] of Object.entries(data))
        t.same(plainSecrets([], Object.fromEntries(texts(JSON.parse(text)))), [], name)
  })

  t.test(`the admin port of ${file} is restricted`, async (t) => {
    const policies = ofKind(resources, 'NetworkPolicy').filter(({ spec }) =>
      Object.entries(spec?.podSelector.matchLabels ?? {}).every(([key, value]) => metadata?.labels?.[key] === value),
    )
    t.equal(policies.length, 1)
    const rules = policies.flatMap(({ spec }) => spec?.ingress ?? [])
    for (const { from = [], ports } of rules)
      if (ports?.some(({ port }) => port === 'admin') ?? true) t.not(from.length, 0, 'it says for whom it is')
  })

  t.test(`files that ${file} refers to exist`, async (t) => {
    const labels = metadata?.labels ?? {}
    const names = containersOf(pod).flatMap(({ ports = [] }) => ports.map(({ name }) => name))
    const selectors = [
      deployment?.spec?.selector,
      ...(pod.topologySpreadConstraints ?? []).map(({ labelSelector }) => labelSelector),
      ...ofKind(resources, 'Service').map(({ spec }) => ({ matchLabels: spec?.selector })),
      ...ofKind(resources, 'PodDisruptionBudget').map(({ spec }) => spec?.selector),
      ...ofKind(resources, 'NetworkPolicy').map(({ spec }) => spec?.podSelector),
    ]
    for (const selector of selectors) t.match(labels, selector?.matchLabels ?? { none: true }, 'it selects the pods')
    const wanted = [
      ...ofKind(resources, 'Service')
        .flatMap(({ spec }) => spec?.ports ?? [])
        .map(({ targetPort }) => targetPort),
      ...ofKind(resources, 'NetworkPolicy')
        .flatMap(({ spec }) => spec?.ingress ?? [])
        .flatMap(({ ports = [] }) => ports.map(({ port }) => port)),
    ]
    for (const port of wanted) t.ok(names.includes(String(port)), `there is a port ${port}`)
    for (const { spec } of ofKind(resources, 'HorizontalPodAutoscaler')) {
      const { apiVersion, kind, name } = spec?.scaleTargetRef ?? {}
      t.match(deployment, { apiVersion, kind, metadata: { name } }, 'it scales the deployment')
      t.equal(deployment?.spec?.replicas, undefined, 'the number of replicas is said in one place')
      t.ok((spec?.minReplicas ?? 1) >= 3)
    }
  })

  t.test(`only callers with a token, or containers of its pod, can call the bridge of ${file}`, async (t) => {
    const { files } = mounted(pod, bridge, resources, text)
    const env = Object.fromEntries((bridge.env ?? []).map(({ name }) => [name, secret(name)]))
    const command = commandIn(t, bridge.args ?? [], files, env)
    if (command.kind !== 'run') return t.fail('it does not serve anything')
    const { settings } = command
    t.equal(settings.allowUnauthenticated, false)
    if (ports(settings).main.reachable) t.not(Object.keys(settings.auth?.tokens ?? {}).length, 0)
    else t.match(text, /# No token: only containers of this pod/, 'it says why there is none')
  })

  t.test(`the bridge accepts the configuration in ${file}`, async (t) => {
    const { files, wrong } = mounted(pod, bridge, resources, text)
    t.same(wrong, [], 'volumes fit together')
    t.equal(bridge.command, undefined, 'the image knows how it is started')
    const env = Object.fromEntries((bridge.env ?? []).map(({ name }) => [name, secret(name)]))
    const command = commandIn(t, bridge.args ?? [], files, env)
    if (command.kind !== 'run') return t.fail('it does not serve anything')
    const { settings } = command

    const { main, admin } = ports(settings)
    const declared = new Map((bridge.ports ?? []).map(({ name, containerPort }) => [name, containerPort]))
    t.equal(declared.get('admin'), admin.port)
    t.ok(admin.reachable, 'probes come from outside of the pod')
    const probes: [name: 'startupProbe' | 'readinessProbe' | 'livenessProbe', paths: string[]][] = [
      ['startupProbe', ['/healthz', '/readyz']],
      ['readinessProbe', ['/readyz']],
      ['livenessProbe', ['/healthz']],
    ]
    for (const [name, paths] of probes) {
      const { port, path = '', host } = bridge[name]?.httpGet ?? {}
      t.same({ port, host }, { port: 'admin', host: undefined }, `${name} asks where nobody is asked for a token`)
      t.ok(paths.includes(path), `${name} asks for what there is`)
    }
    const { 'prometheus.io/scrape': scraped, ...where } = metadata?.annotations ?? {}
    if (scraped) t.match(where, { 'prometheus.io/port': `${admin.port}`, 'prometheus.io/path': '/metrics' })
    const { drainDelay, drainTimeout } = settings.timeouts
    const grace = (pod.terminationGracePeriodSeconds ?? 30) * 1_000
    t.ok(grace >= drainDelay + drainTimeout + 5_000, 'there is time to drain, and to end')

    const services = ofKind(resources, 'Service')
    t.equal(main.reachable, services.length > 0, 'who is outside of the pod reaches it where that is meant')
    for (const { metadata, spec } of services) {
      t.equal(spec?.ipFamilyPolicy, 'PreferDualStack', 'in a cluster of both families')
      t.equal(declared.get('http'), main.port)
      const { name = '', namespace = 'default' } = metadata ?? {}
      for (const host of [name, `${name}.${namespace}.svc.cluster.local`])
        t.ok(settings.allowedHosts.includes(host), `clients may call it ${host}`)
    }
    for (const { name, value } of pod.containers.flatMap(({ env = [] }) => env))
      if (name === 'MCP_URL') t.equal(value, settings.listen, 'the program beside it is told where it is')
    const mounts = (bridge.volumeMounts ?? []).map(({ mountPath }) => `${mountPath}/`)
    for (const path of bridge.args?.filter((arg) => arg.startsWith('/')) ?? [])
      t.ok(
        mounts.some((mount) => path.startsWith(mount)),
        `${path} is in a volume`,
      )
  })

  t.test(`${file} runs the image that the Dockerfile builds`, async (t) => {
    const image = parseDockerfile(dockerfile).at(-1)
    const version = /image\.version="([^"]+)"/.exec(dockerfile)?.[1]
    const { runAsUser, runAsGroup } = pod.securityContext ?? {}
    t.equal(`${runAsUser}:${runAsGroup}`, image && named(image, 'USER')[0]?.text)
    t.equal(bridge.image, `mcp-bridge:${version}`)
    // Beside another container it starts first and ends last.
    t.equal(bridge.restartPolicy, pod.containers.includes(bridge) ? undefined : 'Always')
  })
}

t.test(
  '`kubectl apply -k` takes the gateway with the published image, and nothing else',
  { skip: noKubectl },
  async (t) => {
    const [gateway] = manifests.filter(({ file }) => file === 'gateway.yaml')
    const { mistakes, resources } = kustomize(folder)
    t.same(mistakes, [])
    const image = `ghcr.io/mcp-bridge/mcp-bridge:${version}`
    const published = JSON.parse(
      JSON.stringify(gateway?.resources).replace(`mcp-bridge:${version}`, image),
    ) as Resource[]
    t.same(byName(resources), byName(published))
  },
)

t.test('with the component scale-by-bounds the gateway also scales by its bounds', { skip: noKubectl }, async (t) => {
  const mine = temporaryFolder(t)
  const base = relative(realpathSync(mine), folder)
  writeFileSync(
    join(mine, 'kustomization.yaml'),
    `resources: [${base}]\ncomponents: [${join(base, 'scale-by-bounds')}]\n`,
  )
  const { mistakes, resources } = kustomize(mine)
  t.same(mistakes, [])
  for (const one of resources) t.same(await complaints(one), [], `${one.kind} ${one.metadata?.name}`)
  t.match(ofKind(resources, 'HorizontalPodAutoscaler')[0]?.spec?.metrics, [
    { type: 'Resource', resource: { name: 'cpu' } },
    { type: 'Pods', pods: { metric: { name: 'mcp_bridge_bound_utilization' }, target: { averageValue: '700m' } } },
  ])
})

t.test('kubectl accepts the documented kustomization', { skip: noKubectl }, async (t) => {
  const page = readFileSync(new URL('../docs/kubernetes.md', import.meta.url), 'utf8')
  const mine = temporaryFolder(t)
  const shown = page.matchAll(/```yaml\n# (\S+)\n([\s\S]*?)```/g)
  for (const [, file = '', content = ''] of atLeast(t, 1, 'files', shown))
    writeFileSync(
      join(mine, file),
      content.replace('../mcp-bridge/config/kubernetes', relative(realpathSync(mine), folder)),
    )
  const { mistakes, resources } = kustomize(mine)
  t.same(mistakes, [])
  for (const one of resources) t.same(await complaints(one), [], `${one.kind} ${one.metadata?.name}`)
  t.match(ofKind(resources, 'HorizontalPodAutoscaler'), [{ spec: { maxReplicas: 20 } }])
  t.match(
    ofKind(resources, 'ConfigMap')[0]?.data?.['mcp.json'],
    /^\{ "mcpServers": \{ "orders": \{ "url": "[^"]+" \} \} \}\n$/,
  )
})

/** All texts in a value, by their paths. */
function texts(value: unknown, path = ''): [path: string, text: string][] {
  if (typeof value === 'string') return [[path, value]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => texts(member, `${path}.${key}`))
}

/** What kustomize makes of a folder. */
function kustomize(path: string) {
  const { status, stdout, stderr } = runTool('kubernetes', 'kubectl', ['kustomize', path])
  if (status !== 0) throw new Error(stderr)
  return parseManifest(stdout)
}

/** In an order that does not depend on where they came from. */
function byName(resources: readonly Resource[]): Resource[] {
  return resources.toSorted((a, b) => `${a.kind}${a.metadata?.name}`.localeCompare(`${b.kind}${b.metadata?.name}`))
}

/** The files that a container gets from its volumes, by their paths, and what is wrong with the volumes. */
function mounted(pod: Pod, container: Container, resources: readonly Resource[], text: string) {
  const files = new Map<string, string>()
  const wrong: string[] = []
  const { volumes = [] } = pod
  for (const { name, mountPath, subPath } of container.volumeMounts ?? []) {
    const volume = volumes.find((one) => one.name === name)
    if (!volume) wrong.push(`there is no volume ${name}`)
    if (subPath !== undefined) wrong.push(`${mountPath} would not change with its volume`)
    const map = volume?.configMap?.name
    if (map !== undefined) {
      const found = ofKind(resources, 'ConfigMap').find(({ metadata }) => metadata?.name === map)
      if (!found) wrong.push(`there is no ConfigMap ${map}`)
      for (const [key, content] of Object.entries(found?.data ?? {})) files.set(`${mountPath}/${key}`, content)
    }
    const hidden = volume?.secret?.secretName
    if (hidden !== undefined) {
      // Secrets are not in the file: its first lines say how they are made.
      const made = new RegExp(`create secret generic ${hidden} (?:.*\\\\\\n)+.*`).exec(text)?.[0] ?? ''
      const keys = [...made.matchAll(/--from-literal=([\w-]+)=/g)].map(([, key = '']) => key)
      if (keys.length === 0) wrong.push(`nothing says how the Secret ${hidden} is made`)
      for (const key of keys) files.set(`${mountPath}/${key}`, secret(key))
    }
  }
  const used = containersOf(pod).flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name))
  wrong.push(...volumes.filter(({ name }) => !used.includes(name)).map(({ name }) => `nobody uses the volume ${name}`))
  return { files, wrong }
}
