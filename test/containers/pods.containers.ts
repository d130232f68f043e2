/** Runs alone: containers. Pods of the manifests and of the chart, in Podman: probes, secrets that change, and the end of a pod. */
import { setInterval } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { NAMESPACE, noHelm, RELEASE, render } from '../support/chart.js'
import { secret } from '../support/deployment.js'
import { until } from '../support/eventually.js'
import { ofKind, type Pod, type Resource, readManifests } from '../support/kubernetes.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call, post } from '../support/modern.js'
import { newNetwork, noPodman, type Play, type PlayedPod, play, untilSucceeds } from '../support/podman.js'

const IMAGE = 'localhost/mcp-bridge:latest'
const BRIDGE = { image: IMAGE }
const DEMO = ['node', '/app/dist/main.js', 'demo', 'server']
/** A legacy server over HTTP, of the image of the bridge. */
const server = (where: string) => ({
  image: IMAGE,
  args: [`--listen=${where}`, '--allow-unauthenticated', '--allowed-host=orders', '--', ...DEMO],
})
const TOOLS = { image: 'localhost/mcp-bridge:tools' }
const IDLE = { ...TOOLS, command: ['sleep'], args: ['600'] }
const V4 = '10.99.55'
const V6 = 'fd00:6d63:7064:'
const resourcesOf = (file: string): Resource[] => readManifests().find((one) => one.file === file)?.resources ?? []
const podOf = (resources: readonly Resource[], name?: string): Pod =>
  ofKind(resources, 'Deployment').find(({ metadata }) => name === undefined || metadata?.name === name)?.spec?.template
    .spec as Pod
const secretNamed = (name: string, data: Record<string, string>): Resource => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
})
const dualStack = (t: Test) => newNetwork(t, `${V4}.0/24`, `${V6}:/64`)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Starts as the kubelet does: first the startup probe, then the others. */
async function untilReady(pod: PlayedPod): Promise<void> {
  const began = performance.now()
  await untilSucceeds(pod, 'mcp-bridge', 'startupProbe')
  await untilSucceeds(pod, 'mcp-bridge', 'readinessProbe')
  t.comment(`ready after ${Math.round(performance.now() - began)} ms`)
}

/** Waits for a token. Too many tries with one that is unknown would be refused (`limits.wrongTokensPerMinute`). */
async function untilKnown(isKnown: () => Promise<boolean>): Promise<void> {
  for await (const _ of setInterval(500)) if (await isKnown()) return
}

/** Ends a pod while a call waits for its client and a stream is open: the call goes on, and the stream ends after it at the latest. */
async function endsWell(
  t: Test,
  pod: PlayedPod,
  url: string,
  headers: Record<string, string>,
  tool: string,
): Promise<void> {
  const client = await LegacyClient.open(url, { headers, capabilities: { elicitation: {} } })
  const calling = await client.stream('tools/call', { name: tool, arguments: { guests: 4 } })
  const question = () => calling.messages.find(({ method }) => method === 'elicitation/create')
  await until(() => question() !== undefined, 'the question')
  const listening = await client.listen()
  t.equal(listening.status, 200)

  const stopped = pod.stop('mcp-bridge')
  await until(async () => !(await pod.succeeds('mcp-bridge', 'readinessProbe')), 'being ready no more')
  const next = async () => (await call(url, 'tools/list', {}, { headers })).headers
  await until(async () => (await next())['mcp-bridge-error'] === 'draining', 'a refused call')
  t.ok((await next())['retry-after'])
  await client.post({
    jsonrpc: '2.0',
    id: question()?.['id'],
    result: { action: 'accept', content: { time: '19:30' } },
  })
  await calling.ended()
  await listening.ended()
  t.match(calling.text, /A table for 4 at 19:30/, 'the open call is answered')
  t.equal(await stopped, 0)
}

t.test('the sidecar of an HTTP server', { skip: noPodman, timeout: 600_000 }, async (t) => {
  const resources = resourcesOf('sidecar-http.yaml')
  const [first, second] = [secret('first'), secret('second')]
  const pod = await play(t, podOf(resources), [...resources, secretNamed('orders-mcp', { token: first })], {
    network: await dualStack(t),
    address: `${V4}.10`,
    replace: { 'mcp-bridge': BRIDGE, server: server('http://127.0.0.1:3000/mcp') },
  })
  await untilReady(pod)
  t.equal(await pod.succeeds('mcp-bridge', 'livenessProbe'), true)
  const url = `http://${pod.host}:8080/mcp`
  const status = async (token: string) =>
    (await call(url, 'tools/list', {}, { headers: { host: 'orders', ...bearer(token) } })).status
  t.equal(await status(second), 401)
  t.equal(await status(first), 200)
  await pod.update('orders-mcp', 'token', second)
  await untilKnown(async () => (await status(second)) === 200)
  t.equal(await status(first), 401, 'the old token is taken no more')
  await endsWell(t, pod, url, { host: 'orders', ...bearer(second) }, 'book_table')
})

