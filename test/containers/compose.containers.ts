/** Runs alone: containers. docker-compose.yml from nothing: both replicas, the group, and what happens while a part of it is away. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { env } from 'node:process'
import t, { type Test } from 'tap'
import { docker, inspect, logsOf, noCompose, root, untilHealthy } from '../support/containers.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call, post } from '../support/modern.js'
import { keepCalling, type Lane, modern, question, session, sse, subscription } from '../support/restarted-lanes.js'

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

/** Callers of each kind, each of which nothing may be lost. The server of the demo relays sessions; the group has a program. */
const LANES: readonly (readonly [name: string, lane: () => Lane])[] = [
  ['calls of modern clients to the group', () => modern('/mcp', 'demo__echo')],
  ['calls of modern clients to a program', () => modern('/modern/mcp', 'find_train', { to: 'Oslo' })],
  ['sessions of legacy clients with the group', () => session('/mcp', 'demo__echo', { isPassedOn: false })],
  ['sessions that are passed on', () => session('/demo/mcp', 'echo', { isPassedOn: true })],
  ['clients over HTTP+SSE', () => sse('/demo/mcp', 'echo')],
  ['subscriptions to the group', () => subscription('/mcp')],
  ['questions in calls', () => question('/demo/mcp')],
]

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

    await t.test(`${RESTARTS} restarts of a replica lose nothing that a caller has begun`, async (t) => {
      let over = false
      let round = 0
      const origins = [FIRST, SECOND].map((url) => new URL(url).origin) as [string, string]
      const calling = LANES.map(([, lane]) =>
        keepCalling(
          origins,
          () => round,
          () => over,
          lane(),
        ),
      )
      for (; round < RESTARTS; round++) {
        await compose('restart', 'bridge')
        await untilHealthy(container('bridge'))
      }
      over = true
      let told = 0
      for (const [i, counts] of (await Promise.all(calling)).entries()) {
        const said = `${LANES[i]?.[0]}: ${JSON.stringify(Object.fromEntries(counts))}`
        t.comment(said)
        t.same(
          [...counts.keys()].filter((outcome) => outcome.startsWith('broken')),
          [],
          said,
        )
        t.ok((counts.get('answered') ?? 0) > 0, said)
        told += counts.get('told') ?? 0
      }
      t.ok(told > 0, 'callers are told that the replica shuts down')
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
      written(JSON.stringify({ ...settings, admin: 'http://[::]:9191' }))
      await until(async () => (await logsOf(container('bridge'))).includes('"event":"restart_required"'), 'the warning')
      written('{')
      await until(async () => (await logsOf(container('bridge'))).includes('"event":"config_invalid"'), 'the refusal')
      t.match(await docker('exec', container('bridge'), 'sh', '/app/healthcheck.sh'), /^serving/)
      t.equal(await inspect(container('bridge'), '{{.State.Health.Status}}'), 'healthy')
      t.equal((await call(FIRST, 'tools/list')).status, 200)
      written(JSON.stringify(settings))
    })
  },
)
