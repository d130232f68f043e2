/** Runs alone: containers. docker-compose.yml from nothing: both replicas, the group, and what happens while a part of it is away. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { env } from 'node:process'
import t, { type Test } from 'tap'
import { docker, inspect, logsOf, noCompose, root, untilHealthy } from '../support/containers.js'
import { pause, until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call, envelope, headersFor, post } from '../support/modern.js'

const FIRST = 'http://127.0.0.1:8080/mcp'
const SECOND = 'http://127.0.0.1:8081/mcp'
/** Restarts of a replica under calls. */
const RESTARTS = Number(env['MCP_BRIDGE_RESTARTS'] ?? 3)

/** The project, with a folder of configuration that the test may edit. */
async function up(
  t: Test,
): Promise<{ compose(...args: string[]): Promise<string>; config: string; container(service: string): string }> {
  const folder = temporaryFolder(t)
  for (const path of ['docker-compose.yml', 'config/examples'])
    cpSync(join(root, path), join(folder, path), { recursive: true })
  const project = 'mcp-bridge-test'
  const compose = (...args: string[]) =>
    docker(
      'compose',
      '--project-name',
      project,
      '--project-directory',
      folder,
      '--file',
      join(folder, 'docker-compose.yml'),
      ...args,
    )
  t.teardown(() => compose('down', '--volumes', '--timeout', '1'))
  const began = performance.now()
  await compose('up', '--detach', '--no-build', '--pull', 'never', '--wait')
  t.comment(`healthy after ${Math.round(performance.now() - began)} ms`)
  return {
    compose,
    config: join(folder, 'config/examples/compose.json'),
    container: (service) => `${project}-${service}-1`,
  }
}

/** What a caller on kept connections gets of each call. */
type Outcome = 'answered' | 'told' | 'refused' | `broken: ${string}`

/**
 * Calls again and again, at the first replica; and at the second from when the first one has said that it shuts down until it is
 * healthy again, as a balancer does. A published port takes connections also while nobody listens behind it, and resets them.
 */
async function keepCalling(
  round: () => number,
  isOver: () => boolean,
  one: (url: string) => Promise<Outcome>,
): Promise<Map<Outcome, number>> {
  const counts = new Map<Outcome, number>()
  let sentAwayIn = -1
  while (!isOver()) {
    const outcome = await one(sentAwayIn === round() ? SECOND : FIRST)
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    if (outcome === 'told' || outcome === 'refused') sentAwayIn = round()
    await pause(20)
  }
  return counts
}

/** One modern call on a connection that is kept. */
function modernCall(agent: Agent, url: string): Promise<Outcome> {
  const params = { name: 'demo__echo', arguments: { message: 'x' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: envelope() } })
  return new Promise((resolve) => {
    const sent = request(url, { method: 'POST', agent, headers: headersFor('tools/call', params) }, (response) => {
      response.resume()
      response.on('end', () => {
        if (response.statusCode === 200) resolve('answered')
        else if (response.headers['mcp-bridge-error'] === 'draining' && response.headers['retry-after'] !== undefined)
          resolve('told')
        else resolve(`broken: ${response.statusCode}`)
      })
      response.on('error', (error) => resolve(`broken: ${error.message}`))
    })
    sent.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' ? 'refused' : `broken: ${error.code}`),
    )
    sent.end(body)
  })
}

t.test(
  'compose serves two replicas from nothing, and goes on while parts of it are away',
  { skip: noCompose, timeout: 1_200_000 },
  async (t) => {
    const { compose, config, container } = await up(t)
    const tools = async (url: string) =>
      ((await call(url, 'tools/list')).message.result?.['tools'] as { name: string }[]).map(({ name }) => name)

    await t.test('the group has the tools of both servers, at both replicas', async (t) => {
      await until(async () => (await tools(FIRST)).length > 0 && (await tools(SECOND)).length > 0, 'tools')
      const names = await tools(FIRST)
      t.ok(names.some((name) => name.startsWith('demo__')))
      t.ok(names.some((name) => name.startsWith('modern__')))
      t.same(await tools(SECOND), names)
      for (const service of ['bridge', 'bridge-2', 'demo', 'redis'])
        t.equal(await inspect(container(service), '{{.HostConfig.RestartPolicy.Name}}'), 'unless-stopped', service)
    })

    await t.test('a session goes on at the other replica', async (t) => {
      const client = await LegacyClient.open(FIRST)
      t.equal((await client.request('tools/list')).status, 200)
      const { status } = await post(SECOND, client.text('tools/list', undefined, {}), client.headers)
      t.equal(status, 200)
    })

    await t.test(`${RESTARTS} restarts of a replica reset no call`, async (t) => {
      let over = false
      let round = 0
      const agents = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
      const calling = agents.map((agent) =>
        keepCalling(
          () => round,
          () => over,
          (url) => modernCall(agent, url),
        ),
      )
      for (; round < RESTARTS; round++) {
        await compose('restart', 'bridge')
        await untilHealthy(container('bridge'))
      }
      over = true
      const all = new Map<string, number>()
      for (const counts of await Promise.all(calling))
        for (const [outcome, count] of counts) all.set(outcome, (all.get(outcome) ?? 0) + count)
      t.comment(JSON.stringify(Object.fromEntries(all)))
      t.same(
        [...all.keys()].filter((outcome) => outcome.startsWith('broken')),
        [],
        JSON.stringify(Object.fromEntries(all)),
      )
      t.ok((all.get('told') ?? 0) > 0, 'callers are told that the replica shuts down')
      for (const agent of agents) agent.destroy()
    })

    await t.test('calls go on while Redis is away, and replicas find it again', async (t) => {
      await compose('stop', 'redis')
      await until(async () => (await logsOf(container('bridge'))).includes('"event":"redis_unavailable"'), 'the loss')
      t.equal((await call(FIRST, 'tools/list')).status, 200)
      await compose('start', 'redis')
      await until(async () => (await logsOf(container('bridge'))).includes('"event":"redis_available"'), 'its return')
      t.equal((await call(FIRST, 'tools/list')).status, 200)
    })

    await t.test('an edit of the folder is used, and a wrong one makes nobody unhealthy', async (t) => {
      const settings = JSON.parse(readFileSync(config, 'utf8')) as { groups: object; $schema?: string }
      const written = (text: string) => writeFileSync(config, text)
      written(
        `// a comment\n${JSON.stringify({ ...settings, groups: { all: { path: '/mcp', title: 'Another' } } }).slice(0, -1)},}`,
      )
      await until(async () => (await logsOf(container('bridge'))).includes('"event":"config_changed"'), 'the change')
      written('{')
      await until(async () => (await logsOf(container('bridge'))).includes('"event":"config_invalid"'), 'the refusal')
      t.match(await docker('exec', container('bridge'), 'sh', '/app/healthcheck.sh'), /^serving/)
      t.equal(await inspect(container('bridge'), '{{.State.Health.Status}}'), 'healthy')
      t.equal((await call(FIRST, 'tools/list')).status, 200)
      written(JSON.stringify(settings))
    })
  },
)