t.test('the sidecar of a client with a stdio server', { skip: noPodman, timeout: 600_000 }, async (t) => {
  const resources = resourcesOf('sidecar-stdio.yaml')
  const pod = podOf(resources)
  const [, bridge] = pod.initContainers ?? []
  const path = '/servers/notes/dist/index.js'
  t.ok(bridge?.args?.includes(path))
  // The server of the example is the bridge, as a server for demonstration.
  const args = bridge?.args?.flatMap((arg) => (arg === path ? ['/servers/notes/dist/main.js', 'demo', 'server'] : arg))
  const played = await play(t, pod, [...resources, secretNamed('notes', { token: secret('notes') })], {
    network: await dualStack(t),
    address: `${V4}.11`,
    replace: { 'copy-server': TOOLS, 'mcp-bridge': { ...BRIDGE, ...(args && { args }) }, agent: IDLE },
  })
  await untilReady(played)
  const ask = `fetch(process.env.MCP_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } } })
  }).then(async (answer) => console.log(answer.status, await answer.text()))`
  t.match(await played.exec('agent', 'node', '-e', ask), /^200 .*"protocolVersion":"2025-11-25"/s)
  await t.rejects(fetch(`http://${played.host}:8080/mcp`), 'nobody else reaches it')
  t.equal(await played.stop('mcp-bridge'), 0)
})

const orders = { url: 'http://orders:3000/mcp' }
const several = {
  config: {
    mcpServers: { orders, local: { command: 'node', args: ['/app/dist/main.js', 'demo', 'modern-server'] } },
    auth: { tokens: { shop: '${file:/run/secrets/mcp-bridge/token-shop}' } },
    timeouts: { drainDelay: 1_000, drainTimeout: 20_000 },
    groups: { shop: { servers: ['orders', 'local'] } },
  },
  path: '/mcp',
  secret: { data: { 'token-shop': secret('first') } },
  tmp: { enabled: true },
}
const alone = {
  config: { mcpServers: { orders }, allowUnauthenticated: true, timeouts: { drainDelay: 0, drainTimeout: 20_000 } },
  redis: { mode: 'none' },
  replicas: 1,
  secret: { existing: 'mine' },
}
const NAME = `${RELEASE}-mcp-bridge`
const HOST = `${NAME}.${NAMESPACE}`
const open = { config: { mcpServers: { orders }, allowUnauthenticated: true } }
const own = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'own' },
  data: {
    'mcp.json': JSON.stringify({
      ...alone.config,
      listen: 'http://[::]:8080/mcp',
      admin: 'http://[::]:9090',
      allowedHosts: [HOST],
    }),
  },
}

interface Played {
  values: object
  /** A tool that asks, and where it is served. */
  tool?: string
  path?: string
  /** The address of the second replica, usually one of the other family. */
  second?: string
  /** Where pods are that have addresses of IPv6 alone. */
  isOnlyV6?: boolean
  more?: Resource[]
}

const charts: Record<string, Played> = {
  'with its defaults': { values: open },
  'with a group and tokens': { values: several, tool: 'orders__book_table', path: '/shop/mcp' },
  'alone with a Secret that exists': { values: alone },
  'for IPv4': { values: { ...open, ipFamily: 'IPv4' }, second: `${V4}.31` },
  'for IPv6': { values: { ...open, ipFamily: 'IPv6' }, isOnlyV6: true },
  'with a configuration that exists': {
    values: { existingConfig: 'own', redis: { mode: 'none' }, replicas: 1 },
    more: [own],
  },
}

for (const [name, { values, tool = 'book_table', path = '/mcp', isOnlyV6, second: at, more = [] }] of Object.entries(
  charts,
))
  t.test(`the chart ${name}`, { skip: noPodman || noHelm, timeout: 600_000 }, async (t) => {
    const { resources } = render(t, values)
    const all = [...resources, ...more, secretNamed('mine', { 'state-key': secret('state-key') })]
    const network = isOnlyV6 ? await newNetwork(t, `${V6}:/64`) : await dualStack(t)
    const addressOf = (last: number) => (isOnlyV6 ? `${V6}:${last}` : `${V4}.${last}`)
    const services = { orders: addressOf(20), [`${NAME}-redis`]: addressOf(21) }
    const place = (address: string, replace: Play['replace']): Play => ({ network, address, replace, services })
    const upstream: Pod = { containers: [{ name: 'orders' }] }
    await play(t, upstream, [], place(services['orders'] as string, { orders: server('http://[::]:3000/mcp') }))
    const redis = podOf(resources, `${NAME}-redis`)
    if (redis) await play(t, redis, all, place(addressOf(21), { redis: { image: 'localhost/redis:7-alpine' } }))
    const gateway = podOf(resources, NAME)
    const first = await play(t, gateway, all, place(addressOf(30), { 'mcp-bridge': BRIDGE }))
    const second = redis && (await play(t, gateway, all, place(at ?? `${V6}:31`, { 'mcp-bridge': BRIDGE })))
    await untilReady(first)
    if (second) await untilReady(second)

    const host = HOST
    const isOpen = !JSON.stringify(values).includes('tokens')
    const headers = { host, ...(!isOpen && bearer(secret('first'))) }
    const url = (pod: PlayedPod) => `http://${pod.host}:8080${path}`
    t.equal((await call(url(first), 'tools/list', {}, { headers })).status, 200)
    if (!isOpen) {
      t.equal((await call(url(first), 'tools/list', {}, { headers: { host } })).status, 401)
      const next = bearer(secret('second'))
      for (const pod of [first, second]) await pod?.update(NAME, 'token-shop', secret('second'))
      const isKnown = async (pod: PlayedPod) =>
        (await call(url(pod), 'tools/list', {}, { headers: { host, ...next } })).status === 200
      await untilKnown(() => isKnown(first))
      if (second) await untilKnown(() => isKnown(second))
      Object.assign(headers, next)
    }
    if (second) {
      const client = await LegacyClient.open(url(first), { headers })
      const { status } = await post(url(second), client.text('tools/list', undefined, {}), client.headers)
      t.equal(status, 200, 'a session goes on at the other replica')
    }
    await endsWell(t, first, url(first), headers, tool)
  })
