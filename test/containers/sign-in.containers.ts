/** Runs alone: containers. config/sign-in: a person signs in at the provider in a container, and calls a server behind the bridge. */
import { join } from 'node:path'
import t from 'tap'
import { docker, noCompose, root } from '../support/containers.js'
import { call } from '../support/modern.js'
import { kits, provider, signedIn } from '../support/sdk-sign-in.js'

t.test('the example of signing in works in its containers', { skip: noCompose, timeout: 600_000 }, async (t) => {
  const file = join(root, 'config/sign-in/docker-compose.yml')
  const compose = (...args: string[]) =>
    docker('compose', '--project-name', 'mcp-bridge-test-sign-in', '--file', file, ...args)
  t.teardown(() => compose('down', '--volumes', '--timeout', '1'))
  const began = performance.now()
  await compose('up', '--detach', '--no-build', '--pull', 'never', '--wait')
  t.comment(`healthy after ${Math.round(performance.now() - began)} ms`)
  const url = 'http://localhost:8080/mcp'
  t.equal((await call(url, 'tools/list')).status, 401, 'nobody without a token')
  const client = await signedIn(t, kits['SDK v1'], url, provider({ types: { login: 'alice', password: 'any' } }))
  const weather = await client.callTool({ name: 'legacy__weather', arguments: { city: 'Oslo' } })
  t.match(JSON.stringify(weather), /Oslo/)
})
