/** Runs alone: containers. The image in networks with addresses of both families, and of IPv6 alone. */
import { execFileSync } from 'node:child_process'
import { getuid } from 'node:process'
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

t.test(
  'a bridge in a network of IPv6 alone serves, and reaches a server',
  { skip: getuid?.() !== 0 && 'taking IPv4 from a container needs root' },
  async (t) => {
    const network = newName(t, 'network', 'rm')
    await docker('network', 'create', '--ipv6', '--subnet=fd00:6d63:7065::/64', network)
    const place = async () => {
      const name = newName(t)
      const idle = ['--no-healthcheck', '--entrypoint=node', 'mcp-bridge', '-e', 'setTimeout(() => {}, 600_000)']
      await docker('run', '--detach', `--name=${name}`, `--network=${network}`, ...idle)
      const pid = await inspect(name, '{{.State.Pid}}')
      execFileSync('nsenter', ['--target', pid, '--net', 'ip', '-4', 'address', 'flush', 'dev', 'eth0'])
      const address = await inspect(name, '{{range .NetworkSettings.Networks}}{{.GlobalIPv6Address}}{{end}}')
      return { network: `--network=container:${name}`, host: `[${address}]` }
    }
    const [first, second] = [await place(), await place()]
    const one = await startContainer(
      t,
      [...CONFINED, first.network],
      [...ARGS, '--allowed-host', first.host, ...MODERN],
    )
    const other = await startContainer(
      t,
      [...CONFINED, second.network],
      [...ARGS, '--upstream', `http://${first.host}:8080/mcp`],
    )
    for (const name of [one, other]) await untilHealthy(name)
    for (const { host } of [first, second]) {
      t.equal((await fetch(`http://${host}:9090/readyz`)).status, 200, host)
      const { status } = await call(`http://${host}:8080/mcp`, 'tools/list', {}, { headers: { host: 'localhost' } })
      t.equal(status, 200, host)
    }
  },
)
