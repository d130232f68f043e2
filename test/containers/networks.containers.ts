/** Runs alone: containers. The image in a network with addresses of both families. */
import t from 'tap'
import { CONFINED, docker, inspect, newName, startContainer, untilHealthy } from '../support/containers.js'
import { call } from '../support/modern.js'

/** The address of the first bridge, which has to allow it as a host. */
const ADDRESS = 'fd00:6d63:7062::10'
const ARGS = ['--listen', 'http://[::]:8080/mcp', '--admin', 'http://[::]:9090', '--allow-unauthenticated']
const MODERN = ['--', 'node', '/app/dist/main.js', 'demo', 'modern-server']

t.test('a bridge at all addresses serves IPv4 and IPv6', async (t) => {
  const network = newName(t, 'network', 'rm')
  await docker('network', 'create', '--ipv6', '--subnet=fd00:6d63:7062::/64', network)
  const inside = [`--network=${network}`, ...CONFINED]
  const name = await startContainer(
    t,
    [...inside, `--ip6=${ADDRESS}`],
    [...ARGS, '--allowed-host', `[${ADDRESS}]`, ...MODERN],
  )
  await untilHealthy(name)
  const [v4 = '', v6 = ''] = await Promise.all(
    ['IPAddress', 'GlobalIPv6Address'].map((key) =>
      inspect(name, `{{range .NetworkSettings.Networks}}{{.${key}}}{{end}}`),
    ),
  )
  for (const host of [v4, `[${v6}]`]) {
    t.equal(
      (await call(`http://${host}:8080/mcp`, 'tools/list', {}, { headers: { host: 'localhost' } })).status,
      200,
      host,
    )
    t.equal((await fetch(`http://${host}:9090/readyz`)).status, 200, host)
  }

  // A second bridge reaches the first one at its IPv6 address alone.
  const before = await startContainer(t, inside, [...ARGS, '--upstream', `http://[${v6}]:8080/mcp`])
  await untilHealthy(before)
  const own = await inspect(before, '{{range .NetworkSettings.Networks}}{{.GlobalIPv6Address}}{{end}}')
  t.equal(
    (await call(`http://[${own}]:8080/mcp`, 'tools/list', {}, { headers: { host: 'localhost' } })).status,
    200,
    'by way of another bridge',
  )
})
