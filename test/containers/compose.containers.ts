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
import { RestartedCallers } from '../support/restarted-callers.js'

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
      const callers = new RestartedCallers([new URL(FIRST).origin, new URL(SECOND).origin])
      for (let round = 0; round < RESTARTS; round++) {
        await callers.called()
        await compose('restart', 'bridge')
        await untilHealthy(container('bridge'))
        callers.comeBack()
      }
      await callers.end()
      let told = 0
      for (const [lane, counts] of callers.counts) {
        const said = `${lane}: ${JSON.stringify(counts)}`
        t.comment(said)
        t.same(
          Object.keys(counts).filter((outcome) => outcome.startsWith('broken')),
          [],
          said,
        )
        t.ok((counts['answered'] ?? 0) > 0, said)
        told += counts['told'] ?? 0
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
